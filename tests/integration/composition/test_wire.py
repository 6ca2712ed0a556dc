"""What the clients do on the wire: HTTP/2, TLS, pools of one, bodies both ways, hooks."""

import ssl
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import anyio
import httpx
import pytest
import requests
import urllib3
from requests.adapters import HTTPAdapter

from polite_transport import (
    AsyncPoliteTransport,
    DisallowedByRobots,
    MemoryStore,
    PolitePoolManager,
    PoliteSession,
    PoliteTransport,
    politely,
)
from polite_transport.testing import Site

from .conftest import Authority
from .http2 import Http2Site

UA = "MyBot/1.0 (+https://example.org/bot)"
DELAY = 0.06
ROBOTS = f"User-agent: *\nDisallow: /private\nCrawl-delay: {DELAY}\n"
SLOW = "User-agent: *\nCrawl-delay: 0.4\n"
IN_TURN = ["/robots.txt", "/0", "/1", "/2"]
Start = Callable[..., Site]


# --- HTTP/2 ---------------------------------------------------------------------------------


@pytest.fixture
def http2_site(authority: Authority) -> Iterator[Http2Site]:
    with Http2Site(ROBOTS, authority.chain, authority.key) as it:
        yield it


def trusting(authority: Authority) -> ssl.SSLContext:
    return ssl.create_default_context(cafile=authority.ca)


@pytest.mark.parametrize("how", ["PoliteTransport", "politely"])
def test_http2(http2_site: Http2Site, authority: Authority, store: MemoryStore, how: str) -> None:
    options: Any = {"http2": True, "verify": trusting(authority)}
    if how == "politely":
        client = politely(httpx.Client(**options), ua=UA, store=store)
    else:
        client = httpx.Client(transport=PoliteTransport(ua=UA, store=store, **options))
    with client, ThreadPoolExecutor(3) as pool:
        urls = [http2_site.url(f"/{number}") for number in range(3)]
        answers = list(pool.map(client.get, urls))
        with pytest.raises(DisallowedByRobots):
            client.get(http2_site.url("/private/x"))
    assert {each.http_version for each in answers} == {"HTTP/2"}
    assert http2_site.targets()[0] == "/robots.txt"
    assert sorted(http2_site.targets()) == sorted(IN_TURN)
    assert min(http2_site.gaps()) >= DELAY


@pytest.mark.anyio
async def test_http2_streams_of_many_tasks(
    http2_site: Http2Site, authority: Authority, store: MemoryStore
) -> None:
    transport = AsyncPoliteTransport(ua=UA, store=store, http2=True, verify=trusting(authority))
    versions: list[str] = []

    async def ask(client: httpx.AsyncClient, number: int) -> None:
        versions.append((await client.get(http2_site.url(f"/{number}"))).http_version)

    async with httpx.AsyncClient(transport=transport) as client, anyio.create_task_group() as tasks:
        for number in range(3):
            tasks.start_soon(ask, client, number)
    assert versions == ["HTTP/2"] * 3
    assert sorted(http2_site.targets()) == sorted(IN_TURN)
    assert min(http2_site.gaps()) >= DELAY


# --- TLS ------------------------------------------------------------------------------------


def test_politely_keeps_the_ca_that_each_client_trusts(
    tls_site: Start, authority: Authority
) -> None:
    place = tls_site(ROBOTS)
    session = requests.Session()
    session.verify = authority.ca
    clients: list[Any] = [
        session,
        httpx.Client(verify=trusting(authority)),
        urllib3.PoolManager(ca_certs=authority.ca),
    ]
    for client in clients:
        with politely(client, ua=UA, store=MemoryStore()) as polite:
            polite.request("GET", place.url("/page"))
    strangers: list[tuple[Any, type[Exception]]] = [
        (requests.Session(), requests.exceptions.SSLError),
        (httpx.Client(), httpx.ConnectError),
        (urllib3.PoolManager(retries=False), urllib3.exceptions.SSLError),
    ]
    for stranger, error in strangers:
        with (
            politely(stranger, ua=UA, store=MemoryStore()) as polite,
            pytest.raises(error) as refused,
        ):
            polite.request("GET", place.url("/page"))
        assert "/robots.txt" in "".join(refused.value.__notes__)
    assert place.targets() == ["/robots.txt", "/page"] * len(clients)


# --- pools that hold one connection ---------------------------------------------------------


def test_a_pool_of_one_that_blocks(site: Start, store: MemoryStore) -> None:
    place = site(ROBOTS)
    with PoliteSession(ua=UA, store=store) as session, ThreadPoolExecutor(3) as threads:
        session.mount("http://", HTTPAdapter(pool_connections=1, pool_maxsize=1, pool_block=True))
        list(threads.map(session.get, [place.url(f"/{number}") for number in range(3)]))
        # A stream that is still open holds the connection, and no turn.
        with session.get(place.url("/large?size=500000"), stream=True) as stream:
            assert len(stream.content) == 500_000
        session.get(place.url("/after"))
    assert sorted(place.targets()[:4]) == sorted(IN_TURN)
    assert min(place.gaps()) >= DELAY
    assert {each.connection for each in place.log} == {0}  # all in the one connection


def test_a_manager_with_a_pool_of_one_that_blocks(site: Start, store: MemoryStore) -> None:
    place = site(ROBOTS)
    with (
        PolitePoolManager(1, ua=UA, store=store, maxsize=1, block=True) as manager,
        ThreadPoolExecutor(3) as threads,
    ):
        urls = [place.url(f"/{number}") for number in range(3)]
        list(threads.map(lambda url: manager.request("GET", url), urls))
    assert sorted(place.targets()) == sorted(IN_TURN)
    assert min(place.gaps()) >= DELAY
    assert {each.connection for each in place.log} == {0}


@pytest.mark.anyio
async def test_max_connections_of_one(site: Start, store: MemoryStore) -> None:
    place = site(SLOW)
    limits = httpx.Limits(max_connections=1)
    transport = AsyncPoliteTransport(ua=UA, store=store, limits=limits)
    # The wait for a turn takes no connection, so that it never becomes a PoolTimeout.
    timeout = httpx.Timeout(5, pool=0.2)
    async with (
        httpx.AsyncClient(transport=transport, timeout=timeout) as client,
        anyio.create_task_group() as tasks,
    ):
        for number in range(2):
            tasks.start_soon(client.get, place.url(f"/{number}"))
    assert sorted(place.targets()) == ["/0", "/1", "/robots.txt"]
    assert min(place.gaps()) >= 0.4


def test_max_connections_of_one_in_threads(site: Start, store: MemoryStore) -> None:
    place = site(SLOW)
    client = httpx.Client(
        limits=httpx.Limits(max_connections=1), timeout=httpx.Timeout(5, pool=0.2)
    )
    with politely(client, ua=UA, store=store), ThreadPoolExecutor(2) as threads:
        list(threads.map(client.get, [place.url(f"/{number}") for number in range(2)]))
    assert sorted(place.targets()) == ["/0", "/1", "/robots.txt"]
    assert min(place.gaps()) >= 0.4


# --- timeouts -------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["requests", "httpx", "urllib3"])
def test_the_wait_for_a_turn_counts_in_no_timeout(
    site: Start, store: MemoryStore, name: str
) -> None:
    place = site("User-agent: *\nCrawl-delay: 0.6\n")
    with (
        PoliteSession(ua=UA, store=store) as session,
        httpx.Client(transport=PoliteTransport(ua=UA, store=store), timeout=0.3) as client,
        PolitePoolManager(ua=UA, store=store, timeout=0.3) as manager,
    ):
        gets: dict[str, Callable[[str], Any]] = {
            "requests": lambda url: session.get(url, timeout=0.3),
            "httpx": client.get,
            "urllib3": lambda url: manager.request("GET", url, retries=False),
        }
        gets[name](place.url("/page"))
    assert min(place.gaps()) >= 0.6


# --- bodies, both ways ----------------------------------------------------------------------


def pieces() -> Iterator[bytes]:
    yield from (b"one ", b"two ", b"three")


async def async_pieces() -> AsyncIterator[bytes]:
    for piece in pieces():
        yield piece


def test_bodies_that_stream_up(site: Start, store: MemoryStore) -> None:
    place = site(ROBOTS)
    read: list[bytes] = []

    def watched() -> Iterator[bytes]:
        for piece in pieces():
            read.append(piece)
            yield piece

    with (
        PoliteSession(ua=UA, store=store) as session,
        httpx.Client(transport=PoliteTransport(ua=UA, store=store)) as client,
        PolitePoolManager(ua=UA, store=store) as manager,
    ):
        sends: list[Callable[[str], Any]] = [
            lambda url: session.post(url, data=watched()),
            lambda url: client.post(url, content=watched()),
            lambda url: manager.request("POST", url, body=watched()),
        ]
        for send in sends:
            assert send(place.url("/echo")).json()["body"] == "one two three"
            # A refused upload is not even read.
            read.clear()
            with pytest.raises(DisallowedByRobots):
                send(place.url("/private/x"))
            assert read == []
    assert place.targets() == ["/robots.txt", *["/echo"] * 3]
    assert min(place.gaps()) >= DELAY


@pytest.mark.anyio
async def test_bodies_that_stream_both_ways_async(site: Start, store: MemoryStore) -> None:
    place = site(ROBOTS)
    transport = AsyncPoliteTransport(ua=UA, store=store)
    async with httpx.AsyncClient(transport=transport) as client:
        sent = await client.post(place.url("/echo"), content=async_pieces())
        assert sent.json()["body"] == "one two three"
        async with client.stream("GET", place.url("/large?size=300000")) as down:
            # Another request while the body is still to come.
            await client.get(place.url("/meanwhile"))
            assert sum([len(piece) async for piece in down.aiter_bytes()]) == 300_000
    assert min(place.gaps()) >= DELAY


# --- hooks ----------------------------------------------------------------------------------


def test_event_hooks_of_httpx_see_what_they_saw(site: Start, store: MemoryStore) -> None:
    place = site(ROBOTS)
    seen: list[object] = []
    hooks: Any = {
        "request": [lambda request: seen.append(request.url.path)],
        "response": [lambda response: seen.append(response.status_code)],
    }
    client = httpx.Client(event_hooks=hooks, follow_redirects=True)
    with politely(client, ua=UA, store=store):
        client.get(place.url("/redirect?to=/page"))
        with pytest.raises(DisallowedByRobots) as refused:
            client.get(place.url("/private"))
    # No hook sees robots.txt: it is not the script's.
    assert seen == ["/redirect", 302, "/page", 200, "/private"]
    assert refused.value.request.url.path == "/private"  # type: ignore[attr-defined]
    assert place.targets() == ["/robots.txt", "/redirect?to=/page", "/page"]


def test_the_trace_of_httpx_goes_on(site: Start, store: MemoryStore) -> None:
    place = site(ROBOTS)
    events: list[str] = []
    with httpx.Client(transport=PoliteTransport(ua=UA, store=store)) as client:
        trace = {"trace": lambda name, _: events.append(name)}
        client.get(place.url("/page"), extensions=trace)
    assert events.count("http11.send_request_headers.started") == 1
