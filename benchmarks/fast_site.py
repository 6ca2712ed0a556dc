"""A web site that answers as fast as Python can, in a process of its own.

It reads a request without parsing it and sends ready-made bytes, so that what is measured is the
client.
"""

from __future__ import annotations

import contextlib
import socket
import subprocess
import sys
import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

# None of them matches a page that is asked for; all are of the kind that costs most to check.
WILDCARD_RULES = 100
ROBOTS = "User-agent: *\n" + "".join(
    f"Disallow: /*/section-{number}/*.php$\n" for number in range(WILDCARD_RULES)
)


def _response(body: bytes) -> bytes:
    return (
        b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n"
        b"Date: Thu, 01 Jan 2026 00:00:00 GMT\r\n"
        b"Content-Length: %d\r\n\r\n%s" % (len(body), body)
    )


_PAGE = _response(b"a page\n" * 50)
_ROBOTS_TXT = _response(ROBOTS.encode())


def _serve(connection: socket.socket) -> None:
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    with connection, contextlib.suppress(OSError):
        while request := connection.recv(65_536):
            while not request.endswith(b"\r\n\r\n"):
                request += connection.recv(65_536)
            is_robots = request.startswith(b"GET /robots.txt ")
            connection.sendall(_ROBOTS_TXT if is_robots else _PAGE)


def _listen() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        print(listener.getsockname()[1], flush=True)
        while True:
            connection, _ = listener.accept()
            threading.Thread(target=_serve, args=(connection,), daemon=True).start()


@contextlib.contextmanager
def fast_site() -> Iterator[str]:
    """Run the site; its origin is what ``with`` gives."""
    with subprocess.Popen(
        [sys.executable, __file__], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as server:
        try:
            assert server.stdout is not None
            yield f"http://127.0.0.1:{int(server.stdout.readline())}"
        finally:
            server.terminate()


def main() -> None:
    """Serve until the process that started this one goes away."""
    threading.Thread(target=_listen, daemon=True).start()
    sys.stdin.read()


if __name__ == "__main__":
    main()
