"""A whole process made polite by one line: what was imported and made before it included."""

import asyncio
import urllib.request
from collections.abc import Callable, Collection, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any
from urllib.error import URLError
from urllib.parse import quote, unquote
from urllib.request import urlopen

import aiohttp
import httpx
import pytest
import requests
import urllib3
from requests import get as requests_get
from requests.adapters import HTTPAdapter

from polite_transport import (
    DisallowedByRobots,
    InvalidURL,
    MemoryStore,
    Policy,
    PolitePoolManager,
    PoliteSession,
    PoliteTransport,
    install,
    politely,
)
from polite_transport.testing import Answer, Site

UA = "MyBot/1.0 (+https://example.org/bot)"
DELAY = 0.06
ROBOTS = f"User-agent: *\nDisallow: /private\nCrawl-delay: {DELAY}\n"
Start = Callable[..., Site]
Get = Callable[[str], Any]


class Custom(HTTPAdapter):
    """An adapter of the script's own."""

    def send(self, *args: Any, **kwargs: Any) -> requests.Response:
        return super().send(*args, **kwargs)


class Retrying(httpx.HTTPTransport):
    """A transport of the script's own."""

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        return super().handle_request(request)


# Each yields a function that GETs a URL with what is there before install() is called.


@contextmanager
def requests_function() -> Iterator[Get]:
    yield lambda url: requests_get(url, timeout=10)


@contextmanager
def requests_session() -> Iterator[Get]:
    with requests.Session() as session:
        session.mount("http://", Custom(max_retries=2))
        yield session.get


@contextmanager
def httpx_function() -> Iterator[Get]:
    yield lambda url: httpx.get(url, follow_redirects=True)


@contextmanager
def httpx_client() -> Iterator[Get]:
    with httpx.Client(transport=Retrying(), follow_redirects=True) as client:
        yield client.get


@contextmanager
def httpx_async_client() -> Iterator[Get]:
    with asyncio.Runner() as loop:

        async def make() -> httpx.AsyncClient:
            return httpx.AsyncClient(follow_redirects=True)

        client = loop.run(make())
        yield lambda url: loop.run(client.get(url))
        loop.run(client.aclose())


@contextmanager
def urllib3_function() -> Iterator[Get]:
    yield lambda url: urllib3.request("GET", url)


@contextmanager
def urllib3_manager() -> Iterator[Get]:
    with urllib3.PoolManager() as manager:
        yield lambda url: manager.request("GET", url)


@contextmanager
def urllib3_pool() -> Iterator[Get]:
    pools: dict[str | None, urllib3.HTTPConnectionPool] = {}

    def get(url: str) -> Any:
        parts = urllib3.util.parse_url(url)
        if parts.netloc not in pools:
            pools[parts.netloc] = urllib3.connection_from_url(url)
        return pools[parts.netloc].request("GET", parts.request_uri)

    yield get
    for pool in pools.values():
        pool.close()


@contextmanager
def urllib_function() -> Iterator[Get]:
    def get(url: str) -> Any:
        with urlopen(url, timeout=10) as response:
            return response

    yield get


@contextmanager
def urllib_opener() -> Iterator[Get]:
    opener = urllib.request.build_opener(urllib.request.HTTPCookieProcessor())

    def get(url: str) -> Any:
        with opener.open(url, timeout=10) as response:
            return response

    yield get


@contextmanager
def aiohttp_session() -> Iterator[Get]:
    with asyncio.Runner() as loop:

        async def make() -> aiohttp.ClientSession:
            return aiohttp.ClientSession()

        session = loop.run(make())

        async def get(url: str) -> Any:
            async with session.get(url) as response:
                await response.read()
                return response

        yield lambda url: loop.run(get(url))
        loop.run(session.close())


CLIENTS: list[tuple[Callable[[], Any], type[Exception]]] = [
    (requests_function, requests.RequestException),
    (requests_session, requests.RequestException),
    (httpx_function, httpx.RequestError),
    (httpx_client, httpx.RequestError),
    (httpx_async_client, httpx.RequestError),
    (urllib3_function, urllib3.exceptions.HTTPError),
    (urllib3_manager, urllib3.exceptions.HTTPError),
    (urllib3_pool, urllib3.exceptions.HTTPError),
    (urllib_function, URLError),
    (urllib_opener, URLError),
    (aiohttp_session, aiohttp.ClientError),
]


@pytest.mark.parametrize(("client", "native"), CLIENTS)
def test_what_was_there_before_is_polite_and_free_again_afterwards(
    site: Start, store: MemoryStore, client: Callable[[], Any], native: type[Exception]
) -> None:
    place = site(ROBOTS)
    with client() as get:
        get(place.url("/before"))
        place.clear()
        with install(ua=UA, store=store):
            get(place.url("/redirect?to=/page"))
            for path in ("/private/x", "/redirect?to=/private"):
                with pytest.raises(DisallowedByRobots) as refused:
                    get(place.url(path))
                assert isinstance(refused.value, native)
        assert place.targets() == [
            "/robots.txt", "/redirect?to=/page", "/page", "/redirect?to=/private"
        ]  # fmt: skip
        assert min(place.gaps()) >= DELAY
        assert {each.headers["user-agent"] for each in place.log} == {UA}
        place.clear()
        get(place.url("/private/x"))
        assert place.targets() == ["/private/x"]
        assert place.log[0].headers["user-agent"] != UA


def test_all_of_them_are_one_robot(site: Start, store: MemoryStore) -> None:
    place = site(ROBOTS)
    with install(ua=UA, store=store):
        for client, _ in CLIENTS:
            with client() as get:
                get(place.url(f"/{client.__name__}"))
    assert place.targets() == ["/robots.txt", *[f"/{each.__name__}" for each, _ in CLIENTS]]
    assert min(place.gaps()) >= DELAY


def test_re_sends_of_each_client_take_turns(site: Start, store: MemoryStore) -> None:
    place = site(ROBOTS)
    with install(ua=UA, store=store), aiohttp_session() as aio, urllib3_manager() as manager:
        # urllib3 and aiohttp re-send by themselves where a connection that was in use is gone.
        for key, get in (("urllib3", manager), ("aiohttp", aio)):
            get(place.url(f"/warm-{key}"))
            get(place.url(f"/drop?key={key}&fails=1"))
    assert place.targets().count("/drop?key=urllib3&fails=1") == 2
    assert place.targets().count("/drop?key=aiohttp&fails=1") == 2
    assert min(place.gaps()) >= DELAY


def test_a_robots_txt_that_is_lost_with_its_connection_is_asked_for_once_more(
    site: Start, store: MemoryStore
) -> None:
    place = site(ROBOTS)
    place.serve("/robots.txt", [Answer(close="before"), Answer(body=ROBOTS.encode())])

    async def visit() -> None:
        # Less than a fetch of robots.txt may take: it does not wait for itself until it gives up.
        impatient = aiohttp.ClientTimeout(total=5)
        async with aiohttp.ClientSession(timeout=impatient) as session:
            await (await session.get(place.url("/warm"))).read()
            with install(ua=UA, store=store):
                await (await session.get(place.url("/page"))).read()

    asyncio.run(visit())
    assert place.targets() == ["/warm", "/robots.txt", "/robots.txt", "/page"]
    assert place.gaps()[-1] >= DELAY


def test_a_retry_of_the_script_s_own_under_aiohttp_may_come_back_to_the_same_url(
    site: Start, store: MemoryStore
) -> None:
    place = site([*[Answer(close="before")] * 2, Answer(body=b"")])
    moved = Answer(status=302, headers={"Location": "/page", "Set-Cookie": "seen=1"})
    place.serve("/page", [moved, Answer(body=b"ok")])

    async def again(
        request: aiohttp.ClientRequest, send: aiohttp.ClientHandlerType
    ) -> aiohttp.ClientResponse:
        try:
            return await send(request)
        except aiohttp.ClientConnectionError:
            return await send(request)

    async def visit() -> bytes:
        async with aiohttp.ClientSession(middlewares=[again]) as session:
            return await (await session.get(place.url("/page"))).read()

    with install(ua=UA, store=store):
        assert asyncio.run(visit()) == b"ok"
    assert place.targets() == [*["/robots.txt"] * 3, "/page", "/page"]


def _no_answer(native: type[Exception]) -> type[Exception]:
    # urllib.request makes a URLError only of what fails before the request is out.
    return OSError if native is URLError else native


@pytest.mark.parametrize(("client", "native"), CLIENTS)
def test_a_robots_txt_without_an_answer_is_asked_for_twice_at_a_distance(
    site: Start, store: MemoryStore, client: Callable[[], Any], native: type[Exception]
) -> None:
    place = site(Answer(close="before"))
    policy = Policy(min_delay=DELAY)
    with client() as get, install(ua=UA, store=store, policy=policy):
        for _ in range(2):
            with pytest.raises(_no_answer(native)) as raised:
                get(place.url("/page"))
            assert any("/robots.txt" in note for note in raised.value.__notes__)
    # No client takes our failure for one of the page's, and sends by itself once more.
    assert place.targets() == ["/robots.txt"] * 4
    assert min(place.gaps()) >= 2 * DELAY


@pytest.mark.parametrize(("client", "native"), CLIENTS)
def test_a_robots_txt_that_takes_too_long_is_a_timeout_of_the_client_s_own(
    site: Start, store: MemoryStore, client: Callable[[], Any], native: type[Exception]
) -> None:
    place = site(Answer(delay=float("inf")))
    policy = Policy(robots_timeout=0.2)
    with (
        client() as get,
        install(ua=UA, store=store, policy=policy),
        pytest.raises(_no_answer(native)) as raised,
    ):
        get(place.url("/page"))
    assert "time" in f"{type(raised.value).__name__} {raised.value}".lower()
    if native is aiohttp.ClientError:
        assert isinstance(raised.value, TimeoutError)
        assert "0.2 s" in str(raised.value)
    assert place.targets() == ["/robots.txt", "/robots.txt"]


@pytest.mark.parametrize("client", [client for client, _ in CLIENTS])
def test_of_a_long_robots_txt_the_first_part_counts(
    site: Start, store: MemoryStore, client: Callable[[], Any]
) -> None:
    place = site(Answer(body=ROBOTS.encode() + b"#" * 600_000))
    with client() as get, install(ua=UA, store=store):
        get(place.url("/page"))
        with pytest.raises(DisallowedByRobots):
            get(place.url("/private"))
    assert place.targets() == ["/robots.txt", "/page"]


# What a client may make of it beyond escapes, where that is more.
SPELT = {
    "/%7Ebot": "",
    "/a|b": "",
    "/a b": "",
    "/\u00e9": "",
    "/bot[1]%zz": "",
    "/x/../bot": "/bot",
    "/%2E/bot": "/bot",
    "/bot?": "/bot",
}


@pytest.mark.parametrize("moved_to", SPELT)
@pytest.mark.parametrize("client", [client for client, _ in CLIENTS])
def test_a_robots_txt_that_is_moved_to_where_clients_spell_otherwise(
    site: Start,
    store: MemoryStore,
    client: Callable[[], Any],
    moved_to: str,
) -> None:
    place = moved(site, moved_to)
    with client() as get, install(ua=UA, store=store):
        reads_what_is_moved(place, moved_to, get)


def reads_what_is_moved(place: Site, moved_to: str, get: Callable[[str], object]) -> None:
    get(place.url("/page"))
    with pytest.raises(DisallowedByRobots):
        get(place.url("/private"))
    first, moved, last = place.targets()
    assert (first, last) == ("/robots.txt", "/page")
    assert unquote(moved) in {unquote(moved_to), SPELT[moved_to]}
    assert place.gaps()[-1] >= DELAY


def moved(site: Start, moved_to: str) -> Site:
    """Return a site whose robots.txt is elsewhere on it."""
    in_header = moved_to.encode().decode("latin-1")  # as the site has it: bytes
    place = site(Answer(302, headers={"Location": in_header}))
    for spelling in {moved_to, unquote(moved_to), quote(unquote(moved_to)), SPELT[moved_to]} - {""}:
        place.serve(spelling, ROBOTS)
    return place


# --- ours on top ----------------------------------------------------------------------------


OURS: list[Callable[[MemoryStore], Any]] = [
    lambda store: PoliteSession(ua=UA, store=store),
    lambda store: httpx.Client(transport=PoliteTransport(ua=UA, store=store)),
    lambda store: PolitePoolManager(ua=UA, store=store),
    lambda store: politely(requests.Session(), ua=UA, store=store),
    lambda store: politely(httpx.Client(), ua=UA, store=store),
]


@pytest.mark.parametrize("make", OURS)
@pytest.mark.parametrize("shared", [True, False], ids=["one store", "two stores"])
def test_a_polite_client_beneath_it_is_checked_and_paced_once(
    site: Start, store: MemoryStore, make: Callable[[MemoryStore], Any], shared: bool
) -> None:
    place = site(ROBOTS)
    with make(store) as client, install(ua=UA, store=store if shared else MemoryStore()):
        for number in range(2):
            client.request("GET", place.url(f"/{number}"))
        with pytest.raises(DisallowedByRobots):
            client.request("GET", place.url("/private"))
    assert place.targets() == ["/robots.txt", "/0", "/1"]
    assert min(place.gaps()) >= DELAY


@pytest.mark.parametrize("make", OURS)
@pytest.mark.parametrize("moved_to", SPELT)
def test_and_reads_a_robots_txt_that_is_moved_to_where_clients_spell_otherwise(
    site: Start, store: MemoryStore, make: Callable[[MemoryStore], Any], moved_to: str
) -> None:
    place = moved(site, moved_to)
    with make(store) as client, install(ua=UA, store=store):
        reads_what_is_moved(place, moved_to, lambda url: client.request("GET", url))


# --- scope ----------------------------------------------------------------------------------


def test_hosts_and_exempt_hosts(site: Start, store: MemoryStore) -> None:
    meant, left = site(ROBOTS), site(ROBOTS, addresses=("127.0.0.2",))
    for scope in ({"hosts": ["127.0.0.1"]}, {"exempt_hosts": ["127.0.0.2"]}):
        for client, _ in CLIENTS:
            with client() as get, install(ua=UA, store=store, **scope):  # type: ignore[arg-type]
                get(left.url("/private"))
                with pytest.raises(DisallowedByRobots):
                    get(meant.url("/private"))
    assert set(left.targets()) == {"/private"}
    assert meant.targets() == ["/robots.txt"]


def test_hosts_that_are_left_alone_see_what_the_script_has_chosen(
    site: Start, store: MemoryStore
) -> None:
    meant, left = site(""), site("", addresses=("127.0.0.2",))
    theirs = {"User-Agent": "cloud-sdk/2"}

    async def in_aiohttp(*urls: str) -> None:
        async with aiohttp.ClientSession() as session:
            for url in urls:
                await (await session.get(url, headers=theirs)).read()
            await (await session.get(urls[0])).read()

    for scope in ({"hosts": ["127.0.0.1"]}, {"exempt_hosts": ["127.0.0.2"]}):
        with install(ua=UA, store=store, **scope):  # type: ignore[arg-type]
            urls = [place.url("/page") for place in (left, meant)]
            for url in urls:
                requests.get(url, headers=theirs, timeout=10)
                httpx.get(url, headers=theirs)
                urllib3.request("GET", url, headers=theirs)
                with urlopen(urllib.request.Request(url, headers=theirs)):
                    pass
            requests.get(urls[0], timeout=10)
            httpx.get(urls[0])
            urllib3.request("GET", urls[0])
            with urlopen(urls[0]):
                pass
            asyncio.run(in_aiohttp(*urls))
    seen = [each.headers["user-agent"] for each in left.log]
    assert seen == 2 * [*["cloud-sdk/2"] * 4, *[UA] * 4, "cloud-sdk/2", UA]
    assert {each.headers["user-agent"] for each in meant.log} == {UA}


def test_hosts_that_are_none_would_be_politeness_to_nobody() -> None:
    none: list[Collection[str]] = [[], (), set()]
    for hosts in none:
        with pytest.raises(ValueError, match="leave it out where all hosts are meant"):
            install(hosts=hosts)
    assert not hasattr(HTTPAdapter.send, "__wrapped__")


@pytest.mark.parametrize(("client", "native"), CLIENTS)
def test_a_url_that_cannot_be_read_is_the_client_s_own_refusal(
    store: MemoryStore, client: Callable[[], Any], native: type[Exception]
) -> None:
    with client() as get, install(ua=UA, store=store):
        for url in ("http://a,b/page", "http://user:secret@a;b/page"):
            with pytest.raises(InvalidURL, match="Correct the URL, or skip it") as refused:
                get(url)
            assert isinstance(refused.value, native)
            assert "secret" not in repr(refused.value)


def test_what_is_no_http_is_left_alone(tmp_path: Path, store: MemoryStore) -> None:
    page = tmp_path / "page"
    page.write_text("here")
    with install(ua=UA, store=store):
        with urlopen(page.as_uri()) as response:
            assert response.read() == b"here"
        with urlopen("data:,there") as response:
            assert response.read() == b"there"


# --- coming and going -----------------------------------------------------------------------


def test_installed_again_the_last_one_holds(site: Start, store: MemoryStore) -> None:
    place = site("")
    first = install(ua="FirstBot/1.0 (+https://example.org)", store=store)
    second = install(ua=UA, store=store, policy=Policy(min_delay=DELAY))
    requests_get(place.url("/1"), timeout=5)
    first.undo()  # over already: it takes nothing away from the second
    requests_get(place.url("/2"), timeout=5)
    second.undo()
    second.undo()
    requests_get(place.url("/3"), timeout=5)
    assert [each.headers["user-agent"] == UA for each in place.log] == [True, True, True, False]


PATCHED: list[tuple[Any, str]] = [
    (HTTPAdapter, "send"),
    (urllib3.HTTPConnectionPool, "urlopen"),
    (urllib3.HTTPConnectionPool, "_make_request"),
    (httpx.HTTPTransport, "handle_request"),
    (httpx.AsyncHTTPTransport, "handle_async_request"),
    (urllib.request.AbstractHTTPHandler, "do_open"),
    (aiohttp.ClientSession, "_request"),
]


def test_what_it_patches_is_there_and_is_put_back(store: MemoryStore) -> None:
    # Where a new release of a client moves one of these, this says so.
    before = [owner.__dict__[name] for owner, name in PATCHED]
    with install(ua=UA, store=store):
        assert all(owner.__dict__[name] not in before for owner, name in PATCHED)
    assert [owner.__dict__[name] for owner, name in PATCHED] == before


def test_buried_under_someone_elses_patch_it_is_inert(
    site: Start, store: MemoryStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = site(ROBOTS)
    seen: list[str] = []
    installed = install(ua=UA, store=store)
    with closing(requests.Session()) as session:
        for owner, name in PATCHED[:2]:
            ours = owner.__dict__[name]

            def foreign(*args: Any, ours: Any = ours, name: str = name, **kwargs: Any) -> Any:
                seen.append(name)
                return ours(*args, **kwargs)

            monkeypatch.setattr(owner, name, foreign)
        with pytest.raises(DisallowedByRobots):
            session.get(place.url("/private"))
        installed.undo()
        place.clear()
        seen.clear()
        assert session.get(place.url("/private")).ok
        assert seen == ["send", "urlopen"]  # theirs stays
        assert place.targets() == ["/private"]
        install(ua=UA, store=store)
        with pytest.raises(DisallowedByRobots):
            session.get(place.url("/private"))
        install(ua=UA, store=store).undo()


def test_an_error_within_it_takes_it_back_too(store: MemoryStore) -> None:
    send = HTTPAdapter.send
    with pytest.raises(ZeroDivisionError), install(ua=UA, store=store):
        _ = 1 / 0
    assert HTTPAdapter.send is send
