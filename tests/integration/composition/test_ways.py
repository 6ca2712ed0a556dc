"""A copy of robots.txt is shared by those who go the same way to the site, and by nobody else.

The ways are: with or without a look at the certificate, directly or through a proxy. Each request
goes through a client of its own, so that only the store connects one with the next.
"""

import asyncio
import http.client
import ssl
from collections.abc import Callable
from typing import Any
from urllib.request import HTTPHandler, ProxyHandler, Request, build_opener

import aiohttp
import httpx
import pytest

from polite_transport import (
    AsyncPoliteTransport,
    DisallowedByRobots,
    MemoryStore,
    PoliteTransport,
    install,
    politely,
)
from polite_transport.testing import Site

from .conftest import Authority
from .one_get import CLIENTS, UA, Get, installed_urllib, politely_client, verify
from .tunnel import Tunnel

ROBOTS = "User-agent: *\nDisallow: /private\n"
CLOSED = "User-agent: *\nDisallow: /\n"
Start = Callable[..., Site]
unverified = pytest.mark.filterwarnings("ignore:Unverified HTTPS request")
ONCE_FOR_EACH = ["/robots.txt", "/1", "/robots.txt", "/2", "/3", "/4"]


@unverified
@pytest.mark.parametrize("get", CLIENTS)
def test_with_and_without_a_look_at_the_certificate(
    tls_site: Start, authority: Authority, store: MemoryStore, get: Get
) -> None:
    place = tls_site(ROBOTS)
    for path, ca in (("/1", None), ("/2", authority.ca), ("/3", None), ("/4", authority.ca)):
        get(place.url(path), store, ca, None)
    assert place.targets() == ONCE_FOR_EACH


@pytest.mark.parametrize("get", CLIENTS)
def test_through_a_proxy_and_directly(
    tls_site: Start,
    tunnel: Callable[[], Tunnel],
    authority: Authority,
    store: MemoryStore,
    get: Get,
) -> None:
    place, proxy = tls_site(ROBOTS), tunnel()
    for path, through in (("/1", proxy.url), ("/2", None), ("/3", proxy.url), ("/4", None)):
        asked = len(proxy.asked)
        get(place.url(path), store, authority.ca, through)
        assert (len(proxy.asked) > asked) == (through is not None)
    assert place.targets() == ONCE_FOR_EACH


@pytest.mark.parametrize("get", CLIENTS)
def test_what_a_proxy_says_for_a_site_counts_for_those_who_use_it(
    site: Start, store: MemoryStore, get: Get
) -> None:
    place, proxy = site(CLOSED), site(ROBOTS)  # the proxy answers in the site's place
    get(place.url("/1"), store, None, proxy.origin)
    with pytest.raises(DisallowedByRobots):
        get(place.url("/2"), store, None, None)
    get(place.url("/3"), store, None, proxy.origin)
    assert place.targets() == ["/robots.txt"]
    assert proxy.targets() == [place.url(path) for path in ("/robots.txt", "/1", "/3")]


@unverified
@pytest.mark.parametrize("proxied", [False, True], ids=["directly", "through a proxy"])
@pytest.mark.parametrize("verified", [False, True], ids=["unverified", "verified"])
def test_all_clients_that_go_one_way_share_one_copy(
    tls_site: Start,
    tunnel: Callable[[], Tunnel],
    authority: Authority,
    store: MemoryStore,
    proxied: bool,
    verified: bool,
) -> None:
    place, proxy = tls_site(ROBOTS), tunnel()
    for get in CLIENTS:
        ca, through = authority.ca if verified else None, proxy.url if proxied else None
        get(place.url(f"/{get.__name__}"), store, ca, through)
    assert place.targets() == ["/robots.txt", *[f"/{get.__name__}" for get in CLIENTS]]


def test_a_polite_client_that_takes_on_new_options_goes_its_own_way_still(
    tls_site: Start, authority: Authority, store: MemoryStore
) -> None:
    place = tls_site(ROBOTS)
    client = politely(httpx.Client(verify=False), ua="Other/1.0 (+https://example.org)")
    with politely(client, ua=UA, store=store):
        client.get(place.url("/1"))
    politely_client(place.url("/2"), store, authority.ca, None)
    assert place.targets() == ["/robots.txt", "/1", "/robots.txt", "/2"]


def test_what_is_only_checked_is_checked_on_its_own_way(
    tls_site: Start, authority: Authority, store: MemoryStore
) -> None:
    place = tls_site(ROBOTS)
    for ca in (None, authority.ca, None, authority.ca):
        ready = httpx.HTTPTransport(verify=verify(ca))
        with PoliteTransport(ready, ua=UA, store=store) as transport:
            assert transport.check(place.url("/page")).allowed
    assert place.targets() == ["/robots.txt"] * 2


# --- the environment's proxies --------------------------------------------------------------


def environment_client(url: str, store: MemoryStore) -> None:
    with politely(httpx.Client(), ua=UA, store=store) as client:
        client.get(url)


def environment_transport(url: str, store: MemoryStore) -> None:
    with httpx.Client(transport=PoliteTransport(ua=UA, store=store)) as client:
        client.get(url)


def environment_async(url: str, store: MemoryStore) -> None:
    async def main() -> None:
        async with politely(httpx.AsyncClient(), ua=UA, store=store) as client:
            await client.get(url)

    asyncio.run(main())


def environment_async_transport(url: str, store: MemoryStore) -> None:
    async def main() -> None:
        polite = AsyncPoliteTransport(ua=UA, store=store)
        async with httpx.AsyncClient(transport=polite) as client:
            await client.get(url)

    asyncio.run(main())


def environment_httpx(url: str, store: MemoryStore) -> None:
    with install(ua=UA, store=store):
        httpx.get(url)


def environment_urllib(url: str, store: MemoryStore) -> None:
    with install(ua=UA, store=store), build_opener().open(url, timeout=10):
        pass


def environment_aiohttp(url: str, store: MemoryStore) -> None:
    async def main() -> None:
        async with aiohttp.ClientSession(trust_env=True) as session, session.get(url):
            pass

    with install(ua=UA, store=store):
        asyncio.run(main())


ENVIRONMENT = [
    environment_client,
    environment_transport,
    environment_async,
    environment_async_transport,
    environment_httpx,
    environment_urllib,
    environment_aiohttp,
]


@pytest.mark.parametrize("get", ENVIRONMENT)
def test_a_proxy_of_the_environment_is_a_way_of_its_own(
    site: Start, store: MemoryStore, monkeypatch: pytest.MonkeyPatch, get: Callable[..., None]
) -> None:
    place, proxy = site(CLOSED), site(ROBOTS)
    monkeypatch.setenv("http_proxy", proxy.origin)
    get(place.url("/1"), store)
    with pytest.raises(DisallowedByRobots):
        politely_client(place.url("/2"), store, None, None)
    get(place.url("/3"), store)
    installed_urllib(place.url("/4"), store, None, proxy.origin)  # named by the script
    assert place.targets() == ["/robots.txt"]
    assert proxy.targets() == [place.url(path) for path in ("/robots.txt", "/1", "/3", "/4")]


@pytest.mark.parametrize("get", [environment_urllib, environment_aiohttp, environment_client])
def test_credentials_of_a_proxy_go_along_to_robots_txt(
    site: Start, store: MemoryStore, monkeypatch: pytest.MonkeyPatch, get: Callable[..., None]
) -> None:
    # A proxy that misses them answers 407, and that would be taken for the site's own answer.
    place, proxy = site(CLOSED), site(ROBOTS)
    monkeypatch.setenv("http_proxy", proxy.origin.replace("http://", "http://user:secret@"))
    get(place.url("/page"), store)
    assert proxy.targets() == [place.url("/robots.txt"), place.url("/page")]
    sent = [each.headers.get("proxy-authorization") for each in proxy.log]
    assert sent == ["Basic dXNlcjpzZWNyZXQ="] * 2


# --- what nobody knows ----------------------------------------------------------------------


def test_a_transport_of_someone_else_s_is_a_way_of_its_own(site: Start, store: MemoryStore) -> None:
    place = site(CLOSED)

    def open_to_all(request: httpx.Request) -> httpx.Response:
        assert request.url.path in {"/robots.txt", "/1"}
        return httpx.Response(200, text=ROBOTS)

    strange = PoliteTransport(httpx.MockTransport(open_to_all), ua=UA, store=store)
    with httpx.Client(transport=strange) as client:
        client.get(place.url("/1"))
    with pytest.raises(DisallowedByRobots):
        politely_client(place.url("/2"), store, None, None)
    assert place.targets() == ["/robots.txt"]


class _Bound(aiohttp.TCPConnector):
    """A connector that may do anything; this one does nothing."""


class _Connection(http.client.HTTPConnection):
    """A connection that may go anywhere; this one goes where it is told."""


class _Opening(HTTPHandler):
    def http_open(self, req: Request) -> http.client.HTTPResponse:
        return self.do_open(_Connection, req)


def strange_aiohttp(url: str) -> None:
    async def main() -> None:
        async with aiohttp.ClientSession(connector=_Bound()) as session, session.get(url):
            pass

    asyncio.run(main())


def strange_urllib(url: str) -> None:
    with build_opener(ProxyHandler({}), _Opening).open(url, timeout=10):
        pass


@pytest.mark.parametrize("get", [strange_aiohttp, strange_urllib])
def test_so_is_a_connection_of_someone_else_s(
    site: Start, store: MemoryStore, get: Callable[[str], None]
) -> None:
    place = site(ROBOTS)
    for pair in ("12", "34"):
        with install(ua=UA, store=store):
            get(place.url(f"/{pair[0]}"))
        installed_urllib(place.url(f"/{pair[1]}"), store, None, None)
    assert place.targets() == ONCE_FOR_EACH


def test_urllib_whose_default_context_is_replaced_looks_at_no_certificate(
    tls_site: Start, authority: Authority, store: MemoryStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = tls_site(ROBOTS)
    private: Any = ssl
    with monkeypatch.context() as patched, install(ua=UA, store=store):
        patched.setattr(
            private, "_create_default_https_context", private._create_unverified_context
        )
        with build_opener(ProxyHandler({})).open(place.url("/1"), timeout=10):
            pass
    installed_urllib(place.url("/2"), store, authority.ca, None)
    assert place.targets() == ["/robots.txt", "/1", "/robots.txt", "/2"]
