"""A redis-server of the test's own, and processes that crawl."""

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Self

import pytest
import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from polite_transport import RedisStore, SQLiteStore
from polite_transport.stores.shared import SharedStore

CRAWL = Path(__file__).with_name("crawl.py")
START_SECONDS = 20.0


# In a cluster the servers talk on the port that is so much higher, and it has to be one.
CLUSTER_OFFSET = 10_000


def _free_port() -> int:
    while True:
        with socket.socket() as probe, socket.socket() as bus:
            probe.bind(("127.0.0.1", 0))
            port: int = probe.getsockname()[1]
            try:
                bus.bind(("127.0.0.1", port + CLUSTER_OFFSET))
            except (OSError, OverflowError):
                continue
            return port


class RedisServer:
    """redis-server from PATH on a free loopback port, without persistence unless told otherwise.

    options: of its command line, such as "--appendonly", "yes".
    """

    def __init__(self, folder: Path, *options: str) -> None:
        self._folder = folder
        self._options = options
        self.port = _free_port()
        self._running: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"redis://127.0.0.1:{self.port}/0"

    @property
    def client(self) -> "redis.Redis":
        # Told not to retry, which it does for seconds by itself.
        return redis.Redis(port=self.port, retry=Retry(NoBackoff(), 0))

    def start(self) -> Self:
        program = shutil.which("redis-server")
        assert program is not None
        place = ("--port", str(self.port), "--bind", "127.0.0.1", "--dir", str(self._folder))
        quiet = ("--save", "", "--logfile", str(self._folder / "redis.log"))
        self._running = subprocess.Popen([program, *place, *quiet, *self._options])
        deadline = time.monotonic() + START_SECONDS
        while True:
            try:
                with self.client as client:
                    client.ping()
            except (redis.exceptions.AuthenticationError, redis.exceptions.ResponseError):
                return self  # it wants a password: it is up
            except redis.exceptions.RedisError:
                assert time.monotonic() < deadline, "redis-server does not come up"
                assert self._running.poll() is None, "redis-server has ended"
                time.sleep(0.02)
            else:
                return self

    def stop(self) -> None:
        """Stop it at once, as in a crash."""
        if self._running is not None:
            self._running.kill()
            self._running.wait()
            self._running = None


def find_redis() -> None:
    """Skip the test where there is no redis-server; in CI that is a failure."""
    if shutil.which("redis-server") is not None:
        return
    reason = "redis-server is not in PATH (Debian, Ubuntu: apt install redis-server)"
    if os.environ.get("CI", "").lower() in ("1", "true", "yes"):
        pytest.fail(reason)
    pytest.skip(reason)


class Crawl:
    """A process that crawls with a store; ``crawl.py`` says what it takes."""

    def __init__(self, store: dict[str, Any], urls: Sequence[str], **options: Any) -> None:
        orders = json.dumps({"store": store, "urls": list(urls), **options})
        self._running = subprocess.Popen(
            [sys.executable, str(CRAWL), orders], stdout=subprocess.PIPE, text=True
        )

    def signal(self, number: signal.Signals) -> None:
        self._running.send_signal(number)

    def result(self, timeout: float = 60.0) -> dict[str, Any]:
        """What each thread got, and what went wrong."""
        try:
            out, _ = self._running.communicate(timeout=timeout)
        finally:
            self._running.kill()
        assert self._running.returncode == 0
        read: dict[str, Any] = json.loads(out)
        return read

    def kill(self) -> None:
        self._running.kill()
        self._running.wait()
        if self._running.stdout is not None:
            self._running.stdout.close()


def open_place(place: dict[str, Any]) -> SharedStore:
    """Open in this process what ``crawl.py`` takes."""
    options = {name: value for name, value in place.items() if name not in ("kind", "place")}
    kind = SQLiteStore if place["kind"] == "sqlite" else RedisStore
    return kind(place["place"], **options)


def jain(served: Sequence[int]) -> float:
    """Return Jain's index of fairness: 1.0 where all got the same."""
    return sum(served) ** 2 / (len(served) * sum(each * each for each in served))
