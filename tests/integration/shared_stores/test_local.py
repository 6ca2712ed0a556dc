"""on_error="local": each process by itself while the store is away, slower, and never unpaced."""

import itertools
import logging
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, TypeVar

import anyio
import httpx
import pytest
import redis

from polite_transport import (
    AsyncPoliteTransport,
    Policy,
    PoliteSession,
    RedisStore,
    SQLiteStore,
    StoreUnavailable,
)
from polite_transport.stores.base import NOW, Claimed, CopyKey, CopyWaiter, Seat, StoreFault
from polite_transport.stores.shared import SharedStore
from polite_transport.testing import Site

from .servers import Crawl, RedisServer

Sites = Callable[..., Site]
Servers = Callable[..., RedisServer]
T = TypeVar("T")
UA = "MyBot/1.0 (+https://example.org/bot)"
DELAY = 0.1
ROBOTS = f"User-agent: *\nCrawl-delay: {DELAY}\n"
HOST = "example.org"
PROCESSES = 4


def get(store: SharedStore, place: Site, path: str = "/page", **policy: Any) -> None:
    with PoliteSession(ua=UA, store=store, policy=Policy(**policy)) as session:
        assert session.get(place.url(path)).status_code == 200


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Another program keeps the file to itself."""
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        yield
        other.execute("ROLLBACK")


def file_store(path: Path, **options: Any) -> SQLiteStore:
    """Open a store that has nothing to wait for, so that what is waited for is what was told."""
    given = {"timeout": 0.2, "on_error": "local", "max_processes": PROCESSES, **options}
    return SQLiteStore(path, assume_cold=True, **given)


def is_alone(store: SharedStore) -> bool:
    return store._outages.alone is not None


def wait_until_back(store: SharedStore) -> None:
    deadline = time.monotonic() + 30.0
    while is_alone(store):
        assert time.monotonic() < deadline, "it is never tried again"
        time.sleep(0.02)


def patiently(act: Callable[..., T], *args: Any) -> T:
    """Ask for as long as the store is patient."""
    deadline = time.monotonic() + 30.0
    while True:
        try:
            return act(*args)
        except StoreFault:
            assert time.monotonic() < deadline
            time.sleep(0.02)


def begin_fetch(store: SharedStore) -> Seat:
    """Take a turn as a fetch of robots.txt does, which is not bound to anything yet."""
    seat = Seat(HOST, 0.0, 60.0, alone=True)
    assert patiently(store.acquire, seat) == NOW
    return seat


def fetch(store: SharedStore, delay: float, **leave: Any) -> None:
    """Fetch a robots.txt that asks for a delay."""
    seat = begin_fetch(store)
    seat.delay = delay
    store.release(seat, sent=True, **leave)


def sent(place: Site, start: float, end: float) -> list[float]:
    return [each.time for each in place.log if start <= each.time <= end]


def test_away_and_back_again(
    site: Sites, redis_server: Servers, caplog: pytest.LogCaptureFixture
) -> None:
    place = site(ROBOTS)
    server = redis_server()
    store = RedisStore(server.url, timeout=0.5, on_error="local", max_processes=PROCESSES)
    other = RedisStore(server.url)
    get(store, place)
    server.stop()
    with caplog.at_level(logging.WARNING, "polite_transport"):
        stopped = time.monotonic()
        for _ in range(5):
            get(store, place)
    told = [each.getMessage() for each in caplog.records if "cannot be used" in each.getMessage()]
    assert len(told) == 1
    for said in (f"127.0.0.1:{server.port}", "does not answer", "4 times each site's delay"):
        assert said in told[0]
    local = sent(place, stopped, time.monotonic())
    assert len(local) == 5
    assert local[0] - stopped >= 0.5  # its patience
    assert min(b - a for a, b in itertools.pairwise(local)) >= PROCESSES * DELAY
    server.start()
    wait_until_back(store)
    back = time.monotonic()
    for each in (other, store, other, store):
        get(each, place)
    assert len(sent(place, back, time.monotonic())) == 5  # the server has lost the robots.txt
    assert min(place.gaps()) >= DELAY
    with server.client as client:
        assert client.exists("polite:{default}:turn:127.0.0.1")  # they have gone through it
    store.close()
    other.close()


def test_never_there(site: Sites, redis_server: Servers) -> None:
    place = site(ROBOTS)
    server = redis_server()
    server.stop()
    stores = [
        RedisStore(server.url, timeout=0.2, on_error="local", max_processes=2) for _ in range(2)
    ]
    for store in stores * 2:
        get(store, place)
    assert place.targets().count("/robots.txt") == 2  # each its own
    assert place.targets().count("/page") == 4
    for store in stores:
        store.close()


def test_what_does_not_pass_is_not_waited_for(site: Sites, redis_server: Servers) -> None:
    place = site(ROBOTS)
    server = redis_server("--requirepass", "open-sesame")
    store = RedisStore(server.url, timeout=600.0, on_error="local", max_processes=PROCESSES)
    for _ in range(3):
        get(store, place)
    assert min(place.gaps()) >= PROCESSES * DELAY
    with redis.Redis(port=server.port, password="open-sesame") as client:
        client.config_set("requirepass", "")
    wait_until_back(store)
    get(store, place)
    assert min(place.gaps()) >= DELAY
    store.close()


def test_a_file_that_is_none_and_then_is(site: Sites, tmp_path: Path) -> None:
    place = site(ROBOTS)
    path = tmp_path / "store.sqlite"
    path.write_text("these are my notes, and no database\n" * 100)
    before = path.read_bytes()
    store = file_store(path, timeout=600.0)
    for _ in range(3):
        get(store, place)
    assert min(place.gaps()) >= PROCESSES * DELAY
    assert path.read_bytes() == before
    path.unlink()
    wait_until_back(store)
    get(store, place)
    assert path.read_bytes().startswith(b"SQLite format")
    store.close()


def test_until_its_patience_is_over_the_fault_is_raised(site: Sites, redis_server: Servers) -> None:
    place = site(ROBOTS)
    server = redis_server()
    store = RedisStore(server.url, timeout=2.0, on_error="local", max_processes=PROCESSES)
    get(store, place)
    server.stop()
    stopped = time.monotonic()
    for _ in range(2):
        with pytest.raises(StoreUnavailable):
            get(store, place, max_wait=0.2)
    assert not is_alone(store)
    get(store, place)
    assert is_alone(store)
    assert place.log[-1].time - stopped >= 2.0
    assert len(place.log) == 3
    store.close()


def test_a_fault_that_is_over_soon_is_forgotten(site: Sites, redis_server: Servers) -> None:
    place = site(ROBOTS)
    server = redis_server()
    store = RedisStore(server.url, timeout=2.5, on_error="local", max_processes=PROCESSES)
    get(store, place)
    server.stop()
    with pytest.raises(StoreUnavailable):
        get(store, place, max_wait=0.1)
    server.start()
    time.sleep(3.0)  # longer than its patience, and than it takes to see that the server is back
    server.stop()
    with pytest.raises(StoreUnavailable):
        get(store, place, max_wait=0.1)
    assert not is_alone(store)
    store.close()


def test_the_ledger_is_told_of_the_last_request(tmp_path: Path) -> None:
    path = tmp_path / "store.sqlite"
    store, other = file_store(path), file_store(path)
    fetch(other, 0.0)
    with locked(path):
        fetch(store, 30.0)
        assert is_alone(store)
    wait_until_back(store)
    turn = other.acquire(Seat(HOST, 0.0, 60.0))
    assert turn.granted
    assert turn.wait > 25.0
    store.close()
    other.close()


def test_the_ledger_is_told_of_a_request_that_is_on_its_way(tmp_path: Path) -> None:
    path = tmp_path / "store.sqlite"
    store, other = file_store(path), file_store(path)
    fetch(other, 0.0)
    with locked(path):
        seat = begin_fetch(store)
    wait_until_back(store)
    mine = Seat(HOST, 5.0, 60.0)
    assert not other.acquire(mine).granted
    store.release(seat, sent=True)
    turn = other.acquire(mine)
    assert turn.granted
    assert 4.0 < turn.wait <= 5.0
    store.close()
    other.close()


def test_who_waits_for_a_long_time_asks_the_ledger_when_it_is_back(tmp_path: Path) -> None:
    path = tmp_path / "store.sqlite"
    store = file_store(path)
    with locked(path):
        fetch(store, 30.0)
        seat = Seat(HOST, 30.0, 60.0)
        turn = store.acquire(seat)
        assert not turn.granted
        assert PROCESSES * 30.0 - 5.0 < turn.wait <= PROCESSES * 30.0
        assert turn.ask_again == turn.wait
        woken = threading.Lock()
        woken.acquire()
        seat.wake = woken.release
        assert not seat.ready
    assert woken.acquire(timeout=30.0)
    assert seat.ready
    turn = store.acquire(seat)
    assert turn.granted
    assert 25.0 < turn.wait <= 30.0
    store.close()


def test_what_is_bound_to_nothing_goes_on(tmp_path: Path) -> None:
    path = tmp_path / "store.sqlite"
    store = file_store(path)
    fetch(store, 0.0)
    with locked(path):
        free = [Seat("free.example", 0.0, 60.0) for _ in range(3)]
        assert [patiently(store.acquire, seat) for seat in free] == [NOW] * 3
        assert is_alone(store)
        for seat in free:
            store.release(seat, sent=True, overloaded=False)
        fetch(store, 30.0)
        assert store.acquire(Seat(HOST, 0.0, 60.0)).wait > PROCESSES * 30.0 - 5.0
        assert store.acquire(Seat("free.example", 0.0, 60.0)) == NOW
    store.close()


def test_overloads_in_a_row_are_counted_meanwhile(tmp_path: Path) -> None:
    path = tmp_path / "store.sqlite"
    store = file_store(path)
    with locked(path):
        fetch(store, 0.0, overloaded=True)
        again = Seat(HOST, 0.0, 60.0)
        assert 0.0 < store.acquire(again).pushed <= 1.25
    wait_until_back(store)
    while (turn := store.acquire(again)).wait:
        time.sleep(turn.wait)
    store.release(again, sent=True, overloaded=False)
    assert store.acquire(Seat(HOST, 0.0, 60.0)) == NOW
    assert store.passes(HOST)  # so that the row is over here too
    store.close()


def test_a_copy_that_was_asked_for_elsewhere_is_fetched_here(tmp_path: Path) -> None:
    path = tmp_path / "store.sqlite"
    store, other = file_store(path), file_store(path)
    key = CopyKey("http://example.org", "mybot", "follow", 512_000, 10.0, 86_400.0)
    assert other.claim(key, CopyWaiter()) == Claimed(None)
    waiter = CopyWaiter()
    assert store.claim(key, waiter) != Claimed(None)
    with locked(path):
        assert patiently(store.claim, key, waiter) == Claimed(None)
        assert is_alone(store)
        store.publish(key, waiter, None)
    store.close()
    other.close()


@pytest.mark.anyio
async def test_tasks(site: Sites, redis_server: Servers) -> None:
    place = site(ROBOTS)
    server = redis_server()
    server.stop()
    store = RedisStore(server.url, timeout=0.2, on_error="local", max_processes=PROCESSES)
    transport = AsyncPoliteTransport(ua=UA, store=store)
    async with httpx.AsyncClient(transport=transport) as client, anyio.create_task_group() as tasks:
        for _ in range(4):
            tasks.start_soon(client.get, place.url("/page"))
    assert len(place.log) == 5
    assert min(place.gaps()) >= PROCESSES * DELAY
    store.close()


def test_processes_that_lose_their_server_and_find_it_again(
    site: Sites, redis_server: Servers, crawl: Callable[..., Crawl]
) -> None:
    place = site(ROBOTS)
    server = redis_server()
    options = {"timeout": 0.5, "on_error": "local", "max_processes": 2}
    store = {"kind": "redis", "place": server.url, **options}
    agents = [f"{name}Bot/1.0 (+https://example.org/bot)" for name in ("One", "Two")]
    crawls = [
        crawl(store, [place.url("/page")], threads=2, seconds=9, ua=agent) for agent in agents
    ]
    place.wait_for(8, timeout=20.0)
    server.stop()
    stopped = time.monotonic()
    time.sleep(2.5)
    before_start = time.monotonic()
    server.start()
    for each in crawls:
        assert each.result()["errors"] == {}
    during = [each for each in place.log if stopped + 0.6 < each.time < before_start]
    for agent in agents:
        own = [each.time for each in during if each.headers["user-agent"] == agent]
        assert len(own) >= 3
        assert min(b - a for a, b in itertools.pairwise(own)) >= 2 * DELAY
    # By then both have tried it again.
    after = [each.time for each in place.log if each.time > before_start + 3.0]
    assert len(after) >= 3
    assert min(b - a for a, b in itertools.pairwise(after)) >= DELAY
