"""Adapters that are no HTTPAdapter, transports of others: their requests take turns like any."""

import http.client
import io
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import replace
from functools import partial
from typing import Any, Literal
from urllib.parse import urlsplit

import httpx
import pytest
import requests
import urllib3
from requests.adapters import BaseAdapter, HTTPAdapter
from requests.models import PreparedRequest, Response

from polite_transport import (
    DisallowedByRobots,
    MemoryStore,
    Policy,
    PoliteAdapter,
    PolitePoolManager,
    PoliteSession,
    PoliteTransport,
    RobotsUnreachable,
    WaitTooLong,
    install,
)
from polite_transport.testing import Answer, Site

from .faces import UA

DELAY = 0.05
BODY = 0.2  # seconds that it takes
FROM_BODY = Policy(pace_from="body", turn_limit=20)
Start = Callable[..., Site]


class Foreign(BaseAdapter):
    """What all of them here have."""

    def close(self) -> None:
        """Keep nothing open."""


class OverUrllib3(Foreign):
    """The response is urllib3's, from an adapter that is not ours unless one is given."""

    def __init__(self, inner: BaseAdapter | None = None) -> None:
        super().__init__()
        self.inner = inner or HTTPAdapter()

    def send(self, *arguments: Any, **options: Any) -> Response:
        return self.inner.send(*arguments, **options)

    def close(self) -> None:
        self.inner.close()


def respond(request: PreparedRequest, answer: http.client.HTTPResponse, raw: Any) -> Response:
    response = Response()
    response.status_code = answer.status
    response.headers.update(answer.headers.items())
    response.url = str(request.url)
    response.request = request
    response.raw = raw
    return response


def ask(request: PreparedRequest) -> http.client.HTTPResponse:
    where = urlsplit(str(request.url))
    connection = http.client.HTTPConnection(where.netloc, timeout=30)
    path = where.path + (f"?{where.query}" if where.query else "")
    headers = {name: str(value) for name, value in request.headers.items()}
    connection.request(str(request.method), path, headers={**headers, "Connection": "close"})
    return connection.getresponse()


class OverHttpClient(Foreign):
    """The body is read from the standard library's response."""

    def send(self, request: PreparedRequest, *_: Any, **__: Any) -> Response:
        answer = ask(request)
        return respond(request, answer, answer)


class InAShell(Foreign):
    """Bytes that are there already, in a response of urllib3 that has no connection."""

    def send(self, request: PreparedRequest, *_: Any, **__: Any) -> Response:
        answer = ask(request)
        shell = urllib3.HTTPResponse(io.BytesIO(answer.read()), preload_content=False)
        return respond(request, answer, shell)


class InMemory(Foreign):
    """Bytes that are there already."""

    def send(self, request: PreparedRequest, *_: Any, **__: Any) -> Response:
        answer = ask(request)
        return respond(request, answer, io.BytesIO(answer.read()))


class WithoutRaw(Foreign):
    """Nothing is left to read."""

    def send(self, request: PreparedRequest, *_: Any, **__: Any) -> Response:
        answer = ask(request)
        if urlsplit(str(request.url)).path == "/robots.txt":
            return respond(request, answer, io.BytesIO(answer.read()))
        response = respond(request, answer, None)
        response._content = answer.read()
        return response


ADAPTERS = [OverUrllib3, OverHttpClient, InAShell, InMemory, WithoutRaw]
ON_THE_WIRE = [OverUrllib3, OverHttpClient]


@pytest.fixture
def place(site: Start) -> Site:
    return site(f"User-agent: *\nCrawl-delay: {DELAY}\n")


def visit(store: MemoryStore, adapter: type[BaseAdapter]) -> requests.Session:
    session = PoliteSession(ua=UA, store=store, policy=FROM_BODY)
    session.mount("http://", adapter())
    return session


@pytest.mark.parametrize("adapter", ADAPTERS)
def test_a_turn_ends_with_the_body(
    place: Site, store: MemoryStore, adapter: type[BaseAdapter]
) -> None:
    place.serve("/dripping", Answer(body=b"x" * 10, drip=(1, BODY / 10)))
    with visit(store, adapter) as session:
        for _ in range(2):
            assert session.get(place.url("/dripping")).content == b"x" * 10
        session.get(place.url("/empty"))
        session.get(place.url("/next"))
    assert place.targets() == ["/robots.txt", "/dripping", "/dripping", "/empty", "/next"]
    gaps = place.gaps()
    assert min(gaps[1:3]) >= BODY + DELAY
    assert min(gaps) >= DELAY
    assert max(gaps) < 15, "someone waited for the limit of a turn"


def by_pieces(response: Response) -> None:
    assert b"".join(response.iter_content(3)) == b"x" * 10


def raw(response: Response) -> None:
    assert response.raw.read() == b"x" * 10


def raw_by_pieces(response: Response) -> None:
    while response.raw.read(3):
        pass


def some_and_close(response: Response) -> None:
    assert response.raw.read(6) == b"x" * 6
    response.close()


@pytest.mark.parametrize("adapter", ON_THE_WIRE)
@pytest.mark.parametrize(
    ("read", "seconds"),
    [(by_pieces, BODY), (raw, BODY), (raw_by_pieces, BODY), (some_and_close, 0.6 * BODY)],
)
def test_however_it_is_read(
    place: Site,
    store: MemoryStore,
    adapter: type[BaseAdapter],
    read: Callable[[Response], None],
    seconds: float,
) -> None:
    place.serve("/dripping", Answer(body=b"x" * 10, drip=(1, BODY / 10)))
    with visit(store, adapter) as session:
        read(session.get(place.url("/dripping"), stream=True))
        session.get(place.url("/next"))
    assert place.targets() == ["/robots.txt", "/dripping", "/next"]
    assert seconds + DELAY <= place.gaps()[-1] < 15


@pytest.mark.parametrize("adapter", ON_THE_WIRE)
def test_a_body_that_breaks_off_is_over(
    place: Site, store: MemoryStore, adapter: type[BaseAdapter]
) -> None:
    place.serve("/broken", Answer(body=b"x" * 10, close="body"))
    with visit(store, adapter) as session:
        # http.client says nothing of it where it is read by pieces.
        with suppress(requests.RequestException):
            session.get(place.url("/broken"))
        session.get(place.url("/next"))
    assert DELAY <= place.gaps()[-1] < 15


@pytest.mark.parametrize("adapter", ADAPTERS)
def test_its_robots_txt_is_read_like_any_other(
    site: Start, store: MemoryStore, adapter: type[BaseAdapter]
) -> None:
    place = site("User-agent: *\nDisallow: /private\n")
    with visit(store, adapter) as session:
        session.get(place.url("/page"))
        with pytest.raises(DisallowedByRobots):
            session.get(place.url("/private"))
    assert place.targets() == ["/robots.txt", "/page"]


@pytest.mark.parametrize("adapter", ON_THE_WIRE)
def test_a_robots_txt_that_breaks_off_is_unreachable(
    site: Start, store: MemoryStore, adapter: type[BaseAdapter]
) -> None:
    later = {"Retry-After": "600"}
    place = site(Answer(body=b"User-agent: *\nDisallow: /\n", close="body", headers=later))
    with visit(store, adapter) as session, pytest.raises(RobotsUnreachable):
        session.get(place.url("/page"))
    assert place.targets() == ["/robots.txt"]


# --- over what is polite itself -------------------------------------------------------------

SELDOM = Policy(
    min_delay=600, max_delay=600, max_wait=60, obey_disallow=False, obey_crawl_delay=False
)
Over = Callable[[MemoryStore], AbstractContextManager[BaseAdapter]]


@contextmanager
def over_a_polite_adapter(store: MemoryStore) -> Iterator[BaseAdapter]:
    yield OverUrllib3(PoliteAdapter(ua=UA, store=store, max_retries=1))


@contextmanager
def over_a_polite_adapter_of_another_store(_: MemoryStore) -> Iterator[BaseAdapter]:
    yield OverUrllib3(PoliteAdapter(ua=UA, store=MemoryStore(), max_retries=1))


@contextmanager
def over_an_installed_one(store: MemoryStore) -> Iterator[BaseAdapter]:
    with install(ua=UA, store=store):
        yield OverUrllib3(HTTPAdapter(max_retries=1))


@contextmanager
def over_one_that_is_over_another(store: MemoryStore) -> Iterator[BaseAdapter]:
    with PoliteSession(ua=UA, store=store) as session:
        session.mount("http://", OverUrllib3(PoliteAdapter(ua=UA, store=store, max_retries=1)))
        yield OverUrllib3(session.get_adapter("http://"))


OVER = [
    over_a_polite_adapter,
    over_a_polite_adapter_of_another_store,
    over_an_installed_one,
    over_one_that_is_over_another,
]


@pytest.mark.parametrize("over", OVER)
@pytest.mark.parametrize("pace_from", ["headers", "body"])
def test_one_turn_for_each_request(
    place: Site, store: MemoryStore, over: Over, pace_from: Literal["headers", "body"]
) -> None:
    policy = replace(SELDOM, pace_from=pace_from)
    with PoliteSession(ua=UA, store=store, policy=policy) as session, over(store) as adapter:
        session.mount("http://", adapter)
        session.get(place.url("/page"))
        with pytest.raises(WaitTooLong):  # the next turn is far away, and this one was the first
            session.get(place.url("/next"))
    assert place.targets() == ["/page"]


@pytest.mark.parametrize("over", OVER)
@pytest.mark.parametrize("pace_from", ["headers", "body"])
def test_each_attempt_takes_one(
    place: Site, store: MemoryStore, over: Over, pace_from: Literal["headers", "body"]
) -> None:
    policy = Policy(pace_from=pace_from, turn_limit=600)
    with PoliteSession(ua=UA, store=store, policy=policy) as session, over(store) as adapter:
        session.mount("http://", adapter)
        session.get(place.url("/warm"))
        session.get(place.url("/drop?key=a&fails=1"))
        session.get(place.url("/next"))
    again = ["/drop?key=a&fails=1"] * 2
    assert place.targets() == ["/robots.txt", "/warm", *again, "/next"]
    assert min(place.gaps()) >= DELAY


class Persistent(OverUrllib3):
    """One that sends again what was not answered, through the session that it is mounted on."""

    session: requests.Session

    def send(self, *arguments: Any, **options: Any) -> Response:
        try:
            return super().send(*arguments, **options)
        except requests.ConnectionError:
            return self.session.get_adapter("http://").send(*arguments, **options)


def test_an_adapter_that_comes_to_itself_again(place: Site, store: MemoryStore) -> None:
    with PoliteSession(ua=UA, store=store, policy=Policy(turn_limit=600)) as session:
        adapter = Persistent()
        adapter.session = session
        session.mount("http://", adapter)
        session.get(place.url("/drop?key=a&fails=1"))
        session.get(place.url("/next"))
    assert place.targets() == ["/robots.txt", *["/drop?key=a&fails=1"] * 2, "/next"]
    assert min(place.gaps()) >= DELAY


def test_a_request_to_a_host_that_is_left_alone_amid_another(
    place: Site, site: Start, store: MemoryStore
) -> None:
    exempt = site(addresses=("127.0.0.2",))
    policy = Policy(turn_limit=600, exempt_hosts=["127.0.0.2"])
    with PoliteSession(ua=UA, store=store, policy=policy) as session:
        session.mount("http://", OverUrllib3())

        def body() -> Iterator[bytes]:
            session.get(exempt.url("/within"))
            yield b"x"

        session.post(place.url("/echo"), data=body())
        session.get(place.url("/next"))
    assert exempt.targets() == ["/within"]
    assert place.targets() == ["/robots.txt", "/echo", "/next"]
    assert min(place.gaps()) >= DELAY


# --- other requests within a fetch of robots.txt --------------------------------------------


class Nosy(OverUrllib3):
    """One that asks for a page of the same site first, where it is given a robots.txt to fetch."""

    def __init__(self, look: Callable[[str], object]) -> None:
        super().__init__()
        self.look = look

    def send(self, request: PreparedRequest, *arguments: Any, **options: Any) -> Response:
        if str(request.url).endswith("/robots.txt"):
            with pytest.raises(RuntimeError, match="in this very thread"):
                self.look(str(request.url).replace("/robots.txt", "/private"))
        return super().send(request, *arguments, **options)


class NosyTransport(httpx.HTTPTransport):
    """The same for httpx."""

    def __init__(self, look: Callable[[str], object]) -> None:
        super().__init__()
        self.look = look

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        if request.url.path == "/robots.txt":
            with pytest.raises(RuntimeError, match="in this very thread"):
                self.look(str(request.url.join("/private")))
        return super().handle_request(request)


def look_with_requests(store: MemoryStore, url: str) -> None:
    with PoliteSession(ua=UA, store=store) as session:
        session.get(url)


def look_with_httpx(store: MemoryStore, url: str) -> None:
    with httpx.Client(transport=PoliteTransport(ua=UA, store=store)) as client:
        client.get(url)


def look_with_urllib3(store: MemoryStore, url: str) -> None:
    PolitePoolManager(ua=UA, store=store, retries=False).request("GET", url)


LOOKS = [look_with_requests, look_with_httpx, look_with_urllib3]


@pytest.mark.parametrize("look", LOOKS)
def test_a_page_within_the_fetch_is_checked_for_itself(
    site: Start, store: MemoryStore, look: Callable[[MemoryStore, str], object]
) -> None:
    place = site("User-agent: *\nDisallow: /private\n")
    with PoliteSession(ua=UA, store=store) as session:
        session.mount("http://", Nosy(partial(look, store)))
        session.get(place.url("/page"))
    assert place.targets() == ["/robots.txt", "/page"]


@pytest.mark.parametrize("look", LOOKS)
def test_and_so_it_is_within_that_of_a_transport(
    site: Start, store: MemoryStore, look: Callable[[MemoryStore, str], object]
) -> None:
    place = site("User-agent: *\nDisallow: /private\n")
    inner = NosyTransport(partial(look, store))
    with httpx.Client(transport=PoliteTransport(inner, ua=UA, store=store)) as client:
        client.get(place.url("/page"))
    assert place.targets() == ["/robots.txt", "/page"]
