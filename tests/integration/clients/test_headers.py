"""The headers of robots.txt: those that break off are none, and those that drip have their time."""

import asyncio
import urllib.request
from collections.abc import Callable
from typing import Any

import aiohttp
import pytest
import urllib3

from polite_transport import MemoryStore, Policy, RobotsUnreachable, install
from polite_transport.testing import Site

from .faces import FACES, UA, Visitor
from .raw import RawSite
from .secure import Certificates, make_certificates

Start = Callable[..., Site]
Visit = Callable[..., Visitor]
Get = Callable[[str], Any]
RULES = b"User-agent: *\nDisallow: /private\n"

BROKEN_OFF = {
    "within the status line": b"HTTP/1.1 200 O",
    "after the status line": b"HTTP/1.1 200 OK\r\n",
    "within a name": b"HTTP/1.1 200 OK\r\nContent-Ty",
    "after a header": b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n",
    "after a length": b"HTTP/1.1 200 OK\r\nContent-Length: 30\r\n",
    "after an empty length": b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n",
    "within the end of the headers": b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r",
    "of a 404": b"HTTP/1.1 404 Not Found\r\nContent-Le",
    "within a Location": b"HTTP/1.1 302 Found\r\nLocation: /",
    "before anything": b"",
}
WHOLE = {
    "without a length": b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\n",
    "without a header": b"HTTP/1.1 200 OK\r\n\r\n",
    "with bare line feeds": b"HTTP/1.1 200 OK\nContent-Type: text/plain\n\n",
    "after an interim response": b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\n\r\n",
    "with a length": b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n",
    "of a 404": b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n",
}


def in_urllib(url: str) -> bytes:
    with urllib.request.urlopen(url, timeout=30) as response:
        body: bytes = response.read()
    return body


def in_aiohttp(url: str) -> bytes:
    async def get() -> bytes:
        async with aiohttp.ClientSession() as session, session.get(url) as response:
            return await response.read()

    return asyncio.run(get())


def in_a_pool(url: str) -> bytes:
    with urllib3.connection_from_url(url) as pool:
        body: bytes = pool.request(
            "GET", urllib3.util.parse_url(url).request_uri, retries=False
        ).data
    return body


PATCHED: dict[str, tuple[Get, type[Exception]]] = {
    "urllib": (in_urllib, OSError),
    "aiohttp": (in_aiohttp, aiohttp.ClientError),
    "urllib3 pool": (in_a_pool, urllib3.exceptions.HTTPError),
}


@pytest.mark.parametrize("visit", FACES, indirect=True)
@pytest.mark.parametrize("place", BROKEN_OFF)
def test_headers_that_break_off_are_no_answer(visit: Visit, place: str) -> None:
    with RawSite([BROKEN_OFF[place]]) as site:
        client = visit()
        with pytest.raises(client.native) as raised:
            client.get(site.url("/page"))
        assert site.targets == ["/robots.txt", "/robots.txt"], (
            "the page was sent, or robots.txt not"
        )
    assert any("robots.txt" in note for note in raised.value.__notes__)


@pytest.mark.parametrize("client", PATCHED)
@pytest.mark.parametrize("place", BROKEN_OFF)
def test_nor_where_a_process_is_patched(store: MemoryStore, client: str, place: str) -> None:
    get, native = PATCHED[client]
    with RawSite([BROKEN_OFF[place]]) as site, install(ua=UA, store=store):
        with pytest.raises(native):
            get(site.url("/page"))
        assert site.targets == ["/robots.txt", "/robots.txt"]


@pytest.mark.parametrize("visit", FACES, indirect=True)
def test_an_empty_file_with_whole_headers_has_no_rules(visit: Visit) -> None:
    for headers in WHOLE.values():
        with RawSite([headers]) as site:
            assert visit().get(site.url("/page")).body == b"ok"
            assert site.targets == ["/robots.txt", "/page"]


@pytest.mark.parametrize("client", PATCHED)
def test_nor_has_it_where_a_process_is_patched(store: MemoryStore, client: str) -> None:
    get, _ = PATCHED[client]
    for headers in WHOLE.values():
        with RawSite([headers]) as site, install(ua=UA, store=store):
            assert get(site.url("/page")) == b"ok"
            assert site.targets == ["/robots.txt", "/page"]


def test_with_on_unreachable_allow_the_page_is_tried(visit: Visit) -> None:
    with RawSite([BROKEN_OFF["after a header"]]) as site:
        assert visit(on_unreachable="allow").get(site.url("/page")).body == b"ok"


# --- time ------------------------------------------------------------------------------------

HEAD = b"HTTP/1.1 200 OK\r\nX-Padding: "
PAUSE = 0.02
SHORT = Policy(robots_timeout=0.2)
DRIPPING = [HEAD, *([b"x"] * 1_000), b"\r\nContent-Length: 0\r\n\r\n"]  # 20 s, and no rules then
BODY = [b"HTTP/1.1 200 OK\r\n\r\n", *([b"#"] * 1_000)]


@pytest.mark.parametrize("visit", FACES, indirect=True)
def test_headers_that_drip_have_their_time_and_no_more(visit: Visit) -> None:
    with RawSite(DRIPPING, PAUSE) as site:
        client = visit(robots_timeout=0.2)
        with pytest.raises(client.native) as raised:
            client.get(site.url("/page"), timeout=None)
        assert len(site.written) == 2
        assert max(site.written) < len(DRIPPING) / 2
    assert any("robots.txt" in note for note in raised.value.__notes__)
    assert "/page" not in site.targets


@pytest.mark.parametrize("client", PATCHED)
def test_so_they_have_where_a_process_is_patched(store: MemoryStore, client: str) -> None:
    get, native = PATCHED[client]
    with RawSite(DRIPPING, PAUSE) as site:
        with install(ua=UA, store=store, policy=SHORT), pytest.raises(native):
            get(site.url("/page"))
        assert max(site.written) < len(DRIPPING) / 2
    assert "/page" not in site.targets


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return make_certificates(tmp_path_factory.mktemp("certificates"), "127.0.0.1")


@pytest.mark.parametrize("visit", ["urllib3", "httpx"], indirect=True)
@pytest.mark.parametrize("pieces", [DRIPPING, BODY], ids=["headers", "body"])
def test_so_they_have_beneath_tls(
    visit: Visit, certificates: Certificates, pieces: list[bytes]
) -> None:
    client = visit(robots_timeout=0.3, options={"verify": certificates.trusted})
    with RawSite(pieces, PAUSE, certificates) as site:
        with pytest.raises(client.native):
            client.get(site.url("/page"), timeout=None)
        assert 1 < max(site.written) < len(pieces) / 2
        assert "/page" not in site.targets


@pytest.mark.parametrize("visit", FACES, indirect=True)
def test_an_end_that_we_make_ourselves_is_no_end_of_a_file(visit: Visit) -> None:
    with RawSite([b"HTTP/1.1 200 OK\r\n\r\n#", RULES], pause=5.0) as site:
        client = visit(robots_timeout=0.2)
        with pytest.raises(RobotsUnreachable):
            client.get(site.url("/page"), timeout=None)
        assert "/page" not in site.targets


def test_the_connection_of_a_fetch_is_the_pages_as_it_was(site: Start, visit: Visit) -> None:
    place = site("User-agent: *\nDisallow: /private\n")
    client = visit(robots_timeout=0.2)
    client.get(place.url("/first"))
    # Longer than the time of the fetch, on its own connection.
    assert client.get(place.url("/slow?headers=0.5")).status == 200
    assert len({each.connection for each in place.log}) == 1
    assert place.targets() == ["/robots.txt", "/first", "/slow?headers=0.5"]
