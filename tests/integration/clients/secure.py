"""What TLS and proxies need: a certificate of a private CA, a CONNECT proxy, an HTTP/2 site."""

import contextlib
import socket
import ssl
import threading
import time
from pathlib import Path
from typing import NamedTuple, Self

import h2.config
import h2.connection
import h2.events
import trustme


class Certificates(NamedTuple):
    """Paths of PEM files: what clients trust, and what a site shows."""

    ca: str
    chain: str
    key: str

    @property
    def trusted(self) -> ssl.SSLContext:
        """Return what a client of httpx takes as ``verify``."""
        return ssl.create_default_context(cafile=self.ca)


def make_certificates(folder: Path, *names: str) -> Certificates:
    """Issue a certificate for ``names`` by a CA of its own."""
    authority = trustme.CA()
    issued = authority.issue_cert(*names)
    paths = Certificates(*(str(folder / name) for name in ("ca.pem", "chain.pem", "key.pem")))
    authority.cert_pem.write_to_path(paths.ca)
    issued.private_key_pem.write_to_path(paths.key)
    for part in issued.cert_chain_pems:
        part.write_to_path(paths.chain, append=True)
    return paths


class Listening:
    """A server of a few connections, a thread each."""

    def __init__(self) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self._open: list[socket.socket] = []

    def __enter__(self) -> Self:
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        for each in (self._listener, *self._open):
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            each.close()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):  # closed at the end
            while True:
                connection, _ = self._listener.accept()
                self._open.append(connection)
                threading.Thread(target=self._watched, args=(connection,), daemon=True).start()

    def _watched(self, connection: socket.socket) -> None:
        with contextlib.suppress(OSError):
            self._serve(connection)

    def _serve(self, connection: socket.socket) -> None:
        raise NotImplementedError


class ConnectProxy(Listening):
    """A proxy that knows CONNECT alone. tunnels: the places that it was asked for."""

    def __init__(self) -> None:
        super().__init__()
        self.tunnels: list[str] = []

    @property
    def url(self) -> str:
        """Return what clients take as a proxy."""
        return f"http://127.0.0.1:{self.port}"

    def _serve(self, connection: socket.socket) -> None:
        head = b""
        while not head.endswith(b"\r\n\r\n"):
            head += connection.recv(1)
        method, place, _ = head.split(b"\r\n")[0].decode().split()
        assert method == "CONNECT"
        self.tunnels.append(place)
        site = socket.create_connection(("127.0.0.1", int(place.rpartition(":")[2])))
        self._open.append(site)
        connection.sendall(b"HTTP/1.1 200 Connected\r\n\r\n")
        threading.Thread(target=_pour, args=(site, connection), daemon=True).start()
        _pour(connection, site)


def _pour(here: socket.socket, there: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while piece := here.recv(65_536):
            there.sendall(piece)
        there.shutdown(socket.SHUT_WR)


class Http2Site(Listening):
    """A site that speaks HTTP/2 alone. arrivals: (monotonic seconds, path), in order."""

    def __init__(self, certificates: Certificates, robots: bytes) -> None:
        super().__init__()
        self.arrivals: list[tuple[float, str]] = []
        self._robots = robots
        self._tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._tls.load_cert_chain(certificates.chain, certificates.key)
        self._tls.set_alpn_protocols(["h2"])

    def url(self, path: str) -> str:
        """Return the URL of a path."""
        return f"https://127.0.0.1:{self.port}{path}"

    def _serve(self, connection: socket.socket) -> None:
        speaking = h2.connection.H2Connection(h2.config.H2Configuration(client_side=False))
        speaking.initiate_connection()
        with self._tls.wrap_socket(connection, server_side=True) as wire:
            wire.sendall(speaking.data_to_send())
            while piece := wire.recv(65_536):
                for event in speaking.receive_data(piece):
                    if isinstance(event, h2.events.RequestReceived):
                        self._answer(speaking, event)
                wire.sendall(speaking.data_to_send())

    def _answer(
        self, speaking: h2.connection.H2Connection, event: h2.events.RequestReceived
    ) -> None:
        path = dict(event.headers)[b":path"].decode()
        self.arrivals.append((time.monotonic(), path))
        body = self._robots if path == "/robots.txt" else b"a page"
        speaking.send_headers(event.stream_id, [(":status", "200")])
        speaking.send_data(event.stream_id, body, end_stream=True)
