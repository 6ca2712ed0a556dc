"""The test site as its user sees it: started, told what to answer, asked what arrived."""

import itertools
import json
import os
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from polite_transport.testing.politeness import impolite
from polite_transport.testing.values import Answers, Arrival, dump_answers, load_arrival

# The server is found wherever this package was, but the standard library comes first and the
# working directory (-P) not at all: a script's own random.py must not break it.
_BOOT = (
    "import sys; sys.path.append(sys.argv[1]); "
    "from polite_transport.testing.server import main; main()"
)
_ROOT = str(Path(__file__).resolve().parents[2])
_STOP_SECONDS = 5.0


class Site:
    """A loopback web site in a process of its own, which logs each request line as it arrives.

    Use it in a ``with`` statement; the log stays readable afterwards. Safe to use from threads.

    robots: what /robots.txt answers; without it, 404.
    robots_by_user_agent: answers for requests whose User-Agent contains the key, in any case.
    robots_by_address: answers for requests that come in on the key, one of ``addresses``.
    addresses: all served on the same port.
    port: 0 = one that is free.
    tls: paths of a certificate chain and its key, PEM; makes the site an https one.
    accept_jitter: bounds, in seconds, of a random wait before the first request of a connection
        is read; ``seed`` makes the waits the same each time.
    think: seconds before the response headers of every page; robots.txt has ``Answer.delay``.
    idle_timeout: seconds after which a connection without a request is closed; None = never.
    """

    def __init__(
        self,
        robots: Answers | None = None,
        *,
        robots_by_user_agent: Mapping[str, Answers] | None = None,
        robots_by_address: Mapping[str, Answers] | None = None,
        addresses: Sequence[str] = ("127.0.0.1",),
        port: int = 0,
        tls: tuple[str | os.PathLike[str], str | os.PathLike[str]] | None = None,
        accept_jitter: tuple[float, float] = (0.0, 0.0),
        think: float = 0.0,
        idle_timeout: float | None = None,
        seed: int = 0,
    ) -> None:
        self.addresses = tuple(addresses)
        self.host = self.addresses[0]
        self.port = port
        self.scheme = "https" if tls else "http"
        self._robots = robots
        self._robots_by_user_agent = robots_by_user_agent or {}
        self._robots_by_address = robots_by_address or {}
        self._options: dict[str, Any] = {
            "addresses": self.addresses,
            "port": port,
            "tls": tls and [os.fspath(path) for path in tls],
            "accept_jitter": accept_jitter,
            "think": think,
            "idle_timeout": idle_timeout,
            "seed": seed,
        }
        self._server: subprocess.Popen[str] | None = None
        self._numbers = itertools.count()
        self._lock = threading.Lock()  # one question and its answer at a time
        self._log: tuple[Arrival, ...] = ()

    def __enter__(self) -> Self:
        self._server = subprocess.Popen(  # noqa: S603 - our own interpreter and code
            [sys.executable, "-P", "-c", _BOOT, _ROOT],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            encoding="ascii",  # json.dumps escapes the rest
        )
        try:
            self._serve_robots()
            self.port = self._ask("start", **self._options)
        except BaseException:
            self._stop()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        try:
            self._log = self.log
        finally:
            self._stop()

    @property
    def origin(self) -> str:
        """Scheme, first address and port, without a slash at the end."""
        return self.url("")

    def url(self, path: str = "/", host: str | None = None) -> str:
        """Return the URL of ``path`` on ``host``, an address or its name; None = the first."""
        host = host or self.host
        return f"{self.scheme}://{f'[{host}]' if ':' in host else host}:{self.port}{path}"

    def serve(
        self, path: str, answers: Answers, *, host: str | None = None, user_agent: str | None = None
    ) -> None:
        """From now on answer ``path`` with ``answers``, one after the other, the last repeated.

        path: a path for any query, or path and query; "/robots.txt" like any other.
        host: only on this address.
        user_agent: only where the User-Agent contains this, in any case.
        """
        self._ask(
            "serve", path=path, host=host, user_agent=user_agent, answers=dump_answers(answers)
        )

    @property
    def log(self) -> tuple[Arrival, ...]:
        """Every arrival up to now, in order."""
        if self._server is None:
            return self._log
        return tuple(load_arrival(row) for row in self._ask("log"))

    def targets(self, host: str | None = None) -> list[str]:
        """Return the targets that arrived, in order, on ``host`` or on all addresses."""
        return [arrival.target for arrival in self.log if host in {None, arrival.host}]

    def gaps(self, host: str | None = None) -> list[float]:
        """Return the seconds between consecutive arrivals on ``host``, robots.txt included.

        None = the gaps of each address, one address after the other.
        """
        log = self.log
        hosts = dict.fromkeys(arrival.host for arrival in log) if host is None else [host]
        times: dict[str, list[float]] = {name: [] for name in hosts}
        for arrival in log:
            if arrival.host in times:
                times[arrival.host].append(arrival.time)
        return [b - a for each in times.values() for a, b in itertools.pairwise(each)]

    def assert_polite(self) -> None:
        """Fail, with a sentence for each, where a request did not keep the site's robots.txt.

        The site needs one ``robots`` that stays the same, so that its log can be judged by it.
        Raises AssertionError; TypeError where robots.txt was an answer of another kind.
        """
        robots = b"" if self._robots is None else self._robots
        if not isinstance(robots, str | bytes):
            raise TypeError("assert_polite needs a site whose robots is text or bytes")
        found = impolite(self.log, robots.encode() if isinstance(robots, str) else robots)
        if found:
            raise AssertionError("\n".join(found))

    def wait_for(self, count: int, timeout: float = 10.0) -> tuple[Arrival, ...]:
        """Return the log as soon as it has ``count`` arrivals.

        Raises TimeoutError if that is not so after ``timeout`` seconds.
        """
        arrived: int = self._ask("wait", count=count, timeout=timeout)
        if arrived < count:
            raise TimeoutError(f"{arrived} of {count} requests arrived within {timeout} s")
        return self.log

    def sent(self, target: str) -> int:
        """Return the body bytes that the site has written in answer to ``target``, all in all."""
        count: int = self._ask("sent", target=target)
        return count

    def clear(self) -> None:
        """Forget all arrivals and byte counts."""
        self._ask("clear")

    def _serve_robots(self) -> None:
        if self._robots is not None:
            self.serve("/robots.txt", self._robots)
        for part, answers in self._robots_by_user_agent.items():
            self.serve("/robots.txt", answers, user_agent=part)
        for address, answers in self._robots_by_address.items():
            self.serve("/robots.txt", answers, host=address)

    def _ask(self, verb: str, **details: Any) -> Any:
        with self._lock:
            server = self._server
            if server is None or server.stdin is None or server.stdout is None:
                raise RuntimeError("the test site is not running: use it in a with statement")
            number = next(self._numbers)
            try:
                server.stdin.write(json.dumps({"number": number, "do": verb, **details}) + "\n")
                server.stdin.flush()
                # Other numbers belong to calls that were interrupted before they read theirs.
                replies = map(json.loads, iter(server.stdout.readline, ""))
                reply = next((each for each in replies if each["number"] == number), None)
            except BrokenPipeError:
                reply = None
        if reply is None:
            raise RuntimeError("the test site's process has ended; its stderr says why")
        if "error" in reply:
            raise OSError(f"the test site cannot {verb}: {reply['error']}")
        return reply["reply"]

    def _stop(self) -> None:
        with self._lock:
            server, self._server = self._server, None
        if server is None:
            return
        try:
            # Closes the pipes too; the end of its stdin is what ends the server.
            server.communicate(timeout=_STOP_SECONDS)
        except subprocess.TimeoutExpired:
            server.kill()
            server.communicate()
