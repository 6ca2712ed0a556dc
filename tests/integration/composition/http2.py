"""A loopback site that speaks HTTP/2, and logs arrivals as ``polite_transport.testing.Site`` does.

hypercorn serves it, in a thread.
"""

import asyncio
import itertools
import socket
import threading
import time
from types import TracebackType
from typing import Any, Self

from hypercorn.asyncio import serve
from hypercorn.config import Config


class Http2Site:
    def __init__(self, robots: str, chain: str, key: str) -> None:
        self._robots = robots.encode()
        self._config = Config()
        self._config.certfile, self._config.keyfile = chain, key
        self._config.alpn_protocols = ["h2"]
        self._config.errorlog = None
        self._arrivals: list[tuple[float, str, str]] = []
        self._up = threading.Event()

    async def _app(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "lifespan":
            while True:
                message = await receive()
                await send({"type": f"{message['type']}.complete"})
                if message["type"] == "lifespan.shutdown":
                    return
                self._up.set()
        self._arrivals.append((time.monotonic(), scope["path"], scope["http_version"]))
        body = self._robots if scope["path"] == "/robots.txt" else b"a page"
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": body})

    async def _serve(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._stop = asyncio.Event()
        await serve(self._app, self._config, shutdown_trigger=self._stop.wait)

    def __enter__(self) -> Self:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self._port = free.getsockname()[1]
        self._config.bind = [f"127.0.0.1:{self._port}"]
        self._thread = threading.Thread(target=lambda: asyncio.run(self._serve()))
        self._thread.start()
        assert self._up.wait(10)
        for _ in range(100):  # its start-up is over a moment before it listens
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", self._port)) == 0:
                    break
            time.sleep(0.02)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join()

    def url(self, path: str) -> str:
        return f"https://127.0.0.1:{self._port}{path}"

    def targets(self) -> list[str]:
        return [path for _, path, _ in self._arrivals]

    def gaps(self) -> list[float]:
        times = [when for when, _, _ in self._arrivals]
        return [b - a for a, b in itertools.pairwise(times)]
