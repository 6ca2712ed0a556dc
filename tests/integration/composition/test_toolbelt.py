"""requests-toolbelt: its adapters, its sessions and its bodies."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import requests
from requests_toolbelt import MultipartEncoder, MultipartEncoderMonitor  # type: ignore[import-untyped]
from requests_toolbelt.adapters.host_header_ssl import HostHeaderSSLAdapter  # type: ignore[import-untyped]
from requests_toolbelt.adapters.socket_options import TCPKeepAliveAdapter  # type: ignore[import-untyped]
from requests_toolbelt.adapters.source import SourceAddressAdapter  # type: ignore[import-untyped]
from requests_toolbelt.sessions import BaseUrlSession  # type: ignore[import-untyped]
from requests_toolbelt.threaded import pool as threaded  # type: ignore[import-untyped]

from polite_transport import DisallowedByRobots, MemoryStore, PoliteSession, politely
from polite_transport.testing import Site

UA = "MyBot/1.0 (+https://example.org/bot)"
DELAY = 0.06
ROBOTS = f"User-agent: *\nDisallow: /private\nCrawl-delay: {DELAY}\n"
Start = Callable[..., Site]


@pytest.fixture
def session(store: MemoryStore) -> Iterator[PoliteSession]:
    with PoliteSession(ua=UA, store=store) as it:
        yield it


@pytest.mark.parametrize(
    "make",
    [lambda: SourceAddressAdapter("127.0.0.9"), TCPKeepAliveAdapter, HostHeaderSSLAdapter],
    ids=["SourceAddressAdapter", "TCPKeepAliveAdapter", "HostHeaderSSLAdapter"],
)
def test_its_adapters(site: Start, session: PoliteSession, make: Callable[[], Any]) -> None:
    place = site(ROBOTS)
    adapter = make()
    session.mount("http://", adapter)
    assert session.get_adapter(place.url()) is adapter
    for number in range(2):
        session.get(place.url(f"/{number}"))
    with pytest.raises(DisallowedByRobots):
        session.get(place.url("/private/x"))
    assert place.targets() == ["/robots.txt", "/0", "/1"]
    assert min(place.gaps()) >= DELAY


def test_the_source_address_is_that_of_robots_txt_too(store: MemoryStore) -> None:
    with politely(requests.Session(), ua=UA, store=store) as session:
        session.mount("http://", SourceAddressAdapter("127.0.0.9"))
        adapter: Any = session.get_adapter("http://127.0.0.1")
        manager = adapter.poolmanager
        assert manager.connection_pool_kw["source_address"] == ("127.0.0.9", 0)


def test_a_base_url_session(site: Start, store: MemoryStore) -> None:
    place = site(ROBOTS)
    with politely(BaseUrlSession(place.origin), ua=UA, store=store) as session:
        session.get("/page")
        with pytest.raises(DisallowedByRobots):
            session.get("/private/x")
        assert not session.check("/private/x").allowed
    assert place.targets() == ["/robots.txt", "/page"]


def test_a_multipart_body_that_streams(site: Start, session: PoliteSession) -> None:
    place = site(ROBOTS)
    seen: list[int] = []
    encoder = MultipartEncoder({"field": "value", "file": ("name", b"x" * 100_000, "text/plain")})
    body = MultipartEncoderMonitor(encoder, lambda monitor: seen.append(monitor.bytes_read))
    headers = {"Content-Type": body.content_type}
    sent = session.post(place.url("/echo"), data=body, headers=headers).json()
    assert sent["body"].count("x") >= 100_000
    assert seen[-1] == encoder.len
    refused = MultipartEncoder({"field": "value"})
    with pytest.raises(DisallowedByRobots):
        session.post(place.url("/private/x"), data=refused)
    assert refused.read()  # nothing of it was read


def test_its_thread_pool(site: Start, store: MemoryStore) -> None:
    place = site(ROBOTS)

    def initialise(session: requests.Session) -> requests.Session:
        return politely(session, ua=UA, store=store)

    urls = [place.url(f"/{number}") for number in range(4)]
    pool = threaded.Pool.from_urls(urls, initializer=initialise, num_processes=4)
    pool.join_all()
    assert [each.status_code for each in pool.responses()] == [200] * 4
    assert place.targets()[0] == "/robots.txt"
    assert sorted(place.targets()[1:]) == ["/0", "/1", "/2", "/3"]
    assert min(place.gaps()) >= DELAY
