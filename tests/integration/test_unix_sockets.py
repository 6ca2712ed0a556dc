"""Clients of daemons on unix sockets, made as their libraries make them: left alone."""

import asyncio
import http.client
import http.server
import socket
import socketserver
import threading
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import aiohttp
import httpx
import pytest
import requests
import urllib3
from requests.adapters import HTTPAdapter
from urllib3.connection import HTTPConnection

from polite_transport import DisallowedByRobots, MemoryStore, install
from polite_transport.testing import Site


class _UnixServer(socketserver.ThreadingUnixStreamServer):
    daemon_threads = True

    def get_request(self) -> Any:
        connection, _ = super().get_request()
        return connection, ("unix", 0)


class _Answers(http.server.BaseHTTPRequestHandler):
    asked: list[str]

    def do_GET(self) -> None:
        self.asked.append(self.path)
        self.send_response(200)
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"ok")

    def log_message(self, *_: object) -> None:
        """Print nothing."""


@pytest.fixture
def daemon(tmp_path: Path) -> Iterator[tuple[str, list[str]]]:
    """Start one: where it is, and what it was asked."""
    asked: list[str] = []
    place = str(tmp_path / "daemon.sock")
    with _UnixServer(place, type("Answers", (_Answers,), {"asked": asked})) as server:
        threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
        yield place, asked
        server.shutdown()


def _connect(place: str) -> socket.socket:
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    connection.connect(place)
    return connection


def _pool_to(place: str) -> urllib3.HTTPConnectionPool:
    class UnixHTTPConnection(HTTPConnection):
        def connect(self) -> None:
            self.sock = _connect(place)

    class UnixHTTPConnectionPool(urllib3.HTTPConnectionPool):
        ConnectionCls = UnixHTTPConnection

    return UnixHTTPConnectionPool("localhost")


def test_a_pool_of_urllib3(daemon: tuple[str, list[str]], store: MemoryStore) -> None:
    place, asked = daemon
    with install(store=store), _pool_to(place) as pool:
        assert pool.request("GET", "/version").data == b"ok"
    assert asked == ["/version"]


@pytest.mark.parametrize("scheme", ["http+unix", "http+docker"])
def test_an_adapter_of_requests(
    daemon: tuple[str, list[str]], store: MemoryStore, scheme: str
) -> None:
    place, asked = daemon

    class UnixAdapter(HTTPAdapter):
        def get_connection_with_tls_context(self, *_: Any, **__: Any) -> Any:
            return _pool_to(place)

        def request_url(self, request: requests.PreparedRequest, proxies: Any) -> str:  # noqa: ARG002
            return request.path_url

    with install(store=store), requests.Session() as session:
        session.mount(f"{scheme}://", UnixAdapter())
        assert session.get(f"{scheme}://localhost/version").text == "ok"
    assert asked == ["/version"]


def test_an_opener_of_urllib(daemon: tuple[str, list[str]], store: MemoryStore) -> None:
    place, asked = daemon

    class UnixHTTPConnection(http.client.HTTPConnection):
        def connect(self) -> None:
            self.sock = _connect(place)

    class UnixSockets(urllib.request.HTTPHandler):
        def http_open(self, req: urllib.request.Request) -> http.client.HTTPResponse:
            return self.do_open(UnixHTTPConnection, req)

    with (
        install(store=store),
        urllib.request.build_opener(UnixSockets()).open("http://localhost/version") as response,
    ):
        assert response.read() == b"ok"
    assert asked == ["/version"]


def test_docker_s_pool_makes_its_own_connections(
    daemon: tuple[str, list[str]], store: MemoryStore
) -> None:
    place, asked = daemon

    class UnixHTTPConnection(HTTPConnection):
        def connect(self) -> None:
            self.sock = _connect(place)

    class UnixHTTPConnectionPool(urllib3.HTTPConnectionPool):  # its ConnectionCls is urllib3's
        def _new_conn(self) -> Any:
            return UnixHTTPConnection("localhost")

    with install(store=store), UnixHTTPConnectionPool("localhost") as pool:
        assert pool.request("GET", "/version").data == b"ok"
    assert asked == ["/version"]


# --- what is no unix socket, whatever it is called --------------------------------------------


class MunixPool(urllib3.HTTPConnectionPool):
    """The syllable is chance."""

    def _new_conn(self) -> Any:
        return super()._new_conn()


class UnixTimePool(urllib3.HTTPConnectionPool):
    """The word is there, and the connection is as ever."""

    def age(self) -> int:
        return 0


class UnixlikeConnection(HTTPConnection):
    """A longer word."""

    def connect(self) -> None:
        super().connect()


class UnixlikePool(urllib3.HTTPConnectionPool):
    ConnectionCls = UnixlikeConnection


@pytest.mark.parametrize("pool_class", [MunixPool, UnixTimePool, UnixlikePool])
def test_a_name_alone_leaves_no_pool_alone(
    site: Callable[..., Site], store: MemoryStore, pool_class: type[urllib3.HTTPConnectionPool]
) -> None:
    place = site("User-agent: *\nDisallow: /private\n")
    with install(store=store), pool_class(place.host, place.port) as pool:
        pool.request("GET", "/page")
        with pytest.raises(DisallowedByRobots):
            pool.request("GET", "/private")
    assert place.targets() == ["/robots.txt", "/page"]


def test_a_name_alone_leaves_no_opener_alone(site: Callable[..., Site], store: MemoryStore) -> None:
    class MunixConnection(http.client.HTTPConnection):
        def connect(self) -> None:
            super().connect()

    class Munix(urllib.request.HTTPHandler):
        def http_open(self, req: urllib.request.Request) -> http.client.HTTPResponse:
            return self.do_open(MunixConnection, req)

    place = site("User-agent: *\nDisallow: /private\n")
    with install(store=store), pytest.raises(DisallowedByRobots):
        urllib.request.build_opener(Munix()).open(place.url("/private"))
    assert place.targets() == ["/robots.txt"]


def test_what_httpx_and_aiohttp_make_for_a_unix_socket(
    daemon: tuple[str, list[str]], store: MemoryStore
) -> None:
    place, asked = daemon
    with install(ua="MyBot/1.0 (+https://example.org/bot)", store=store):
        with httpx.Client(transport=httpx.HTTPTransport(uds=place)) as client:
            assert client.get("http://localhost/1").text == "ok"

        async def ask() -> None:
            transport = httpx.AsyncHTTPTransport(uds=place)
            async with httpx.AsyncClient(transport=transport) as async_client:
                await async_client.get("http://localhost/2")
            async with aiohttp.ClientSession(connector=aiohttp.UnixConnector(place)) as session:
                await (await session.get("http://localhost/3")).read()

        asyncio.run(ask())
    assert asked == ["/1", "/2", "/3"]
