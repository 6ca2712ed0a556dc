"""How turns are kept, over real sockets; the site's log is the judge."""

import asyncio
import os
import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import anyio
import httpx
import pytest
import requests
from requests.adapters import HTTPAdapter
from urllib3 import Retry

from polite_transport import (
    AsyncPoliteTransport,
    MemoryStore,
    Policy,
    PoliteSession,
    PoliteTransport,
    WaitTooLong,
)
from polite_transport.testing import Answer, Site

UA = "MyBot/1.0 (+https://example.org/bot)"
DELAY = 0.15
PACED = f"User-agent: *\nCrawl-delay: {DELAY}\n"
OPEN = "User-agent: *\nDisallow:\n"
Start = Callable[..., Site]


def session(store: MemoryStore, **policy: object) -> PoliteSession:
    return PoliteSession(ua=UA, store=store, policy=Policy(**policy))  # type: ignore[arg-type]


def test_without_a_delay_nothing_is_serialised(site: Start, store: MemoryStore) -> None:
    place = site(OPEN, think=1.0)
    with session(store) as client:
        client.get(place.url("/warm"))
        started = time.monotonic()
        threads = [
            threading.Thread(target=client.get, args=(place.url(f"/{number}"),))
            for number in range(8)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    # Eight pages of a second each, one after the other, would take eight.
    assert time.monotonic() - started < 5.0


@pytest.mark.parametrize(
    ("robots", "policy", "delay"),
    [
        (PACED, {"min_delay": 0.3}, 0.3),
        (PACED, {"min_delay": 0.05}, DELAY),
        (OPEN, {"min_delay": 0.2}, 0.2),
        ("User-agent: *\nRequest-rate: 5/1\nCrawl-delay: 0.1\n", {}, 0.2),
        ("User-agent: *\nCrawl-delay: 9\n\nUser-agent: MyBot\nCrawl-delay: 0.2\n", {}, 0.2),
        (PACED, {"obey_crawl_delay": False, "min_delay": 0.2}, 0.2),
    ],
)
def test_the_larger_delay_counts(
    site: Start, store: MemoryStore, robots: str, policy: dict[str, float], delay: float
) -> None:
    place = site(robots)
    with session(store, **policy) as client:
        for number in range(3):
            response = client.get(place.url(f"/{number}"))
    assert response.polite.delay == delay  # type: ignore[attr-defined]
    # Between robots.txt and the first page too.
    assert min(place.gaps()) >= delay


def test_no_burst_is_saved_up(site: Start, store: MemoryStore) -> None:
    place = site(PACED)
    with session(store) as client:
        client.get(place.url("/first"))
        time.sleep(4 * DELAY)
        for number in range(4):
            client.get(place.url(f"/{number}"))
    assert min(place.gaps()) >= DELAY


def test_other_hosts_do_not_wait(site: Start, store: MemoryStore) -> None:
    slow = site("User-agent: *\nCrawl-delay: 60\n")
    quick = site(OPEN, addresses=("127.0.0.2",))
    with session(store) as client:
        started = time.monotonic()
        waiting = threading.Thread(target=swallow, args=(client, slow.url("/1")))
        waiting.start()
        slow.wait_for(1)
        client.get(quick.url("/1"))
        assert time.monotonic() - started < 10
        waiting.join()


def swallow(client: PoliteSession, url: str) -> None:
    with pytest.raises(WaitTooLong):
        PoliteSession(ua=UA, store=client.visitor.store, policy=Policy(max_wait=1.0)).get(url)


@pytest.mark.parametrize("value", ["1", "date"])
@pytest.mark.parametrize("status", [429, 503, 302])
def test_retry_after_holds_the_whole_host_back(
    site: Start, store: MemoryStore, status: int, value: str
) -> None:
    place = site(OPEN)
    if value == "date":
        # Whole seconds: between one and two from now, by the site's own clock.
        value = format_datetime(datetime.now(UTC) + timedelta(seconds=2), usegmt=True)
    headers = {"Retry-After": value, "Location": "/landed"}
    place.serve("/busy", Answer(status=status, headers=headers))
    with session(store) as client:
        response = client.get(place.url("/busy"), allow_redirects=False)
        assert response.status_code == status
        client.get(place.url("/next"))
    assert place.gaps()[-1] >= (1.0 if value == "1" else 0.9)


@pytest.mark.parametrize("value", [None, "soon", "-1", "0", "Thu, 01 Jan 1970 00:00:00 GMT"])
def test_without_a_usable_time_we_back_off_by_ourselves(
    site: Start, store: MemoryStore, value: str | None
) -> None:
    place = site(OPEN)
    headers = {} if value is None else {"Retry-After": value}
    place.serve("/busy", Answer(status=503, headers=headers))
    with session(store) as client:
        client.get(place.url("/busy"))
        client.get(place.url("/busy"))
        client.get(place.url("/fine"))
        client.get(place.url("/fine"))
    gaps = place.gaps()[1:]
    assert gaps[0] >= 1.0
    assert gaps[1] >= 2.0
    assert gaps[2] < 3.0  # a third pause would be four seconds


@pytest.mark.parametrize("value", ["3600", "9999999999", "9" * 400])
def test_a_pause_beyond_the_policy_is_told_and_not_slept(
    site: Start, store: MemoryStore, value: str
) -> None:
    place = site(OPEN)
    place.serve("/busy", Answer(status=503, headers={"Retry-After": value}))
    with session(store) as client:
        client.get(place.url("/busy"))
        with pytest.raises(WaitTooLong) as refused:
            client.get(place.url("/next"))
    assert refused.value.wait > 3500
    assert place.targets() == ["/robots.txt", "/busy"]


def test_a_crawl_delay_beyond_the_policy_is_told(site: Start, store: MemoryStore) -> None:
    place = site("User-agent: *\nCrawl-delay: 1000000000\n")
    with session(store) as client, pytest.raises(WaitTooLong, match="max_delay=300"):
        client.get(place.url("/page"))
    assert place.targets() == ["/robots.txt"]


def test_a_turn_too_far_away_is_told_at_once(site: Start, store: MemoryStore) -> None:
    place = site("User-agent: *\nCrawl-delay: 5\n")
    with session(store, max_wait=1.0) as client:
        started = time.monotonic()
        with pytest.raises(WaitTooLong, match=r"max_wait=1"):
            client.get(place.url("/page"))
        assert time.monotonic() - started < 4.0  # its turn is five seconds away


def test_an_attempt_without_an_answer_is_followed_by_two_delays(
    site: Start, store: MemoryStore
) -> None:
    place = site(PACED)
    with session(store) as client:
        client.get(place.url("/warm"))
        with pytest.raises(requests.ConnectionError):
            client.get(place.url("/drop"))
        with pytest.raises(requests.ReadTimeout):
            client.get(place.url("/stall"), timeout=0.1)
        client.get(place.url("/next"))
    gaps = place.gaps()
    assert gaps[2] >= 2 * DELAY
    assert gaps[3] >= 0.1 + 2 * DELAY


def test_retries_and_redirects_each_take_a_turn(site: Start, store: MemoryStore) -> None:
    place = site(PACED)
    retry = Retry(total=3, status_forcelist=[500], allowed_methods=None, backoff_factor=0)
    with session(store) as client:
        client.mount("http://", HTTPAdapter(max_retries=retry))
        client.get(place.url("/flaky?key=a&fails=2&status=500"))
        client.post(place.url("/flaky?key=b&fails=1&status=500"), data=b"body")
        client.get(place.url("/redirect?to=/redirect%3Fto=/landed"))
    assert len(place.targets()) == 1 + 3 + 2 + 3
    assert min(place.gaps()) >= DELAY


def test_the_wait_counts_neither_as_timeout_nor_as_elapsed(site: Start, store: MemoryStore) -> None:
    place = site("User-agent: *\nCrawl-delay: 1.5\n")
    with session(store) as client:
        for _ in range(2):
            response = client.get(place.url("/page"), timeout=1.2)
        assert response.elapsed.total_seconds() < 1.2
        assert response.polite.waited > 1.2  # type: ignore[attr-defined]
    transport = PoliteTransport(ua=UA, store=store)
    with httpx.Client(transport=transport, timeout=1.2) as other:
        answer = other.get(place.url("/page"))
        assert answer.elapsed.total_seconds() < 1.2
        assert answer.extensions["polite"].waited > 1.2


def test_a_stalled_site_without_a_timeout_blocks_nobody_for_ever(
    site: Start, store: MemoryStore
) -> None:
    place = site(PACED)
    with session(store, turn_limit=0.5) as client:
        client.get(place.url("/warm"))
        stalled = threading.Thread(
            target=client.get, args=(place.url("/slow?headers=3"),), daemon=True
        )
        stalled.start()
        place.wait_for(3)
        client.get(place.url("/next"))
        stalled.join()
    gap = place.gaps()[-1]
    assert gap >= 0.5 + DELAY
    assert gap < 3.0


@pytest.mark.anyio
async def test_cancelled_waiters_give_their_places_away(site: Start, store: MemoryStore) -> None:
    place = site(PACED)
    transport = AsyncPoliteTransport(ua=UA, store=store)
    async with httpx.AsyncClient(transport=transport) as client:
        await client.get(place.url("/warm"))
        with anyio.move_on_after(DELAY / 2):
            async with anyio.create_task_group() as tasks:
                for number in range(5):
                    tasks.start_soon(client.get, place.url(f"/cancelled/{number}"))
        started = time.monotonic()
        await client.get(place.url("/next"))
    assert time.monotonic() - started < 10  # a place that is kept is kept for a minute
    assert place.targets() == ["/robots.txt", "/warm", "/next"]
    assert min(place.gaps()) >= DELAY


@pytest.mark.anyio
async def test_waiting_takes_no_connection_from_the_pool(site: Start, store: MemoryStore) -> None:
    place = site(PACED)
    limits = httpx.Limits(max_connections=1)
    transport = AsyncPoliteTransport(ua=UA, store=store, limits=limits)
    timeout = httpx.Timeout(5, pool=0.1)
    async with (
        httpx.AsyncClient(transport=transport, timeout=timeout) as client,
        anyio.create_task_group() as tasks,
    ):
        for number in range(5):
            tasks.start_soon(client.get, place.url(f"/{number}"))
    assert len(place.targets()) == 6
    assert min(place.gaps()) >= DELAY


def test_one_transport_in_two_event_loops_keeps_one_pace(site: Start, store: MemoryStore) -> None:
    place = site(PACED)
    transport = AsyncPoliteTransport(
        ua=UA, store=store, limits=httpx.Limits(max_keepalive_connections=0)
    )

    async def main() -> None:
        client = httpx.AsyncClient(transport=transport)
        await asyncio.gather(*[client.get(place.url(f"/{number}")) for number in range(2)])

    asyncio.run(main())
    asyncio.run(main())
    assert len(place.targets()) == 5
    assert min(place.gaps()) >= DELAY


def test_a_blocking_client_in_a_coroutine_that_holds_the_turn_says_so(
    site: Start, store: MemoryStore
) -> None:
    place = site(PACED)

    async def main() -> None:
        async with httpx.AsyncClient(transport=AsyncPoliteTransport(ua=UA, store=store)) as client:
            await client.get(place.url("/warm"))
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(client.get, place.url("/slow?headers=0.5"))
                await anyio.to_thread.run_sync(place.wait_for, 3)
                with session(store) as blocking, pytest.raises(RuntimeError, match="coroutine"):
                    blocking.get(place.url("/blocking"))

    anyio.run(main)
    assert "/blocking" not in place.targets()


@pytest.mark.parametrize("client", ["requests", "httpx"])
def test_pace_from_body_waits_for_the_whole_answer(
    site: Start, store: MemoryStore, client: str
) -> None:
    place = site(PACED)
    policy = Policy(pace_from="body")
    slow = place.url("/slow?body=0.4&size=1000")
    if client == "requests":
        with PoliteSession(ua=UA, store=store, policy=policy) as polite:
            polite.get(slow)
            polite.get(place.url("/next"))
    else:
        transport = PoliteTransport(ua=UA, store=store, policy=policy)
        with httpx.Client(transport=transport) as other:
            other.get(slow)
            other.get(place.url("/next"))
    assert place.gaps()[-1] >= 0.4 + DELAY


def test_an_unread_stream_blocks_nobody(site: Start, store: MemoryStore) -> None:
    place = site(PACED)
    with session(store) as client:
        unread = client.get(place.url("/large?size=5000000"), stream=True)
        client.get(place.url("/next"))
        unread.close()
    assert min(place.gaps()) >= DELAY


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
def test_a_forked_child_goes_on_with_turns_of_its_own_and_says_so(
    site: Start, store: MemoryStore
) -> None:
    place = site(PACED)
    with session(store) as client:
        client.get(place.url("/parent"))
        read_end, write_end = os.pipe()
        child = os.fork()
        if not child:
            import logging

            told: list[str] = []
            handler = logging.Handler()
            handler.emit = lambda record: told.append(record.getMessage())  # type: ignore[method-assign]
            logging.getLogger("polite_transport").addHandler(handler)
            try:
                for number in range(2):
                    client.get(place.url(f"/child/{number}"))
                os.write(write_end, str(sum("SQLiteStore" in each for each in told)).encode())
            finally:
                os._exit(0)
        os.waitpid(child, 0)
        os.close(write_end)
        assert os.read(read_end, 100) == b"1"
        os.close(read_end)
    assert place.targets()[-2:] == ["/child/0", "/child/1"]
    assert min(place.gaps()) >= DELAY
