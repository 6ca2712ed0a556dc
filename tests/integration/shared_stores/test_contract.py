"""What every store promises, whichever it is: the verbs themselves, without a client.

Two handles stand for two processes: of MemoryStore twice the same, of the others one store each,
with queues and copies of its own.
"""

import sqlite3
import threading
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from polite_transport import MemoryStore, RedisStore, SQLiteStore
from polite_transport.robots.access import Access, Copy, Reply
from polite_transport.stores.base import (
    AskShared,
    Busy,
    Claimed,
    CopyKey,
    CopyWaiter,
    Seat,
    Store,
    Turn,
    Waiter,
)

from .servers import RedisServer

HOST = "example.org"
KEY = CopyKey("http://example.org", "mybot", "follow", 512_000, 10.0, 86_400.0)
Handles = tuple[Store, Store]


@pytest.fixture(params=["memory", "sqlite", "redis"])
def kind(request: pytest.FixtureRequest) -> str:
    chosen: str = request.param
    return chosen


@pytest.fixture
def handles(request: pytest.FixtureRequest, kind: str, tmp_path: Path) -> Iterator[Handles]:
    if kind == "memory":
        store = MemoryStore()
        yield store, store
        return
    # As if they had been there for long: one that is new makes each host wait a delay.
    if kind == "sqlite":
        SQLiteStore(tmp_path / "store.sqlite").acquire(Seat("other.org", 1.0, 60.0))
        with closing(sqlite3.connect(tmp_path / "store.sqlite")) as connection, connection:
            connection.execute("UPDATE clock SET epoch=0")
        both: Any = [SQLiteStore(tmp_path / "store.sqlite", lease=1.0) for _ in range(2)]
    else:
        server: RedisServer = request.getfixturevalue("shared_redis")
        with server.client as client:
            run_id = client.info("server")["run_id"]
            client.set(f"polite:{{{tmp_path.name}}}:epoch", f"{run_id} 0")
        both = [RedisStore(server.url, namespace=tmp_path.name, lease=1.0) for _ in range(2)]
    yield tuple(both)
    for each in both:
        each.close()


def seat(delay: float = 0.0, *, limit: float = 60.0, alone: bool = False) -> Seat:
    return Seat(HOST, delay, limit, alone=alone)


def copy(body: bytes = b"User-agent: *\nDisallow: /x\n", life: float = 3600.0) -> Copy:
    return Copy(
        robots_url=f"{KEY.origin}/robots.txt",
        product_token="MyBot",
        status=200,
        access=Access.FILE,
        body=body,
        max_bytes=512_000,
        fetched_at=time.time(),
        expires_at=time.time() + life,
        etag='"one"',
    )


class Outcome(NamedTuple):
    asks: int
    waited: float


def wait(waiter: Waiter, seconds: float) -> bool:
    """Wait as a driver does; return whether it was woken."""
    gate = threading.Lock()
    gate.acquire()
    waiter.wake = gate.release
    return waiter.ready or gate.acquire(timeout=seconds)


def take(store: Store, wanted: Seat) -> Outcome:
    """Acquire as the politeness logic does."""
    started = time.monotonic()
    for asks in range(1, 100):
        turn = store.acquire(wanted)
        if turn.granted and not turn.wait:
            return Outcome(asks, time.monotonic() - started)
        if turn.granted:
            time.sleep(turn.wait)
        else:
            wait(wanted, turn.ask_again + 0.01)
    raise AssertionError("asked a hundred times")


def test_a_free_host_is_ours_at_once_and_asking_twice_changes_nothing(handles: Handles) -> None:
    here, _ = handles
    first = seat(1.0)
    assert here.acquire(first) == here.acquire(first) == Turn(granted=True, wait=0.0)


def test_the_second_one_queues_and_is_woken_when_the_first_is_done(handles: Handles) -> None:
    here, there = handles
    first, second = seat(0.8), seat(0.8)
    assert here.acquire(first).granted
    turn = there.acquire(second)
    assert not turn.granted
    assert turn.ask_again > 0
    assert turn.wait >= 0.8
    assert not second.ready
    here.release(first, sent=True)
    assert wait(second, 5.0)
    turn = there.acquire(second)
    assert turn.granted
    assert 0.0 < turn.wait <= 0.8
    time.sleep(turn.wait)
    assert there.acquire(second) == Turn(granted=True, wait=0.0)


@pytest.mark.parametrize(("later", "rest"), [(0.0, 0.2), (0.1, 0.2), (0.5, 0.5)])
def test_without_an_answer_it_may_arrive_for_one_of_its_delays(
    handles: Handles, later: float, rest: float
) -> None:
    here, there = handles
    first = seat(0.2)
    assert here.acquire(first).granted
    here.release(first, sent=True, arrived=False)
    released = time.monotonic()
    turn = there.acquire(second := seat(later))
    since = time.monotonic() - released
    assert turn.granted
    assert turn.pushed == 0.0, "the site asked for nothing"
    assert turn.wait >= 0.2 + rest - since - 0.001  # some clocks count in microseconds
    assert turn.wait <= 0.2 + rest
    there.release(second, sent=False)


@pytest.mark.parametrize(("earlier", "later"), [(0.4, 0.1), (0.1, 0.4)])
def test_the_larger_of_both_delays_counts(handles: Handles, earlier: float, later: float) -> None:
    here, there = handles
    first = seat(earlier)
    assert here.acquire(first).granted
    released = time.monotonic()
    here.release(first, sent=True)
    take(there, seat(later))
    assert 0.4 <= time.monotonic() - released < 1.4


def test_the_delay_that_a_fetch_of_robots_txt_brings_counts_in_full(handles: Handles) -> None:
    here, there = handles
    fetch = seat(alone=True)
    assert here.acquire(fetch).granted
    fetch.delay = 5.0
    here.release(fetch, sent=True)
    turn = there.acquire(seat(0.1))
    assert turn.granted
    assert 4.0 < turn.wait <= 5.0


def test_first_come_first_served(handles: Handles) -> None:
    here, _ = handles
    holder = seat(0.01)
    assert here.acquire(holder).granted
    order: list[str] = []
    entered = threading.Semaphore(0)

    def queue_up(name: str) -> None:
        mine = seat(0.01)
        if not here.acquire(mine).granted:
            entered.release()
        take(here, mine)
        order.append(name)
        here.release(mine, sent=True)

    threads = [threading.Thread(target=queue_up, args=(name,)) for name in "abc"]
    for thread in threads:
        thread.start()
        assert entered.acquire(timeout=5.0)
    here.release(holder, sent=True)
    for thread in threads:
        thread.join()
    assert order == ["a", "b", "c"]


def test_giving_a_place_back_holds_nobody_up(handles: Handles) -> None:
    here, there = handles
    first, second, third = seat(0.05), seat(0.05), seat(0.05)
    assert here.acquire(first).granted
    assert not there.acquire(second).granted
    assert not here.acquire(third).granted
    there.release(second, sent=False)
    here.release(first, sent=True)
    assert take(here, third).waited < 0.9  # no claim of the second had to end first


def test_a_turn_that_was_not_used_costs_the_next_one_nothing(handles: Handles) -> None:
    here, there = handles
    first = seat(5.0)
    assert here.acquire(first).granted
    here.release(first, sent=False)
    assert there.acquire(seat(5.0)) == Turn(granted=True, wait=0.0)


def test_giving_back_twice_gives_back_once(handles: Handles) -> None:
    here, there = handles
    first, second = seat(0.1), seat(0.1)
    assert here.acquire(first).granted
    here.release(first, sent=True)
    take(there, second)
    here.release(first, sent=False)
    assert not here.acquire(seat(0.1)).granted


def test_a_push_counts_for_whoever_waits_already(handles: Handles) -> None:
    here, there = handles
    first, second = seat(0.1), seat(0.1)
    assert here.acquire(first).granted
    here.release(first, sent=True)
    turn = there.acquire(second)
    assert turn.granted
    here.release(seat(0.1), sent=True, push=5.0)
    time.sleep(turn.wait)
    turn = there.acquire(second)
    assert turn.granted
    assert 4.0 < turn.wait <= 5.0
    assert 4.0 < turn.pushed <= 5.0


@pytest.mark.parametrize("late", [False, True])
def test_back_off_grows_with_each_overload_and_ends_with_a_good_answer(
    handles: Handles, late: bool
) -> None:
    """late: as from a client that tells the status when the turn has been given back already."""
    here, there = handles

    def answer(store: Store, *, overloaded: bool) -> Turn:
        """Send one request; return where the next one of the other handle stands then."""
        mine, other = seat(alone=True), seat()
        take(store, mine)
        if late:
            store.release(mine, sent=True)
        try:
            store.front.release(mine, sent=not late, overloaded=overloaded)
        except AskShared:
            store.release(mine, sent=not late, overloaded=overloaded)
        turn = there.acquire(other)
        there.release(other, sent=False)
        return turn

    assert 0.0 < answer(here, overloaded=True).wait <= 1.25
    assert answer(there, overloaded=False).wait == 0.0
    assert 0.0 < answer(here, overloaded=True).wait <= 1.25
    assert 1.25 < answer(there, overloaded=True).wait <= 2.5


def test_requests_bound_to_nothing_pass_side_by_side(handles: Handles) -> None:
    here, there = handles
    seats = [(store, seat()) for store in (here, there, here)]
    assert [store.acquire(each) for store, each in seats] == [Turn(granted=True, wait=0.0)] * 3
    for store, each in seats:
        store.release(each, sent=True, overloaded=False)


def test_a_bound_request_keeps_its_delay_from_those_bound_to_nothing(handles: Handles) -> None:
    here, there = handles
    free = seat()
    assert here.acquire(free) == Turn(granted=True, wait=0.0)
    sent = time.monotonic()
    here.release(free, sent=True)
    take(there, seat(0.3))
    assert 0.3 <= time.monotonic() - sent < 1.3


def test_a_request_bound_to_nothing_keeps_the_delay_of_one_before_it(handles: Handles) -> None:
    here, there = handles
    bound = seat(0.3)
    take(here, bound)
    free = seat()
    assert not there.acquire(free).granted
    ended = time.monotonic()
    here.release(bound, sent=True)
    take(there, free)
    assert 0.3 <= time.monotonic() - ended < 1.3


def test_a_turn_that_is_kept_too_long_ends_and_counts_as_unanswered(handles: Handles) -> None:
    here, there = handles
    stuck, second = seat(0.1, limit=0.2), seat(0.5)
    take(here, stuck)
    taken = time.monotonic()
    take(there, second)
    # Its limit, or its lease where another process waits; then one delay for its way.
    assert 0.2 + 0.1 + 0.5 <= time.monotonic() - taken < 4.0


def test_one_fetches_and_all_who_wait_get_its_copy(handles: Handles) -> None:
    here, there = handles
    owner, other = CopyWaiter(), CopyWaiter()
    assert here.claim(KEY, owner) == here.claim(KEY, owner) == Claimed(None)
    found = there.claim(KEY, other)
    assert isinstance(found, Busy)
    assert found.ask_again > 0
    fetched = copy()
    here.publish(KEY, owner, fetched)
    assert wait(other, 5.0)
    assert there.claim(KEY, other) == fetched
    assert here.claim(KEY, CopyWaiter()) == there.claim(KEY, CopyWaiter()) == fetched


def test_a_claim_that_is_given_up_is_the_next_ones(handles: Handles) -> None:
    here, there = handles
    owner, other = CopyWaiter(), CopyWaiter()
    here.claim(KEY, owner)
    there.claim(KEY, other)
    here.publish(KEY, owner, None)
    assert wait(other, 5.0)
    assert there.claim(KEY, other) == Claimed(None)


def test_no_answer_is_told_to_those_who_wait_and_to_nobody_else(handles: Handles) -> None:
    here, there = handles
    owner, other = CopyWaiter(), CopyWaiter()
    here.claim(KEY, owner)
    there.claim(KEY, other)
    here.publish(KEY, owner, Reply(None, error=OSError("no route")))
    assert wait(other, 5.0)
    found = there.claim(KEY, other)
    assert isinstance(found, Reply)
    assert found.status is None
    assert "no route" in str(found.error)
    there.publish(KEY, other, None)
    assert here.claim(KEY, CopyWaiter()) == Claimed(None)


def test_a_copy_that_is_over_is_given_to_its_next_fetcher(handles: Handles) -> None:
    here, there = handles
    owner = CopyWaiter()
    here.claim(KEY, owner)
    old = copy(life=-1.0)
    here.publish(KEY, owner, old)
    assert there.claim(KEY, CopyWaiter()) == Claimed(old)


def test_a_copy_with_a_short_life_still_counts_for_those_who_waited(handles: Handles) -> None:
    here, there = handles
    owner, other = CopyWaiter(), CopyWaiter()
    here.claim(KEY, owner)
    there.claim(KEY, other)
    old = copy(life=-1.0)
    here.publish(KEY, owner, old)
    assert wait(other, 5.0)
    assert there.claim(KEY, other) == old


@pytest.mark.parametrize(
    "change",
    [
        {"origin": "https://example.org"},
        {"product_token": "otherbot"},
        {"redirects": "same-host"},
        {"via": "unverified"},
    ],
)
def test_copies_are_kept_apart_by_all_of_their_key(handles: Handles, change: Any) -> None:
    here, there = handles
    owner = CopyWaiter()
    here.claim(KEY, owner)
    here.publish(KEY, owner, copy())
    assert there.claim(KEY._replace(**change), CopyWaiter()) == Claimed(None)


def test_bytes_of_any_kind_come_back_as_they_were(handles: Handles) -> None:
    here, there = handles
    owner = CopyWaiter()
    here.claim(KEY, owner)
    whole = copy(bytes(range(256)) * 2_000)
    here.publish(KEY, owner, whole)
    found = there.claim(KEY, CopyWaiter())
    assert isinstance(found, Copy)
    assert found == whole
    assert found.digest == whole.digest


def test_waiting_for_ones_own_thread_is_noticed(handles: Handles) -> None:
    here, _ = handles
    first, second = seat(1.0), seat(1.0)
    here.acquire(first)
    here.acquire(second)
    assert here.is_blocked_by(threading.get_ident(), second, None)
    assert not here.is_blocked_by(threading.get_ident(), first, None)
    owner, other = CopyWaiter(), CopyWaiter()
    here.claim(KEY, owner)
    here.claim(KEY, other)
    assert here.is_blocked_by(threading.get_ident(), other, KEY)
    assert not here.is_blocked_by(threading.get_ident(), owner, KEY)


def test_threads_of_two_handles_never_overlap(handles: Handles) -> None:
    inside: list[int] = []
    worst: list[int] = []

    def run(store: Store) -> None:
        for _ in range(25):
            mine = seat(alone=True)
            take(store, mine)
            inside.append(1)
            worst.append(len(inside))
            inside.pop()
            store.release(mine, sent=True)

    threads = [threading.Thread(target=run, args=(store,)) for store in handles * 3]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(worst) == 150
    assert max(worst) == 1
