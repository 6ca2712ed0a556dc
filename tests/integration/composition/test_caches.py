"""A cache above us: a hit makes no wait, and nothing is sent for it, not even for robots.txt."""

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import hishel
import hishel.httpx
import hishel.requests
import httpx
import pytest
import requests
import requests_cache
from cachecontrol import CacheControl, CacheControlAdapter

from polite_transport import (
    AsyncPoliteTransport,
    DisallowedByRobots,
    MemoryStore,
    Policy,
    PoliteSession,
    PoliteTransport,
    install,
    politely,
)
from polite_transport.testing import Answer, Site

UA = "MyBot/1.0 (+https://example.org/bot)"
DELAY = 0.1
ROBOTS = f"User-agent: *\nDisallow: /private\nCrawl-delay: {DELAY}\n"
Start = Callable[..., Site]
IN_A_HURRY = Policy(max_wait=0)  # whatever has to wait, raises


def start(site: Start) -> Site:
    place = site(ROBOTS)
    place.serve("/page", Answer(body=b"kept", headers={"Cache-Control": "max-age=600"}))
    return place


def read_again(place: Site, get: Callable[[str], Any]) -> None:
    """Read a page that is in the cache, under ``IN_A_HURRY``; for the site nothing has happened."""
    place.clear()
    for _ in range(10):
        assert get(place.url("/page")).content == b"kept"
    assert place.targets() == []


def miss_politely(place: Site, get: Callable[[str], Any]) -> None:
    """Read what no cache holds."""
    for number in range(2):
        assert get(place.url(f"/{number}")).status_code == 200
    with pytest.raises(DisallowedByRobots):
        get(place.url("/private/x"))
    assert place.targets() == ["/robots.txt", "/page", "/0", "/1"]
    assert min(place.gaps()) >= DELAY


# --- requests -------------------------------------------------------------------------------


def control_adapter() -> requests.Session:
    session = requests.Session()
    for prefix in ("http://", "https://"):
        session.mount(prefix, CacheControlAdapter())
    return session


def hishel_adapter(folder: Path, *, rfc: bool) -> requests.Session:
    session = requests.Session()
    storage = hishel.SqliteStorage(database_path=str(folder / "cache.db"))
    for prefix in ("http://", "https://"):
        session.mount(prefix, hishel.requests.CacheAdapter(storage=storage, rfc=rfc))
    return session


CACHED_SESSIONS: dict[str, Callable[[Path], requests.Session]] = {
    "requests-cache": lambda _: requests_cache.CachedSession(backend="memory"),
    "CacheControlAdapter": lambda _: control_adapter(),
    "CacheControl": lambda _: CacheControl(requests.Session()),
    "hishel": lambda folder: hishel_adapter(folder, rfc=False),
    "hishel by RFC 9111": lambda folder: hishel_adapter(folder, rfc=True),
}


@pytest.mark.parametrize("make", CACHED_SESSIONS.values(), ids=CACHED_SESSIONS)
def test_a_cache_of_requests(
    site: Start, tmp_path: Path, store: MemoryStore, make: Callable[[Path], requests.Session]
) -> None:
    place = start(site)
    with politely(make(tmp_path), ua=UA, store=store) as session:
        session.get(place.url("/page"))
        miss_politely(place, session.get)
        politely(session, ua=UA, store=store, policy=IN_A_HURRY)
        read_again(place, session.get)
        # Where robots.txt is not known, a hit needs none.
        politely(session, ua=UA, store=MemoryStore())
        read_again(place, session.get)


@pytest.mark.parametrize("make", CACHED_SESSIONS.values(), ids=CACHED_SESSIONS)
def test_a_cache_of_requests_in_an_installed_process(
    site: Start, tmp_path: Path, store: MemoryStore, make: Callable[[Path], requests.Session]
) -> None:
    place = start(site)
    with make(tmp_path) as session:
        with install(ua=UA, store=store):
            session.get(place.url("/page"))
            miss_politely(place, session.get)
        with install(ua=UA, store=store, policy=IN_A_HURRY):
            read_again(place, session.get)
        with install(ua=UA, store=MemoryStore()):
            read_again(place, session.get)


def test_cache_control_around_a_polite_session(site: Start, store: MemoryStore) -> None:
    place = start(site)
    # It mounts adapters of its own, in the place of ours; the session makes them polite.
    with CacheControl(PoliteSession(ua=UA, store=store)) as session:
        session.get(place.url("/page"))
        miss_politely(place, session.get)
        politely(session, ua=UA, store=store, policy=IN_A_HURRY)
        read_again(place, session.get)


def test_what_requests_cache_gives_on_a_miss(site: Start, store: MemoryStore) -> None:
    place = site("User-agent: *\nCrawl-delay: 0.5\n")
    place.serve("/slow", Answer(delay=0.1, body=b"slow"))
    with politely(requests_cache.CachedSession(backend="memory"), ua=UA, store=store) as session:
        session.get(place.url("/page"))
        missed: Any = session.get(place.url("/slow"))
        hit: Any = session.get(place.url("/slow"))
    # The site's own time counts; the wait for the turn, of half a second, does not.
    assert timedelta(seconds=0.1) <= missed.elapsed < timedelta(seconds=0.5)
    assert not missed.from_cache
    assert hit.from_cache
    assert missed.polite.allowed


# --- httpx ----------------------------------------------------------------------------------


def hishel_storage(folder: Path) -> hishel.SqliteStorage:
    return hishel.SqliteStorage(database_path=str(folder / "cache.db"))


def hishel_over_us(folder: Path, store: MemoryStore, *, rfc: bool) -> httpx.Client:
    polite = PoliteTransport(ua=UA, store=store)
    cache = hishel.httpx.CacheTransport(polite, storage=hishel_storage(folder), rfc=rfc)
    return httpx.Client(transport=cache)


CACHED_CLIENTS: dict[str, Callable[[Path, MemoryStore], httpx.Client]] = {
    "hishel over us": lambda folder, store: hishel_over_us(folder, store, rfc=False),
    "hishel over us by RFC 9111": lambda folder, store: hishel_over_us(folder, store, rfc=True),
    "politely(CacheClient)": lambda folder, store: politely(
        hishel.httpx.CacheClient(storage=hishel_storage(folder)), ua=UA, store=store
    ),
}


@pytest.mark.parametrize("make", CACHED_CLIENTS.values(), ids=CACHED_CLIENTS)
def test_a_cache_of_httpx(
    site: Start,
    tmp_path: Path,
    store: MemoryStore,
    make: Callable[[Path, MemoryStore], httpx.Client],
) -> None:
    place = start(site)
    with make(tmp_path, store) as client:
        client.get(place.url("/page"))
        miss_politely(place, client.get)
        politely(client, ua=UA, store=store, policy=IN_A_HURRY)
        read_again(place, client.get)
        politely(client, ua=UA, store=MemoryStore())
        read_again(place, client.get)


@pytest.mark.anyio
async def test_a_cache_of_async_httpx(site: Start, tmp_path: Path, store: MemoryStore) -> None:
    place = start(site)
    storage = hishel.AsyncSqliteStorage(database_path=str(tmp_path / "cache.db"))
    polite = AsyncPoliteTransport(ua=UA, store=store)
    cache = hishel.httpx.AsyncCacheTransport(polite, storage=storage)
    async with httpx.AsyncClient(transport=cache) as client:
        await client.get(place.url("/page"))
        await client.get(place.url("/0"))
        with pytest.raises(DisallowedByRobots):
            await client.get(place.url("/private/x"))
        assert place.targets() == ["/robots.txt", "/page", "/0"]
        assert min(place.gaps()) >= DELAY
        place.clear()
        politely(client, ua=UA, store=store, policy=IN_A_HURRY)
        for _ in range(10):
            assert (await client.get(place.url("/page"))).content == b"kept"
        assert place.targets() == []


def test_a_cache_beneath_us_is_refused(tmp_path: Path) -> None:
    cache = hishel.httpx.CacheTransport(httpx.HTTPTransport(), storage=hishel_storage(tmp_path))
    with pytest.raises(TypeError, match=r"CacheTransport outside, standing on PoliteTransport\(\)"):
        PoliteTransport(cache)
    storage = hishel.AsyncSqliteStorage(database_path=str(tmp_path / "cache.db"))
    async_cache = hishel.httpx.AsyncCacheTransport(httpx.AsyncHTTPTransport(), storage=storage)
    with pytest.raises(TypeError, match=r"outside, standing on AsyncPoliteTransport\(\)"):
        AsyncPoliteTransport(async_cache)
