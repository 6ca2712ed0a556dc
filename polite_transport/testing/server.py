"""The process behind a test site: serves HTTP/1.1 on loopback, logs arrivals, obeys its stdin.

Each line of stdin is a JSON object whose "do" names what to do; each is answered by one JSON line
of the same "number" on stdout. It ends when stdin does, so that it never outlives the process that
started it.
"""

import asyncio
import contextlib
import dataclasses
import errno
import itertools
import json
import os
import random
import signal
import socket
import ssl
import sys
import threading
import time
from collections import Counter, defaultdict
from typing import Any

from polite_transport.testing import http1, pages
from polite_transport.testing.http1 import Request
from polite_transport.testing.values import Answer, Arrival, dump_arrival, load_answer

_BACKLOG = 1024
_PORT_TRIES = 50


class _Script:
    """Answers to successive requests; the last one is repeated."""

    def __init__(self, answers: list[dict[str, Any]]) -> None:
        self._answers = [load_answer(answer) for answer in answers]
        self._used = 0

    def next(self) -> Answer:
        answer = self._answers[min(self._used, len(self._answers) - 1)]
        self._used += 1
        return answer


class _Server:
    """The state of one site and what the control lines can do to it."""

    def __init__(self) -> None:
        self._log: list[Arrival] = []
        self._arrived = asyncio.Event()
        self._connections = itertools.count()
        self._visits: Counter[str] = Counter()
        self._sent: Counter[str] = Counter()
        self._scripts: dict[tuple[str, str | None], _Script] = {}
        self._by_user_agent: defaultdict[str, dict[str, _Script]] = defaultdict(dict)

    # What the control lines ask for. The names are those of "do".

    async def start(
        self,
        *,
        addresses: list[str],
        port: int,
        tls: list[str] | None,
        accept_jitter: list[float],
        think: float,
        idle_timeout: float | None,
        seed: int,
    ) -> int:
        """Listen on ``port`` (0 = any that is free) of all ``addresses`` and return the port."""
        self._jitter, self._random = accept_jitter, random.Random(seed)  # noqa: S311 - no secret
        self._think, self._idle_timeout = think, idle_timeout
        context = None
        if tls:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(*tls)
            context.set_alpn_protocols(["http/1.1"])
        sockets = _listen(addresses, port)
        self._servers = [
            await asyncio.start_server(
                self._serve_connection,
                sock=sock,
                ssl=context,
                backlog=_BACKLOG,
                limit=http1.LINE_LIMIT,
            )
            for sock in sockets
        ]
        bound: int = sockets[0].getsockname()[1]
        return bound

    async def serve(
        self, *, path: str, host: str | None, user_agent: str | None, answers: list[dict[str, Any]]
    ) -> None:
        """Answer ``path`` with ``answers``: on one address, to one User-Agent, or to all."""
        if user_agent is None:
            self._scripts[path, host] = _Script(answers)
        else:
            self._by_user_agent[path][user_agent.lower()] = _Script(answers)

    async def log(self) -> list[list[Any]]:
        """Return all arrivals."""
        return [dump_arrival(arrival) for arrival in self._log]

    async def wait(self, *, count: int, timeout: float) -> int:  # noqa: ASYNC109 - its own answer
        """Return the number of arrivals once it is ``count``, or after ``timeout`` seconds."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(timeout):
                while len(self._log) < count:
                    self._arrived.clear()
                    await self._arrived.wait()
        return len(self._log)

    async def sent(self, *, target: str) -> int:
        """Return the number of body bytes written in answer to ``target``."""
        return self._sent[target]

    async def clear(self) -> None:
        """Forget all arrivals and byte counts."""
        self._log.clear()
        self._sent.clear()

    # What the network asks for.

    async def _serve_connection(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        number = next(self._connections)
        try:
            await asyncio.sleep(self._random.uniform(*self._jitter))
            while await self._serve_request(reader, writer, number):
                pass
        except (OSError, EOFError, asyncio.LimitOverrunError):
            pass  # gone, wherever it was; or a line without end
        except asyncio.CancelledError:
            writer.transport.abort()  # the site stops, whatever is still to be sent
        writer.close()
        with contextlib.suppress(OSError, asyncio.CancelledError):
            await writer.wait_closed()  # takes the connection's error, or asyncio prints it

    async def _serve_request(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, number: int
    ) -> bool:
        line = ""
        async with asyncio.timeout(self._idle_timeout):
            while not line:  # empty lines before a request are to be ignored: RFC 9112 section 2.2
                line = await http1.read_line(reader)
        now = time.monotonic()
        request = http1.parse_request_line(line)
        host, port = writer.get_extra_info("sockname")[:2]
        # The log holds the headers' own dict: a request that breaks off shows how far it came.
        self._log.append(
            Arrival(now, host, port, request.method, request.target, request.headers, number)
        )
        self._arrived.set()
        try:
            await self._read_rest(reader, writer, request)
        except http1.BadRequestError as error:
            answer = Answer(400, f"{error}\n".encode(), {"Connection": "close"})
        else:
            answer = self._answer(request, host)
        if answer.delay:
            await http1.pause(reader, answer.delay)

        def count(size: int) -> None:
            self._sent[request.target] += size

        return await http1.write_answer(writer, request, answer, count)

    async def _read_rest(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, request: Request
    ) -> None:
        if not request.version:
            raise http1.BadRequestError("request line without a version")
        await http1.read_headers(reader, request.headers)
        if request.headers.get("expect", "").lower() == "100-continue":
            writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        request.body = await http1.read_body(reader, request.headers)

    def _answer(self, request: Request, host: str) -> Answer:
        script = self._script(request, host)
        answer = script.next() if script else pages.answer_for(request, self._visits)
        if request.path != "/robots.txt":
            answer = dataclasses.replace(answer, delay=answer.delay + self._think)
        if _is_unchanged(request, answer):
            return dataclasses.replace(answer, status=304, body=b"")
        return answer

    def _script(self, request: Request, host: str) -> _Script | None:
        """Return what was set for the request, the most special first.

        The whole target goes before the path alone; the User-Agent before the address.
        """
        user_agent = request.headers.get("user-agent", "").lower()
        for path in (request.origin_form, request.path):
            for part, script in self._by_user_agent.get(path, {}).items():
                if part in user_agent:
                    return script
            for key in ((path, host), (path, None)):
                if key in self._scripts:
                    return self._scripts[key]
        return None


def _is_unchanged(request: Request, answer: Answer) -> bool:
    """Whether a 304 is in place: RFC 9110 section 13.2.2, with one exact validator."""
    if answer.status != 200 or request.method not in {"GET", "HEAD"}:
        return False
    for asked, given in (("if-none-match", "ETag"), ("if-modified-since", "Last-Modified")):
        if asked in request.headers:
            return request.headers[asked] == answer.header(given)
    return False


def _listen(addresses: list[str], port: int) -> list[socket.socket]:
    """Return sockets bound to one same port of every address."""
    for _ in range(_PORT_TRIES):
        sockets: list[socket.socket] = []
        try:
            chosen = port
            for address in addresses:
                sockets.append(_bind(address, chosen))
                chosen = sockets[0].getsockname()[1]
        except OSError as error:
            for sock in sockets:
                sock.close()
            # A port that is free on the first address may be taken on another: try the next.
            if port or not sockets or error.errno != errno.EADDRINUSE:
                raise
        else:
            return sockets
    raise OSError(errno.EADDRINUSE, f"no port is free on all of {len(addresses)} addresses")


def _bind(address: str, port: int) -> socket.socket:
    sock = socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET)
    try:
        if os.name == "posix":  # a site restarted on its port; on Windows it means something else
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.bind((address, port))
    except OSError:
        sock.close()
        raise
    return sock


def _allow_many_files() -> None:
    """Let the site have as many connections as the system permits it."""
    if sys.platform != "win32":
        import resource

        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        wanted = 65_536 if hard == resource.RLIM_INFINITY else min(hard, 65_536)
        if soft != resource.RLIM_INFINITY and soft < wanted:
            with contextlib.suppress(OSError, ValueError):
                resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


async def _obey_stdin() -> None:
    loop = asyncio.get_running_loop()
    lines: asyncio.Queue[bytes] = asyncio.Queue()

    def read() -> None:  # in a thread, because Windows has no other way to wait for stdin
        for line in sys.stdin.buffer:
            loop.call_soon_threadsafe(lines.put_nowait, line)
        loop.call_soon_threadsafe(lines.put_nowait, b"")

    threading.Thread(target=read, daemon=True).start()
    server = _Server()
    while line := await lines.get():
        wish = json.loads(line)
        number = wish.pop("number")
        try:
            reply = {"reply": await getattr(server, wish.pop("do"))(**wish)}
        except (OSError, ValueError) as error:
            reply = {"error": f"{type(error).__name__}: {error}"}
        sys.stdout.write(json.dumps({"number": number, **reply}) + "\n")
        sys.stdout.flush()


def main() -> None:
    """Serve until stdin ends."""
    # Ctrl-C in a terminal reaches the whole group; the site is to live until its owner is done.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _allow_many_files()
    asyncio.run(_obey_stdin())


if __name__ == "__main__":
    main()
