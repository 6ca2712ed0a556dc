"""pace_from="body": the turn of a body that nobody reads ends when nothing more can come of it."""

import gc
import http.client
import urllib.request
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from typing import Any
from urllib.error import HTTPError

import pytest
import requests
import urllib3

from polite_transport import MemoryStore, Policy, PolitePoolManager, PoliteSession, install
from polite_transport.testing import Answer, Site

from .faces import UA

DELAY = 0.05
BODY = 0.3  # seconds that the dripping one takes
ROBOTS = f"User-agent: *\nCrawl-delay: {DELAY}\n"
CHUNKED = {"Transfer-Encoding": "chunked"}
Start = Callable[..., Site]
Open = Callable[..., Any]

# Each yields what sends a request and leaves its body unread. No turn ends by its limit here: who
# waits for one is told so at once, since it is this very thread that holds it.


def who(store: MemoryStore) -> dict[str, Any]:
    return {"ua": UA, "store": store, "policy": Policy(pace_from="body", turn_limit=600)}


@contextmanager
def in_requests(store: MemoryStore) -> Iterator[Open]:
    with PoliteSession(**who(store)) as session:
        yield lambda url, method="GET": session.request(method, url, stream=True).raw


@contextmanager
def in_urllib3(store: MemoryStore) -> Iterator[Open]:
    with PolitePoolManager(**who(store)) as manager:
        yield lambda url, method="GET": manager.request(method, url, preload_content=False)


@contextmanager
def in_installed_requests(store: MemoryStore) -> Iterator[Open]:
    with install(**who(store)), requests.Session() as session:
        yield lambda url, method="GET": session.request(method, url, stream=True).raw


@contextmanager
def in_a_bare_pool(store: MemoryStore) -> Iterator[Open]:
    with install(**who(store)), urllib3.PoolManager() as manager:
        yield lambda url, method="GET": manager.request(method, url, preload_content=False)


@contextmanager
def in_urllib(store: MemoryStore) -> Iterator[Open]:
    with install(**who(store)):

        def send(url: str, method: str = "GET") -> Any:
            return urllib.request.urlopen(urllib.request.Request(url, method=method))

        yield send


WAYS = [in_requests, in_urllib3, in_installed_requests, in_a_bare_pool, in_urllib]


@pytest.fixture
def place(site: Start) -> Site:
    place = site(ROBOTS)
    place.serve("/nothing", Answer(204))
    place.serve("/unchanged", Answer(304, headers={"Content-Length": "10"}))
    place.serve("/empty", Answer(200, b""))
    place.serve("/chunked", Answer(200, b"abc\ndef\n", headers=CHUNKED))
    place.serve("/dripping", Answer(body=b"x" * 10, drip=(1, BODY / 10)))
    place.serve("/large", Answer(body=b"x" * 3_000_000))
    place.serve("/missing", Answer(404, b"no"))
    return place


@pytest.mark.parametrize("way", WAYS)
def test_what_has_no_body_is_over_with_its_headers(
    place: Site, store: MemoryStore, way: Callable[..., Any]
) -> None:
    kept: list[Any] = []
    with way(store) as send:
        kept += [send(place.url(path), "HEAD") for path in ("/page", "/chunked", "/large")]
        kept += [send(place.url(path)) for path in ("/nothing", "/empty")]
        try:
            kept.append(send(place.url("/unchanged")))
        except HTTPError as unchanged:  # to urllib.request everything but a 2xx is one
            kept.append(unchanged)
        kept.append(send(place.url("/next")))
        for each in kept:
            each.close()
    assert [each.target for each in place.log if each.method == "GET"] == [
        *("/robots.txt", "/nothing", "/empty", "/unchanged", "/next")
    ]
    assert len(place.log) == 8
    assert min(place.gaps()) >= DELAY


def lines(body: Any) -> None:
    assert [bytes(line) for line in body] == [b"abc\n", b"def\n"]


def every_line(body: Any) -> None:
    assert body.readlines() == [b"abc\n", b"def\n"]


def by_pieces(body: Any) -> None:
    assert b"".join(iter(partial(body.read, 3), b"")) == b"abc\ndef\n"


def whatever_is_there(body: Any) -> None:
    assert b"".join(iter(partial(body.read1, 3), b"")) == b"abc\ndef\n"


def into_a_buffer(body: Any) -> None:
    buffer = bytearray(100)
    while body.readinto(buffer):
        pass


def all_of_it(body: Any) -> None:
    assert body.read() == b"abc\ndef\n"


READERS = [every_line, by_pieces, whatever_is_there, into_a_buffer, all_of_it]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("path", ["/chunked", "/counted"])
def test_read_to_its_end_in_any_way(
    place: Site, store: MemoryStore, way: Callable[..., Any], path: str
) -> None:
    place.serve("/counted", Answer(200, b"abc\ndef\n"))
    with way(store) as send:
        readers = [lines, *READERS] if way is in_urllib else READERS
        kept = [send(place.url(path)) for _ in readers[:1]]
        readers[0](kept[0])
        for read in readers[1:]:
            body = send(place.url(path))
            read(body)
            kept.append(body)
        kept.append(send(place.url("/next")))
        for each in kept:
            each.close()
    assert place.targets() == ["/robots.txt", *[path] * len(readers), "/next"]
    assert min(place.gaps()) >= DELAY


@pytest.mark.parametrize("way", WAYS)
def test_its_last_byte_is_its_end(place: Site, store: MemoryStore, way: Callable[..., Any]) -> None:
    with way(store) as send:
        body = send(place.url("/dripping"))
        assert body.read(0) == b""
        assert body.read(4) + body.read(6) == b"x" * 10
        send(place.url("/next")).close()
    assert place.targets() == ["/robots.txt", "/dripping", "/next"]
    assert place.gaps()[-1] >= BODY * 0.9 + DELAY


@pytest.mark.parametrize("way", WAYS)
def test_a_body_that_is_still_to_come_keeps_its_turn(
    place: Site, store: MemoryStore, way: Callable[..., Any]
) -> None:
    with way(store) as send:
        unread = send(place.url("/large"))
        unread.read(10)
        with pytest.raises(RuntimeError, match=r"127\.0\.0\.1 .* turn_limit.* read or close"):
            send(place.url("/next"))
        unread.close()
        send(place.url("/next")).close()
    assert place.targets() == ["/robots.txt", "/large", "/next"]


# A socket that nobody closed is what this is about.
@pytest.mark.filterwarnings("ignore:.*socket:pytest.PytestUnraisableExceptionWarning")
@pytest.mark.filterwarnings("ignore::ResourceWarning")
@pytest.mark.parametrize("way", WAYS)
def test_a_body_that_is_dropped_gives_its_turn_back(
    place: Site, store: MemoryStore, way: Callable[..., Any]
) -> None:
    with way(store) as send:
        send(place.url("/large"))
        next_in_a_thread(send, place)
        body = send(place.url("/large"))
        body.itself = body  # so that only the garbage collector finds it
        del body
        gc.collect()
        next_in_a_thread(send, place)
        with pytest.raises(HTTPError) if way is in_urllib else nothing_raised():
            send(place.url("/missing"))
        gc.collect()  # the error's own traceback
        next_in_a_thread(send, place)
    assert [each.target for each in place.log] == [
        *("/robots.txt", "/large", "/next", "/large", "/next", "/missing", "/next")
    ]
    assert min(place.gaps()) >= DELAY


@contextmanager
def nothing_raised() -> Iterator[None]:
    yield


def next_in_a_thread(send: Open, place: Site) -> None:
    """GET the next page in a thread of its own, since another one gives the turn back."""
    with ThreadPoolExecutor(1) as thread:
        thread.submit(lambda: send(place.url("/next")).read()).result(timeout=30)


def test_a_body_that_is_dropped_late_leaves_the_next_attempt_its_turn(
    place: Site, store: MemoryStore
) -> None:
    place.serve("/flaky", [Answer(500, b"x" * 100), Answer(body=b"x" * 10, drip=(1, BODY / 10))])
    again = urllib3.Retry(1, status_forcelist=[500], backoff_factor=0, raise_on_status=False)
    with in_urllib3(store), PolitePoolManager(**who(store), retries=again) as manager:
        body = manager.request("GET", place.url("/flaky"), preload_content=False)
        gc.collect()
        assert body.read(1) == b"x"
        with pytest.raises(RuntimeError, match="read or close"):
            manager.request("GET", place.url("/next"))
        body.read()
        manager.request("GET", place.url("/next"))
    assert place.targets() == ["/robots.txt", "/flaky", "/flaky", "/next"]
    assert place.gaps()[-1] >= BODY * 0.9 + DELAY


@pytest.mark.parametrize("way", WAYS)
def test_what_is_read_is_still_what_it_was(
    place: Site, store: MemoryStore, way: Callable[..., Any]
) -> None:
    with way(store) as send:
        body = send(place.url("/chunked"))
        kind = http.client.HTTPResponse if way is in_urllib else urllib3.HTTPResponse
        assert isinstance(body, kind)
        assert type(body).__name__ == "HTTPResponse"
        assert hasattr(body, "stream") is (way is not in_urllib)
        body.close()
