"""A proxy on loopback that tunnels: it reads the CONNECT, and then only passes octets on."""

import socket
import socketserver
import threading
from contextlib import suppress
from types import TracebackType
from typing import Any, Self


class _Connection(socketserver.StreamRequestHandler):
    server: "_Server"

    def handle(self) -> None:
        method, place, _ = self.rfile.readline().decode("ascii").split()
        headers = list(iter(self.rfile.readline, b"\r\n"))
        self.server.asked.append((method, place))
        self.server.headers.append(b"".join(headers).decode("ascii"))
        if method != "CONNECT":
            self.wfile.write(b"HTTP/1.1 405 Method Not Allowed\r\nContent-Length: 0\r\n\r\n")
            return
        host, _, port = place.rpartition(":")
        with socket.create_connection((host, int(port))) as far:
            self.wfile.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
            back = threading.Thread(target=_pass_on, args=(far, self.connection))
            back.start()
            _pass_on(self.connection, far)
            back.join()


def _pass_on(near: socket.socket, far: socket.socket) -> None:
    with suppress(OSError):
        while octets := near.recv(65_536):
            far.sendall(octets)
    with suppress(OSError):
        far.shutdown(socket.SHUT_WR)


class _Server(socketserver.ThreadingTCPServer):
    allow_reuse_address = True
    daemon_threads = True

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.asked: list[tuple[str, str]] = []
        self.headers: list[str] = []


class Tunnel:
    """A running proxy. asked: the method and the place of each connection that it was given."""

    def __enter__(self) -> Self:
        self._server = _Server(("127.0.0.1", 0), _Connection)
        self.asked = self._server.asked
        self.headers = self._server.headers
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._server.shutdown()
        self._server.server_close()
