"""A shared store within its process: event loops, forks, pickles, and what it does not ask."""

import asyncio
import copy
import gc
import pickle
import sqlite3
import subprocess
import sys
import threading
import time
import weakref
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import anyio
import httpx
import pytest

from polite_transport import AsyncPoliteTransport, PoliteSession, SQLiteStore
from polite_transport.stores.base import NOW, Seat, StoreFault, Turn
from polite_transport.stores.sqlite import SQLiteLedger
from polite_transport.testing import Site

from .servers import RedisServer

Sites = Callable[..., Site]
UA = "MyBot/1.0 (+https://example.org/bot)"
ROBOTS = "User-agent: *\nCrawl-delay: 0.1\n"


@pytest.mark.anyio
async def test_a_cancelled_task_takes_no_turn_along_and_blocks_no_loop(
    site: Sites, tmp_path: Path
) -> None:
    place = site(ROBOTS)
    store = SQLiteStore(tmp_path / "store.sqlite", timeout=5.0)
    transport = AsyncPoliteTransport(ua=UA, store=store)
    async with httpx.AsyncClient(transport=transport) as client:
        await client.get(place.url("/first"))
        with closing(
            sqlite3.connect(store.path, isolation_level=None, check_same_thread=False)
        ) as other:
            other.execute("BEGIN IMMEDIATE")  # so that the turn is asked for and not answered yet
            ticks = 0
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(client.get, place.url("/cancelled"))
                for _ in range(20):
                    await anyio.sleep(0.01)
                    ticks += 1
                threading.Timer(0.3, other.rollback).start()
                tasks.cancel_scope.cancel()
            assert ticks == 20
        started = time.monotonic()
        await client.get(place.url("/second"))
        assert time.monotonic() - started < 5.0  # no lease of the cancelled one had to end
    assert place.targets() == ["/robots.txt", "/first", "/second"]
    store.close()


def test_what_asyncio_cancels_by_itself_takes_no_turn_along(site: Sites, tmp_path: Path) -> None:
    place = site(ROBOTS)
    store = SQLiteStore(tmp_path / "store.sqlite", timeout=5.0)

    async def crawl() -> None:
        transport = AsyncPoliteTransport(ua=UA, store=store)
        async with httpx.AsyncClient(transport=transport) as client:
            await client.get(place.url("/first"))
            with closing(
                sqlite3.connect(store.path, isolation_level=None, check_same_thread=False)
            ) as other:
                other.execute("BEGIN IMMEDIATE")
                task = asyncio.create_task(client.get(place.url("/cancelled")))
                await asyncio.sleep(0.2)
                threading.Timer(0.3, other.rollback).start()
                task.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await task
            await client.get(place.url("/second"))

    asyncio.run(crawl())
    assert place.targets() == ["/robots.txt", "/first", "/second"]
    store.close()


def test_tasks_that_wait_for_another_process_do_not_keep_a_program_from_its_end(
    site: Sites, tmp_path: Path
) -> None:
    place = site("User-agent: *\nCrawl-delay: 30\n")
    store = SQLiteStore(tmp_path / "store.sqlite")
    with PoliteSession(ua=UA, store=store) as session:
        session.check(place.url("/page"))
    script = f"""
import asyncio, httpx
from polite_transport import AsyncPoliteTransport, SQLiteStore
async def main():
    transport = AsyncPoliteTransport(ua={UA!r}, store=SQLiteStore({store.path!r}))
    async with httpx.AsyncClient(transport=transport) as client:
        tasks = [asyncio.create_task(client.get({place.url("/page")!r})) for _ in range(5)]
        await asyncio.sleep(0.5)
        for task in tasks:
            task.cancel()
        print(await asyncio.gather(*tasks, return_exceptions=True))
asyncio.run(main())
"""
    started = time.monotonic()
    ended = subprocess.run(
        [sys.executable, "-c", script], check=True, capture_output=True, text=True, timeout=25
    )
    assert ended.stdout.count("CancelledError") == 5, ended.stderr
    assert time.monotonic() - started < 20
    store.close()


def test_after_fork_parent_and_child_are_one_robot(
    site: Sites, shared_place: dict[str, Any]
) -> None:
    place = site(ROBOTS)
    options = {k: v for k, v in shared_place.items() if k not in ("kind", "place")}
    kind = "SQLiteStore" if shared_place["kind"] == "sqlite" else "RedisStore"
    script = f"""
import os, warnings
from polite_transport import PoliteSession, {kind}
store = {kind}({shared_place["place"]!r}, **{options!r})
session = PoliteSession(ua={UA!r}, store=store)
session.get({place.url("/before")!r})
warnings.simplefilter("ignore")  # threads and fork: that is the point
child = os.fork()
for number in range(4):
    session = PoliteSession(ua={UA!r}, store=store)
    session.get({place.url("/")!r} + ("parent" if child else "child"))
if child:
    raise SystemExit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
os._exit(0)
"""
    subprocess.run([sys.executable, "-c", script], check=True, timeout=60)
    assert sorted(place.targets()) == sorted(
        ["/robots.txt", "/before", *["/parent"] * 4, *["/child"] * 4]
    )
    assert min(place.gaps()) >= 0.1


def test_copies_and_pickles_within_a_process_are_the_store_itself(tmp_path: Path) -> None:
    store = SQLiteStore(tmp_path / "store.sqlite", lease=3.0)
    assert copy.deepcopy(store) is store
    assert pickle.loads(pickle.dumps(store)) is store
    session = PoliteSession(ua=UA, store=store)
    assert pickle.loads(pickle.dumps(session)).visitor.store is store


def test_a_pickle_opens_the_same_file_in_another_process(tmp_path: Path) -> None:
    store = SQLiteStore(tmp_path / "store.sqlite", lease=3.0)
    script = "import pickle, sys; print(repr(pickle.load(sys.stdin.buffer)))"
    ended = subprocess.run(
        [sys.executable, "-c", script], input=pickle.dumps(store), capture_output=True, check=True
    )
    assert ended.stdout.decode().strip() == repr(store)


def test_requests_that_are_bound_to_nothing_do_not_ask_each_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = SQLiteStore(tmp_path / "store.sqlite")
    database = store._ledger._database  # type: ignore[attr-defined]
    asked: list[object] = []
    change = database.change

    def counted(*args: Any) -> Any:
        asked.append(args)
        return change(*args)

    monkeypatch.setattr(database, "change", counted)
    started = time.monotonic()
    for _ in range(2_000):
        seat = Seat("example.org", 0.0, 60.0)
        assert store.acquire(seat).granted
        store.release(seat, sent=True, overloaded=False)
    took = time.monotonic() - started
    assert 1 <= len(asked) <= 1 + took / 0.25 + 1
    store.close()


def test_a_store_that_nobody_has_any_more_stops_listening(tmp_path: Path) -> None:
    others = set(threading.enumerate())
    store = SQLiteStore(tmp_path / "store.sqlite", lease=0.3)
    seat = Seat("example.org", 0.0, 60.0, alone=True)
    store.acquire(seat)
    store.release(seat, sent=True)
    (listener,) = set(threading.enumerate()) - others
    gone = weakref.ref(store)
    del store
    gc.collect()
    assert gone() is None
    listener.join(timeout=10.0)
    assert not listener.is_alive()


def test_what_the_store_missed_while_it_was_away_is_told_when_it_is_back(
    redis_server: Callable[..., RedisServer],
) -> None:
    from polite_transport import RedisStore

    server = redis_server()
    store, other = (RedisStore(server.url, lease=0.6, timeout=5.0) for _ in range(2))
    seat = Seat("example.org", 0.0, 60.0, alone=True)
    assert store.acquire(seat).granted
    server.stop()
    store.release(seat, sent=True, push=60.0)
    server.start()
    deadline = time.monotonic() + 15.0
    while True:
        probe = Seat("example.org", 0.0, 60.0, alone=True)
        turn = other.acquire(probe)
        other.release(probe, sent=False)
        if turn.pushed > 30.0:
            break
        assert time.monotonic() < deadline, turn
        time.sleep(0.05)
    store.close()
    other.close()


def test_a_lease_shorter_than_an_answer_takes_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = SQLiteStore(tmp_path / "store.sqlite", lease=0.2, assume_cold=True)
    acquire = SQLiteLedger.acquire

    def slowly(*asked: Any) -> Turn:
        time.sleep(0.15)
        return acquire(*asked)

    monkeypatch.setattr(SQLiteLedger, "acquire", slowly)
    seat = Seat("example.org", 1.0, 60.0)
    with pytest.raises(StoreFault, match=r"took 0\.\d s.* after 0\.2 s: .* a longer lease"):
        store.acquire(seat)
    store.release(seat, sent=False)
    monkeypatch.undo()
    assert store.acquire(Seat("example.org", 1.0, 60.0)) == NOW
    store.close()


@pytest.mark.parametrize("on_error", ["raise", "local"])
def test_without_a_thread_there_is_no_turn_and_later_there_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, on_error: Any
) -> None:
    store = SQLiteStore(
        tmp_path / "store.sqlite", assume_cold=True, on_error=on_error, max_processes=2
    )

    def fail(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    seat = Seat("example.org", 1.0, 60.0)
    monkeypatch.setattr(threading.Thread, "start", fail)
    for _ in range(2):
        with pytest.raises(StoreFault, match="no thread can be started"):
            store.acquire(seat)
        store.release(seat, sent=False)
    monkeypatch.undo()
    assert store.acquire(seat) == NOW
    store.close()


def test_a_turn_that_ends_as_it_is_renewed_has_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with closing(SQLiteStore(tmp_path / "store.sqlite", assume_cold=True)) as store:
        seat, after = Seat("example.org", 0.1, 60.0), Seat("example.org", 0.1, 60.0)
        assert store.acquire(seat) == NOW
        renew = SQLiteLedger.renew
        ends = threading.Thread(target=store.release, args=(seat,), kwargs={"sent": True})

        def slowly(ledger: SQLiteLedger, *leases: Any) -> None:
            # What a locked file, or a server far away, puts before it.
            ends.start()
            ends.join(0.3)
            renew(ledger, *leases)

        with monkeypatch.context() as patched:
            patched.setattr(SQLiteLedger, "renew", slowly)
            store._background.beat()
        ends.join(10)
        turn = store.acquire(after)
        assert turn.granted
        assert turn.wait <= 0.1
