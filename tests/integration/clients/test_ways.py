"""The way to a site, which robots.txt goes as well: proxies, TLS, HTTP/2."""

import itertools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import httpx
import pytest
import requests

from polite_transport import (
    AsyncPoliteTransport,
    DisallowedByRobots,
    MemoryStore,
    PoliteProxyManager,
    PoliteSession,
    PoliteTransport,
)
from polite_transport.testing import Site

from .faces import UA, Visitor
from .secure import Certificates, ConnectProxy, Http2Site, make_certificates

DELAY = 0.1
ROBOTS = f"User-agent: *\nDisallow: /private\nCrawl-delay: {DELAY}\n"
Start = Callable[..., Site]
Visit = Callable[..., Visitor]
PROXY_VARIABLES = [
    each.format(scheme)
    for each in ("{}_proxy", "{}_PROXY")
    for scheme in ("http", "https", "all", "no", "HTTP", "HTTPS", "ALL", "NO")
]


@pytest.fixture(autouse=True)
def no_proxies(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in {*PROXY_VARIABLES, *map(str.lower, PROXY_VARIABLES)}:
        monkeypatch.delenv(name, raising=False)


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    folder: Path = tmp_path_factory.mktemp("certificates")
    return make_certificates(folder, "127.0.0.1", "localhost")


def gaps_by_target(proxy: Site, host: str) -> list[float]:
    times = [each.time for each in proxy.log if each.target.startswith(f"http://{host}/")]
    return [later - earlier for earlier, later in itertools.pairwise(times)]


@pytest.mark.parametrize("visit", ["requests", "httpx", "asyncio", "trio"], indirect=True)
def test_the_environment_s_proxies_and_exceptions(
    site: Start, visit: Visit, monkeypatch: pytest.MonkeyPatch
) -> None:
    proxy, direct = site(ROBOTS), site(ROBOTS)
    monkeypatch.setenv("HTTP_PROXY", proxy.origin)
    monkeypatch.setenv("http_proxy", proxy.origin)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    client = visit()
    urls = [f"http://{host}.example/{n}" for n in range(2) for host in "ab"]
    client.get_all([*urls, direct.url("/page")])
    with pytest.raises(DisallowedByRobots):
        client.get("http://a.example/private")
    assert direct.targets() == ["/robots.txt", "/page"]
    robots = [f"http://{host}.example/robots.txt" for host in "ab"]
    assert sorted(proxy.targets()) == sorted([*robots, *urls])
    for host in ("a.example", "b.example"):
        # Turns are the sites', not the proxy's.
        assert min(gaps_by_target(proxy, host)) >= DELAY


@pytest.mark.parametrize("visit", ["requests", "httpx", "trio"], indirect=True)
def test_an_international_name_is_asked_for_in_its_ascii_spelling(
    site: Start, visit: Visit, monkeypatch: pytest.MonkeyPatch
) -> None:
    proxy = site(ROBOTS)
    monkeypatch.setenv("http_proxy", proxy.origin)
    client = visit()
    client.get("http://b\u00fccher.example/page")
    with pytest.raises(DisallowedByRobots) as refused:
        client.get("HTTP://B\u00dcCHER.example./private")
    assert refused.value.decision.robots_url == "http://xn--bcher-kva.example/robots.txt"
    places = {each.split("/")[2] for each in proxy.targets()}
    assert places == {"xn--bcher-kva.example"}
    assert len(proxy.log) == 2


def test_a_proxy_that_the_script_names(site: Start, store: MemoryStore) -> None:
    proxy = site(ROBOTS)
    manager = PoliteProxyManager(proxy.origin, ua=UA, store=store)
    with PoliteSession(ua=UA, store=store) as session:
        session.proxies["http"] = proxy.origin
        session.get("http://a.example/1")
    manager.request("GET", "http://a.example/2")
    with httpx.Client(transport=PoliteTransport(ua=UA, store=store, proxy=proxy.origin)) as client:
        client.get("http://a.example/3")
    with pytest.raises(DisallowedByRobots):
        manager.request("GET", "http://a.example/private")
    manager.clear()
    asked = [f"http://a.example/{path}" for path in ("robots.txt", "1", "2", "3")]
    assert proxy.targets() == asked
    assert min(gaps_by_target(proxy, "a.example")) >= DELAY


def test_a_tunnel_carries_robots_txt_and_pages(
    site: Start, store: MemoryStore, certificates: Certificates
) -> None:
    place = site(ROBOTS, tls=(certificates.chain, certificates.key))
    with ConnectProxy() as proxy:
        manager = PoliteProxyManager(
            proxy.url, ua=UA, store=MemoryStore(), ca_certs=certificates.ca
        )
        with PoliteSession(ua=UA, store=MemoryStore()) as session:
            session.get(place.url("/1"), proxies={"https": proxy.url}, verify=certificates.ca)
        manager.request("GET", place.url("/2"))
        transport = PoliteTransport(
            ua=UA, store=store, proxy=proxy.url, verify=certificates.trusted
        )
        with httpx.Client(transport=transport) as client:
            client.get(place.url("/3"))
            with pytest.raises(DisallowedByRobots):
                client.get(place.url("/private"))
        manager.clear()
        assert proxy.tunnels == [f"127.0.0.1:{place.port}"] * 3
    assert place.targets() == [each for number in "123" for each in ("/robots.txt", f"/{number}")]


def test_a_private_ca_counts_for_robots_txt(
    site: Start, visit: Visit, certificates: Certificates, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = site(ROBOTS, tls=(certificates.chain, certificates.key))
    stranger = visit(options={"verify": True})
    with pytest.raises(stranger.native) as refused:
        stranger.get(place.url("/page"))
    assert any("robots.txt" in note for note in refused.value.__notes__)
    assert place.targets() == []
    if stranger.name == "requests":
        assert isinstance(refused.value, requests.exceptions.SSLError)
        monkeypatch.setenv("REQUESTS_CA_BUNDLE", certificates.ca)
    client = visit(options={"verify": certificates.trusted})
    client.get_all(place.url(f"/{number}") for number in range(2))
    with pytest.raises(DisallowedByRobots):
        client.get(place.url("/private"))
    assert place.targets()[0] == "/robots.txt"
    assert sorted(place.targets()[1:]) == ["/0", "/1"]
    assert min(place.gaps()) >= DELAY


def test_a_copy_that_came_an_unsafe_way_is_not_handed_to_others(
    site: Start, store: MemoryStore, certificates: Certificates
) -> None:
    place = site(ROBOTS, tls=(certificates.chain, certificates.key))
    with PoliteSession(ua=UA, store=store) as session:
        with pytest.warns(match="Unverified"):
            session.get(place.url("/1"), verify=False)
        session.get(place.url("/2"), verify=certificates.ca)
    for verify, path in ((certificates.trusted, "/3"), (False, "/4")):
        transport = PoliteTransport(ua=UA, store=store, verify=verify)
        with httpx.Client(transport=transport) as client:
            client.get(place.url(path))
    # One for those who verify, one for those who do not.
    assert place.targets() == ["/robots.txt", "/1", "/robots.txt", "/2", "/3", "/4"]


def test_http_2(store: MemoryStore, certificates: Certificates) -> None:
    options: Any = {"http2": True, "http1": False, "verify": certificates.trusted}
    with Http2Site(certificates, ROBOTS.encode()) as place:
        with httpx.Client(transport=PoliteTransport(ua=UA, store=store, **options)) as client:
            assert client.get(place.url("/sync")).http_version == "HTTP/2"
            with pytest.raises(DisallowedByRobots):
                client.get(place.url("/private"))

        async def main(backend: str) -> None:
            transport = AsyncPoliteTransport(ua=UA, store=store, **options)
            async with (
                httpx.AsyncClient(transport=transport) as client,
                anyio.create_task_group() as tasks,
            ):
                for number in range(3):
                    tasks.start_soon(client.get, place.url(f"/{backend}/{number}"))

        anyio.run(main, "asyncio", backend="asyncio")
        anyio.run(main, "trio", backend="trio")
        times = [time for time, _ in place.arrivals]
        assert [path for _, path in place.arrivals][:2] == ["/robots.txt", "/sync"]
    assert len(times) == 2 + 6
    assert min(later - earlier for earlier, later in itertools.pairwise(times)) >= DELAY


@pytest.mark.parametrize("visit", ["httpx", "asyncio", "trio"], indirect=True)
def test_a_robots_txt_over_http_2_is_read_no_further_than_wanted(
    visit: Visit, certificates: Certificates
) -> None:
    robots = b"User-agent: *\nDisallow: /private\n" + b"# padding\n" * 1_000
    with Http2Site(certificates, robots) as place:
        client = visit(
            robots_max_bytes=1_000,
            options={"http2": True, "verify": certificates.trusted},
        )
        with pytest.raises(DisallowedByRobots):
            client.get(place.url("/private"))
        assert client.get(place.url("/page")).status == 200
