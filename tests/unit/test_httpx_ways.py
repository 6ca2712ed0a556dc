"""What a ready transport of httpx tells of its way: a newer httpx that tells less fails here."""

import ssl
from typing import Any

import httpcore
import httpx
import pytest

from polite_transport.clients.httpx import way_of


def any_host() -> ssl.SSLContext:
    context = ssl.create_default_context()
    context.check_hostname = False
    return context


def nobody() -> ssl.SSLContext:
    context = any_host()
    context.verify_mode = ssl.CERT_NONE
    return context


@pytest.mark.parametrize("kind", [httpx.HTTPTransport, httpx.AsyncHTTPTransport])
@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({}, ""),
        ({"verify": ssl.create_default_context()}, ""),
        ({"http2": True, "retries": 3, "trust_env": False}, ""),
        ({"verify": False}, "unverified"),
        ({"verify": nobody()}, "unverified"),
        ({"verify": any_host()}, "unverified"),
        ({"proxy": "http://user:secret@Proxy.example"}, "proxy proxy.example:80"),
        ({"proxy": "https://proxy.example"}, "proxy proxy.example:443"),
        ({"proxy": httpx.Proxy("http://[::1]:3128", auth=("a", "b"))}, "proxy ::1:3128"),
        ({"proxy": "http://p:3128", "verify": False}, "unverified proxy p:3128"),
        (
            {"proxy": httpx.Proxy("https://p:3128", ssl_context=nobody())},
            "unverified proxy p:3128",
        ),
        ({"uds": "/run/daemon.sock"}, "proxy unix:///run/daemon.sock"),
    ],
)
def test_what_a_transport_of_httpx_tells(kind: Any, options: dict[str, Any], named: str) -> None:
    assert way_of(kind(**options)) == named


def test_what_a_pool_of_httpcore_s_own_tells() -> None:
    transport: Any = httpx.HTTPTransport()
    for proxy, named in (
        (None, ""),
        (httpcore.Proxy("socks5://proxy.example"), "proxy proxy.example:1080"),
        (
            httpcore.Proxy("https://proxy.example", ssl_context=nobody()),
            "unverified proxy proxy.example:443",
        ),
    ):
        transport._pool = httpcore.ConnectionPool(proxy=proxy)
        assert way_of(transport) == named


class OwnTransport(httpx.HTTPTransport):
    """A transport of the script's own, over the pool that httpx makes."""


class OwnPool(httpcore.ConnectionPool):
    """A pool that may connect in any way, as those of packages for SOCKS do."""


def test_what_nobody_knows_is_named_by_its_class() -> None:
    assert way_of(OwnTransport(verify=False)) == "unverified"
    transport: Any = OwnTransport()
    transport._pool = OwnPool()
    assert way_of(transport) == f"{__name__}.OwnPool"
    assert way_of(httpx.MockTransport(lambda _: httpx.Response(200))) == "httpx.MockTransport"
