"""Proxies: robots.txt is read through the page's own, before the page."""

import ssl
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from urllib.request import ProxyHandler, build_opener

import httpx
import pytest
import requests
import urllib3

from polite_transport import (
    DisallowedByRobots,
    MemoryStore,
    Policy,
    PolitePoolManager,
    PoliteProxyManager,
    PoliteSession,
    PoliteTransport,
    WaitTooLong,
    install,
    politely,
)
from polite_transport.testing import Answer, Site

from .conftest import Authority
from .tunnel import Tunnel

UA = "MyBot/1.0 (+https://example.org/bot)"
DELAY = 0.06
ROBOTS = f"User-agent: *\nDisallow: /private\nCrawl-delay: {DELAY}\n"
Start = Callable[..., Site]
Get = Callable[[str], Any]
FAR = "http://far.example"  # nobody's: only a proxy can answer for it

# Every way to say "through this proxy": a context with a function that GETs a URL.


@contextmanager
def session_proxies(proxy: str, ca: str | None, store: MemoryStore) -> Iterator[Get]:
    with PoliteSession(ua=UA, store=store) as session:
        session.proxies = {"http": proxy, "https": proxy}
        session.verify = ca or True
        yield session.get


@contextmanager
def politely_session(proxy: str, ca: str | None, store: MemoryStore) -> Iterator[Get]:
    session = requests.Session()
    session.proxies, session.verify = {"all": proxy}, ca or True
    with politely(session, ua=UA, store=store):
        yield session.get


@contextmanager
def transport_proxy(proxy: str, ca: str | None, store: MemoryStore) -> Iterator[Get]:
    transport = PoliteTransport(ua=UA, store=store, proxy=proxy, verify=trusting(ca))
    with httpx.Client(transport=transport) as client:
        yield client.get


@contextmanager
def politely_client_proxy(proxy: str, ca: str | None, store: MemoryStore) -> Iterator[Get]:
    client = httpx.Client(proxy=proxy, verify=trusting(ca))
    with politely(client, ua=UA, store=store):
        yield client.get


@contextmanager
def politely_client_mounts(proxy: str, ca: str | None, store: MemoryStore) -> Iterator[Get]:
    mounts = {"all://": httpx.HTTPTransport(proxy=proxy, verify=trusting(ca))}
    with politely(httpx.Client(mounts=mounts), ua=UA, store=store) as client:
        yield client.get


@contextmanager
def proxy_manager(proxy: str, ca: str | None, store: MemoryStore) -> Iterator[Get]:
    with PoliteProxyManager(proxy, ua=UA, store=store, ca_certs=ca) as manager:
        yield lambda url: manager.request("GET", url)


@contextmanager
def politely_proxy_manager(proxy: str, ca: str | None, store: MemoryStore) -> Iterator[Get]:
    with politely(urllib3.ProxyManager(proxy, ca_certs=ca), ua=UA, store=store) as manager:
        yield lambda url: manager.request("GET", url)


@contextmanager
def installed_proxy_manager(proxy: str, ca: str | None, store: MemoryStore) -> Iterator[Get]:
    with install(ua=UA, store=store), urllib3.ProxyManager(proxy, ca_certs=ca) as manager:
        yield lambda url: manager.request("GET", url)


@contextmanager
def installed_session(proxy: str, ca: str | None, store: MemoryStore) -> Iterator[Get]:
    with install(ua=UA, store=store), requests.Session() as session:
        session.proxies, session.verify = {"all": proxy}, ca or True
        yield session.get


@contextmanager
def proxy_managers_pools(proxy: str, ca: str | None, store: MemoryStore) -> Iterator[Get]:
    with PoliteProxyManager(proxy, ua=UA, store=store, ca_certs=ca) as manager:

        def get(url: str) -> Any:
            pool = manager.connection_from_url(url)
            if url.startswith("https:"):  # through a tunnel, at whose end is the site
                return pool.request("GET", urllib3.util.parse_url(url).request_uri)
            return pool.request("GET", url, assert_same_host=False)

        yield get


def trusting(ca: str | None) -> ssl.SSLContext:
    return ssl.create_default_context(cafile=ca)


WAYS = [
    session_proxies,
    politely_session,
    transport_proxy,
    politely_client_proxy,
    politely_client_mounts,
    proxy_manager,
    politely_proxy_manager,
    installed_proxy_manager,
    installed_session,
    proxy_managers_pools,
]


@pytest.mark.parametrize("way", WAYS)
def test_an_http_proxy(site: Start, store: MemoryStore, way: Callable[..., Any]) -> None:
    proxy = site(ROBOTS)  # it answers absolute URLs as if they were its own
    with way(proxy.origin, None, store) as get:
        for number in range(2):
            get(f"{FAR}/{number}")
        with pytest.raises(DisallowedByRobots):
            get(f"{FAR}/private/x")
    assert proxy.targets() == [f"{FAR}/robots.txt", f"{FAR}/0", f"{FAR}/1"]
    # What paces is the host that is asked, not the proxy on the way; here they are one log.
    assert min(proxy.gaps()) >= DELAY


@pytest.mark.parametrize("way", WAYS)
def test_a_tunnel_to_a_site_with_a_private_ca(
    tls_site: Start,
    tunnel: Callable[[], Tunnel],
    authority: Authority,
    store: MemoryStore,
    way: Callable[..., Any],
) -> None:
    place, proxy = tls_site(ROBOTS), tunnel()
    with way(proxy.url, authority.ca, store) as get:
        for number in range(2):
            get(place.url(f"/{number}"))
        with pytest.raises(DisallowedByRobots):
            get(place.url("/private/x"))
    assert place.targets() == ["/robots.txt", "/0", "/1"]
    assert min(place.gaps()) >= DELAY
    assert set(proxy.asked) == {("CONNECT", f"127.0.0.1:{place.port}")}
    # In the order of the log no request came by another way.
    assert len({each.connection for each in place.log}) <= len(proxy.asked)


@pytest.mark.parametrize("way", [proxy_manager, installed_proxy_manager, proxy_managers_pools])
def test_a_proxy_that_is_reached_over_tls(
    tls_site: Start, authority: Authority, store: MemoryStore, way: Callable[..., Any]
) -> None:
    proxy = tls_site(ROBOTS)
    with way(proxy.origin, authority.ca, store) as get:
        get(f"{FAR}/page")
        with pytest.raises(DisallowedByRobots):
            get(f"{FAR}/private/x")
    assert proxy.targets() == [f"{FAR}/robots.txt", f"{FAR}/page"]


@pytest.mark.parametrize("way", [proxy_manager, installed_proxy_manager, proxy_managers_pools])
def test_a_robots_txt_that_moved_is_read_through_the_proxy_too(
    site: Start, store: MemoryStore, way: Callable[..., Any]
) -> None:
    elsewhere = "http://rules.example/robots.txt"
    proxy = site(
        [Answer(301, headers={"Location": elsewhere}), Answer(body=ROBOTS.encode())],
    )
    with way(proxy.origin, None, store) as get:
        get(f"{FAR}/page")
        with pytest.raises(DisallowedByRobots):
            get(f"{FAR}/private/x")
    assert proxy.targets() == [f"{FAR}/robots.txt", elsewhere, f"{FAR}/page"]


def test_two_sites_through_one_proxy_have_a_pace_each(site: Start, store: MemoryStore) -> None:
    proxy = site("User-agent: *\nCrawl-delay: 30\n")
    asked: list[str] = []
    at_once = Policy(max_wait=0)
    with PoliteProxyManager(proxy.origin, ua=UA, store=store, policy=at_once) as manager:
        for number in range(3):
            with pytest.raises(WaitTooLong):  # its page; robots.txt was the first
                manager.request("GET", f"http://far{number}.example/")
            asked.append(f"http://far{number}.example/robots.txt")
    assert proxy.targets() == asked


# --- the environment's ----------------------------------------------------------------------


@pytest.fixture
def environment(site: Start, monkeypatch: pytest.MonkeyPatch) -> Site:
    """Name a proxy in the environment that is not for loopback itself."""
    proxy = site(ROBOTS)
    for name in ("HTTP_PROXY", "http_proxy"):
        monkeypatch.setenv(name, proxy.origin)
    for name in ("NO_PROXY", "no_proxy"):
        monkeypatch.setenv(name, "127.0.0.1")
    return proxy


ROBOTS_FIRST = [f"{FAR}/robots.txt", f"{FAR}/page"]


@pytest.mark.parametrize(
    "make", [httpx.Client, lambda: httpx.Client(verify=False)], ids=["default", "verify=False"]
)
def test_a_client_made_polite_keeps_the_environments(
    site: Start, environment: Site, store: MemoryStore, make: Callable[[], httpx.Client]
) -> None:
    direct = site(ROBOTS)
    with politely(make(), ua=UA, store=store) as client:
        client.get(f"{FAR}/page")
        client.get(direct.url("/page"))
    assert environment.targets() == ROBOTS_FIRST
    assert direct.targets() == ["/robots.txt", "/page"]


def test_an_installed_process_keeps_the_environments(
    site: Start, environment: Site, store: MemoryStore
) -> None:
    direct = site(ROBOTS)
    gets: list[Get] = [
        requests.get,
        httpx.get,
        build_opener(ProxyHandler({"http": environment.origin})).open,
        build_opener(ProxyHandler()).open,
    ]
    for get in gets:
        with install(ua=UA, store=MemoryStore()):
            get(f"{FAR}/page")
    with install(ua=UA, store=store):
        requests.get(direct.url("/page"), timeout=5)
    assert environment.targets() == ROBOTS_FIRST * len(gets)
    assert direct.targets() == ["/robots.txt", "/page"]


def test_urllib3_itself_looks_at_no_environment(
    site: Start, environment: Site, store: MemoryStore
) -> None:
    direct = site(ROBOTS)
    with PolitePoolManager(ua=UA, store=store) as manager:
        manager.request("GET", direct.url("/page"))
    assert environment.targets() == []
    assert direct.targets() == ["/robots.txt", "/page"]


@pytest.mark.parametrize("session", [PoliteSession, requests.Session])
def test_a_tunnel_in_the_environment(
    tls_site: Start,
    tunnel: Callable[[], Tunnel],
    authority: Authority,
    store: MemoryStore,
    monkeypatch: pytest.MonkeyPatch,
    session: type[requests.Session],
) -> None:
    place, proxy = tls_site(ROBOTS), tunnel()
    monkeypatch.setenv("HTTPS_PROXY", proxy.url)
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", authority.ca)
    monkeypatch.delenv("NO_PROXY", raising=False)
    monkeypatch.delenv("no_proxy", raising=False)
    with politely(session(), ua=UA, store=store) as polite:
        polite.get(place.url("/page"))
    assert place.targets() == ["/robots.txt", "/page"]
    assert proxy.asked == [("CONNECT", f"127.0.0.1:{place.port}")]


@pytest.mark.parametrize("way", [politely_session, transport_proxy, politely_client_proxy])
def test_a_proxys_credentials_go_to_the_proxy_alone(
    tls_site: Start,
    tunnel: Callable[[], Tunnel],
    authority: Authority,
    store: MemoryStore,
    way: Callable[..., Any],
) -> None:
    place, proxy = tls_site(ROBOTS), tunnel()
    named = proxy.url.replace("http://", "http://user:secret@")
    with way(named, authority.ca, store) as get:
        get(place.url("/page"))
    assert proxy.headers
    assert all("proxy-authorization: basic" in each.lower() for each in proxy.headers)
    assert place.targets() == ["/robots.txt", "/page"]
    assert not any("proxy-authorization" in each.headers for each in place.log)
