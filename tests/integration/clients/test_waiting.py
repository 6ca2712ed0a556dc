"""The wait for a turn: what it takes from nobody, and how it ends before its time."""

import asyncio
import signal
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from typing import Any, Never

import anyio
import anyio.to_thread
import httpx
import pytest
from requests.adapters import HTTPAdapter

from polite_transport import (
    AsyncPoliteTransport,
    MemoryStore,
    Policy,
    PolitePoolManager,
    PoliteSession,
    PoliteTransport,
)
from polite_transport.testing import Answer, Site

from .faces import FACES, UA, Visitor

DELAY = 0.1
ROBOTS = f"User-agent: *\nCrawl-delay: {DELAY}\n"
Start = Callable[..., Site]
Visit = Callable[..., Visitor]


@pytest.mark.parametrize("visit", FACES, indirect=True)
def test_it_counts_neither_as_timeout_nor_as_elapsed(site: Start, visit: Visit) -> None:
    place = site("User-agent: *\nCrawl-delay: 1\n")
    client = visit()
    for path in ("/1", "/slow?headers=0.1"):
        seen = client.get(place.url(path), timeout=0.7)
        assert seen.decision.waited > 0.7
        if seen.elapsed is not None:
            assert seen.elapsed < 0.7
    if seen.elapsed is not None:
        assert seen.elapsed >= 0.1
    assert len(place.log) == 3


def test_each_hop_of_a_redirect_is_timed_by_itself(site: Start, store: MemoryStore) -> None:
    place = site("User-agent: *\nCrawl-delay: 0.8\n")
    url = place.url("/redirect?to=/redirect%3Fto=/page")
    with PoliteSession(ua=UA, store=store) as session:
        seen = session.get(url)
        hops = [*seen.history, seen]
    with httpx.Client(
        transport=PoliteTransport(ua=UA, store=store), follow_redirects=True
    ) as client:
        also = client.get(url)
        times = [each.elapsed for each in hops] + [each.elapsed for each in (*also.history, also)]
    assert len(times) == 6
    assert max(each.total_seconds() for each in times) < 0.8


def test_it_holds_no_connection_of_a_pool_of_one(site: Start, store: MemoryStore) -> None:
    hosts = ("127.0.0.1", "127.0.0.2", "127.0.0.3")
    place = site(ROBOTS, addresses=hosts)
    urls = [place.url(f"/{number}", host) for host in hosts for number in range(3)]
    adapter = HTTPAdapter(pool_connections=1, pool_maxsize=1, pool_block=True)
    pools = PolitePoolManager(1, maxsize=1, block=True, ua=UA, store=store)
    transport = PoliteTransport(ua=UA, store=store, limits=httpx.Limits(max_connections=1))
    with (
        PoliteSession(ua=UA, store=store) as session,
        httpx.Client(transport=transport, timeout=httpx.Timeout(10, pool=0.1)) as client,
        ThreadPoolExecutor(27) as threads,
    ):
        session.mount("http://", adapter)
        asked: list[Future[Any]] = []
        for url in urls:
            asked += [threads.submit(session.get, url), threads.submit(client.get, url)]
            asked += [threads.submit(pools.request, "GET", url)]
        for each in asked:
            each.result()
    pools.clear()
    assert len(place.log) == 3 * (1 + 9)
    assert min(place.gaps()) >= DELAY


@pytest.mark.parametrize("visit", FACES, indirect=True)
def test_a_stalled_site_blocks_the_others_for_the_turn_limit_only(visit: Visit) -> None:
    client = visit(turn_limit=0.4)
    with ThreadPoolExecutor(1) as thread:
        with Site(ROBOTS) as place:
            stalled = thread.submit(client.get, place.url("/stall"), timeout=None)
            place.wait_for(2)
            client.get(place.url("/next"))
            gap = place.gaps()[-1]
        with pytest.raises(client.native):
            stalled.result()
    # And two delays after it; the first of them is for the way that the request may have had.
    assert gap >= 0.4 + DELAY
    assert gap < 10


@pytest.mark.parametrize("visit", FACES, indirect=True)
def test_a_robots_txt_that_stalls_ends_after_its_own_time(site: Start, visit: Visit) -> None:
    place = site(Answer(delay=float("inf")))
    client = visit(robots_timeout=0.15)
    with pytest.raises(client.native) as raised:
        client.get(place.url("/page"), timeout=None)
    assert any("robots.txt" in note for note in raised.value.__notes__)
    assert place.targets() == ["/robots.txt", "/robots.txt"]


@pytest.mark.anyio
async def test_a_cancelled_waiter_gives_its_place_away(site: Start, store: MemoryStore) -> None:
    place = site(ROBOTS)
    async with httpx.AsyncClient(transport=AsyncPoliteTransport(ua=UA, store=store)) as client:
        await client.get(place.url("/first"))
        with anyio.fail_after(20):
            async with anyio.create_task_group() as tasks, anyio.create_task_group() as cancelled:
                for number in range(5):
                    cancelled.start_soon(client.get, place.url(f"/cancelled/{number}"))
                await anyio.sleep(DELAY / 5)
                tasks.start_soon(client.get, place.url("/behind"))
                await anyio.sleep(DELAY / 5)
                cancelled.cancel_scope.cancel()
    assert place.targets() == ["/robots.txt", "/first", "/behind"]
    assert min(place.gaps()) >= DELAY


@pytest.mark.anyio
async def test_a_request_cancelled_on_its_way_counts_as_unanswered(
    site: Start, store: MemoryStore
) -> None:
    place = site(ROBOTS)
    async with httpx.AsyncClient(transport=AsyncPoliteTransport(ua=UA, store=store)) as client:
        async with anyio.create_task_group() as cancelled:
            cancelled.start_soon(client.get, place.url("/slow?headers=20"))
            await anyio.to_thread.run_sync(place.wait_for, 2)
            cancelled.cancel_scope.cancel()
        with anyio.fail_after(10):
            await client.get(place.url("/next"))
    assert place.gaps()[-1] >= 2 * DELAY


@pytest.mark.anyio
async def test_of_those_who_wait_for_robots_txt_another_takes_over(
    site: Start, store: MemoryStore
) -> None:
    place = site([Answer(delay=20), ROBOTS])
    async with httpx.AsyncClient(
        transport=AsyncPoliteTransport(ua=UA, store=store), timeout=30
    ) as client:
        with anyio.fail_after(10):
            async with anyio.create_task_group() as tasks, anyio.create_task_group() as cancelled:
                cancelled.start_soon(client.get, place.url("/cancelled"))
                await anyio.to_thread.run_sync(place.wait_for, 1)
                for number in range(3):
                    tasks.start_soon(client.get, place.url(f"/{number}"))
                await anyio.sleep(DELAY)
                cancelled.cancel_scope.cancel()
    targets = place.targets()
    assert targets[:2] == ["/robots.txt", "/robots.txt"]
    assert sorted(targets[2:]) == ["/0", "/1", "/2"]
    assert min(place.gaps()[1:]) >= DELAY


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="no timers on this system")
def test_an_interrupted_thread_gives_its_place_away(site: Start, store: MemoryStore) -> None:
    place = site("User-agent: *\nCrawl-delay: 0.5\n")

    def interrupt(*_: Any) -> Never:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, interrupt)
    try:
        with PoliteSession(ua=UA, store=store) as session:
            session.get(place.url("/first"))
            signal.setitimer(signal.ITIMER_REAL, 0.1)
            with pytest.raises(KeyboardInterrupt):
                session.get(place.url("/interrupted"))
            session.get(place.url("/next"))
    finally:
        signal.signal(signal.SIGALRM, before)
    assert place.targets() == ["/robots.txt", "/first", "/next"]
    assert min(place.gaps()) >= 0.5


def test_one_transport_serves_one_event_loop_after_the_other(
    site: Start, store: MemoryStore
) -> None:
    place = site(ROBOTS)
    transport = AsyncPoliteTransport(
        ua=UA, store=store, limits=httpx.Limits(max_keepalive_connections=0)
    )

    async def main(loop: int) -> None:
        client = httpx.AsyncClient(transport=transport)
        async with anyio.create_task_group() as tasks:
            for number in range(3):
                tasks.start_soon(client.get, place.url(f"/{loop}/{number}"))

    asyncio.run(main(1))
    asyncio.run(main(2))
    anyio.run(main, 3, backend="trio")
    assert len(place.log) == 1 + 9
    assert min(place.gaps()) >= DELAY


def test_a_loop_that_is_abandoned_with_waiters_strands_nobody(
    site: Start, store: MemoryStore
) -> None:
    place = site(ROBOTS)
    transport = AsyncPoliteTransport(
        ua=UA, store=store, limits=httpx.Limits(max_keepalive_connections=0)
    )

    async def main() -> None:
        client = httpx.AsyncClient(transport=transport)
        await client.get(place.url("/first"))
        tasks = [asyncio.create_task(client.get(place.url(f"/left/{n}"))) for n in range(3)]
        await asyncio.sleep(DELAY / 5)
        assert not any(task.done() for task in tasks)  # asyncio.run cancels them on its way out

    asyncio.run(main())
    with PoliteSession(ua=UA, store=store) as session:
        session.get(place.url("/next"))
    assert place.targets() == ["/robots.txt", "/first", "/next"]
    assert min(place.gaps()) >= DELAY


@pytest.mark.anyio
async def test_a_blocking_client_in_a_coroutine_that_holds_the_turn_raises_at_once(
    site: Start, store: MemoryStore
) -> None:
    place = site(ROBOTS)
    pools = PolitePoolManager(ua=UA, store=store)
    with (
        PoliteSession(ua=UA, store=store) as session,
        httpx.Client(transport=PoliteTransport(ua=UA, store=store)) as client,
    ):
        gets: list[Callable[[str], Any]] = [session.get, client.get]
        gets.append(partial(pools.request, "GET"))
        async with (
            httpx.AsyncClient(transport=AsyncPoliteTransport(ua=UA, store=store)) as waiting,
            anyio.create_task_group() as tasks,
        ):
            tasks.start_soon(waiting.get, place.url("/slow?headers=0.6"))
            await anyio.to_thread.run_sync(place.wait_for, 2)
            for get in gets:
                with pytest.raises(RuntimeError, match="asynchronous client"):
                    get(place.url("/blocking"))
        for get in gets:
            await anyio.to_thread.run_sync(get, place.url("/fine"))
    pools.clear()
    assert place.targets() == ["/robots.txt", "/slow?headers=0.6", *["/fine"] * 3]


@pytest.mark.anyio
async def test_a_blocking_client_does_not_wait_for_a_robots_txt_that_its_own_loop_fetches(
    site: Start, store: MemoryStore
) -> None:
    place = site(Answer(body=ROBOTS.encode(), delay=0.3))
    async with (
        httpx.AsyncClient(transport=AsyncPoliteTransport(ua=UA, store=store)) as waiting,
        anyio.create_task_group() as tasks,
    ):
        tasks.start_soon(waiting.get, place.url("/page"))
        await anyio.to_thread.run_sync(place.wait_for, 1)
        with (
            PoliteSession(ua=UA, store=store) as session,
            pytest.raises(RuntimeError, match="asynchronous client"),
        ):
            session.get(place.url("/blocking"))
    assert place.targets() == ["/robots.txt", "/page"]


def test_an_open_response_that_still_has_the_turn_is_named(site: Start, store: MemoryStore) -> None:
    place = site(ROBOTS)
    policy = Policy(pace_from="body")
    with PoliteSession(ua=UA, store=store, policy=policy) as session:
        unread = session.get(place.url("/large?size=5000000"), stream=True)
        with pytest.raises(RuntimeError, match="read or close"):
            session.get(place.url("/next"))
        unread.close()
        session.get(place.url("/next"))
    assert place.targets() == ["/robots.txt", "/large?size=5000000", "/next"]
