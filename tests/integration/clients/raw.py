"""A site that answers robots.txt with bytes as they stand, at its own pace."""

import socket
import ssl
import time
from collections.abc import Iterable

from .secure import Certificates, Listening

PAGE = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok"


class RawSite(Listening):
    """A site that ends each connection after one answer.

    pieces: its robots.txt, status line and all; pause: seconds before each but the first.
    targets: what was asked for, in order. written: the pieces of each robots.txt that went out
    before the client was gone.
    """

    def __init__(
        self,
        pieces: Iterable[bytes],
        pause: float = 0.0,
        certificates: Certificates | None = None,
    ) -> None:
        super().__init__()
        self.pieces = list(pieces)
        self.pause = pause
        self.targets: list[str] = []
        self.written: list[int] = []
        self.scheme = "http"
        self._tls: ssl.SSLContext | None = None
        if certificates is not None:
            self.scheme = "https"
            self._tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            self._tls.load_cert_chain(certificates.chain, certificates.key)

    def url(self, path: str) -> str:
        """Return the URL of a path."""
        return f"{self.scheme}://127.0.0.1:{self.port}{path}"

    def _serve(self, connection: socket.socket) -> None:
        if self._tls is not None:
            connection = self._tls.wrap_socket(connection, server_side=True)
        with connection:
            head = b""
            while b"\r\n\r\n" not in head:
                piece = connection.recv(65_536)
                if not piece:
                    return
                head += piece
            target = head.split(b" ")[1].decode()
            self.targets.append(target)
            if target == "/robots.txt":
                self._write(connection)
            else:
                connection.sendall(PAGE)
            connection.shutdown(socket.SHUT_WR)
            while connection.recv(65_536):  # closing with bytes unread would be a reset
                pass

    def _write(self, connection: socket.socket) -> None:
        place = len(self.written)
        self.written.append(0)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for number, piece in enumerate(self.pieces):
            if number:
                time.sleep(self.pause)
            connection.sendall(piece)
            self.written[place] += 1
