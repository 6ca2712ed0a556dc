"""Copies of robots.txt in one process: one fetch for all who ask, bounded by bytes."""

import threading
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from polite_transport.robots.access import Access, Copy, Reply
from polite_transport.stores.base import Busy, Claimed, CopyKey, CopyWaiter
from polite_transport.stores.copies import CLAIM_LIFE, COPY_OVERHEAD, PARSED_FACTOR, Copies

WALL = 1_700_000_000.0
NOBODY = Reply(None, error=OSError("nobody listens"))


class Clock:
    passed = 0.0

    def monotonic(self) -> float:
        return self.passed

    def wall(self) -> float:
        return WALL + self.passed


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def copies(clock: Clock) -> Copies:
    return Copies(clock.monotonic, clock.wall, 10**6)


def key(name: str = "example.org") -> CopyKey:
    return CopyKey(f"http://{name}", "mybot", "follow", 512_000, 10.0, 86_400.0)


KEY = key()


def copy(life: float = 3_600.0, size: int = 100, *, since: float = 0.0) -> Copy:
    return Copy(
        robots_url="http://example.org/robots.txt",
        product_token="MyBot",
        status=200,
        access=Access.FILE,
        body=b"#" * size,
        max_bytes=512_000,
        fetched_at=WALL + since,
        expires_at=WALL + since + life,
    )


def waiter() -> CopyWaiter:
    return CopyWaiter()


def wait(copies: Copies, wake: Callable[[], object]) -> CopyWaiter:
    """Let one ask, and then wait as a driver does."""
    made = waiter()
    assert isinstance(copies.claim(KEY, made), Busy)
    made.wake = wake
    return made


def closed_loop() -> None:
    raise RuntimeError("Event loop is closed")


def test_one_fetches_for_all_who_ask_meanwhile(copies: Copies) -> None:
    woken: list[int] = []
    first = waiter()
    assert copies.claim(KEY, first) == Claimed(None)
    assert copies.claim(KEY, first) == Claimed(None), "asked again, it is still its own"
    others = [wait(copies, partial(woken.append, number)) for number in range(3)]
    for each in others:
        assert copies.claim(KEY, each) == Busy(CLAIM_LIFE)
    fetched = copy()
    copies.publish(KEY, first, fetched)
    assert woken == [0, 1, 2]
    assert all(each.ready for each in others)
    assert all(copies.claim(KEY, each) is fetched for each in (*others, waiter()))


def test_a_copy_counts_to_its_end_and_is_then_the_next_fetchers(
    copies: Copies, clock: Clock
) -> None:
    copies.claim(KEY, first := waiter())
    copies.publish(KEY, first, old := copy(life=10.0))
    clock.passed = 9.9
    assert copies.claim(KEY, waiter()) is old
    clock.passed = 10.0
    second = waiter()
    assert copies.claim(KEY, second) == Claimed(old)
    copies.publish(KEY, second, new := copy(since=10.0))
    assert copies.claim(KEY, waiter()) is new


def test_a_copy_that_lives_for_no_time_counts_for_those_who_waited(copies: Copies) -> None:
    first, second = waiter(), waiter()
    copies.claim(KEY, first)
    copies.claim(KEY, second)
    copies.publish(KEY, first, short := copy(life=0.0))
    assert copies.claim(KEY, second) is short
    assert copies.claim(KEY, waiter()) == Claimed(short)


def test_no_answer_is_told_to_those_who_waited_and_to_nobody_else(copies: Copies) -> None:
    first, second = waiter(), waiter()
    copies.claim(KEY, first)
    copies.claim(KEY, second)
    copies.publish(KEY, first, NOBODY)
    assert copies.claim(KEY, second) is NOBODY
    assert copies.claim(KEY, waiter()) == Claimed(None)


def test_no_answer_leaves_the_copy_held_before(copies: Copies, clock: Clock) -> None:
    copies.claim(KEY, first := waiter())
    copies.publish(KEY, first, old := copy(life=10.0))
    clock.passed = 10.0
    copies.claim(KEY, second := waiter())
    copies.publish(KEY, second, NOBODY)
    assert copies.claim(KEY, waiter()) == Claimed(old)


def test_a_claim_given_up_is_the_next_ones_in_order(copies: Copies) -> None:
    woken: list[int] = []
    first = waiter()
    copies.claim(KEY, first)
    second, third = (wait(copies, partial(woken.append, number)) for number in (2, 3))
    copies.publish(KEY, first, None)
    assert woken == [2]
    assert copies.claim(KEY, third) == Busy(CLAIM_LIFE)
    assert copies.claim(KEY, second) == Claimed(None)
    copies.publish(KEY, first, copy())  # too late: it is not its own any more
    assert copies.claim(KEY, second) == Claimed(None)
    copies.publish(KEY, second, fetched := copy())
    assert copies.claim(KEY, third) is fetched


def test_one_who_gives_up_waiting_is_not_given_the_claim(copies: Copies) -> None:
    first, second, third = waiter(), waiter(), waiter()
    for each in (first, second, third):
        copies.claim(KEY, each)
    copies.publish(KEY, second, None)
    copies.publish(KEY, first, None)
    assert copies.claim(KEY, third) == Claimed(None)


def test_nothing_is_left_behind(copies: Copies) -> None:
    for outcome in (None, NOBODY, copy()):
        copies.claim(KEY, first := waiter())
        copies.publish(KEY, first, outcome)
        assert not copies._claims


def test_a_fetch_that_never_ends_is_taken_over(copies: Copies, clock: Clock) -> None:
    stuck, second = waiter(), waiter()
    copies.claim(KEY, stuck)
    clock.passed = CLAIM_LIFE - 1
    assert copies.claim(KEY, second) == Busy(1.0)
    clock.passed = CLAIM_LIFE
    assert copies.claim(KEY, second) == Claimed(None)
    copies.publish(KEY, stuck, copy())
    assert copies.claim(KEY, waiter()) == Busy(CLAIM_LIFE), "the one who was too late says nothing"
    copies.publish(KEY, second, fetched := copy())
    assert copies.claim(KEY, waiter()) is fetched


def test_a_claim_whose_event_loop_is_closed_is_taken_over_at_once(copies: Copies) -> None:
    gone = waiter()
    copies.claim(KEY, gone)
    gone.ended = lambda: True
    assert copies.claim(KEY, waiter()) == Claimed(None)


def test_waiters_whose_event_loops_are_closed_are_passed_over(copies: Copies) -> None:
    first, last = waiter(), waiter()
    copies.claim(KEY, first)
    for _ in range(2_000):
        wait(copies, closed_loop)
    copies.claim(KEY, last)
    copies.publish(KEY, first, None)
    assert last.ready
    assert copies.claim(KEY, last) == Claimed(None)


def test_a_closed_loop_keeps_nobody_from_the_copy(copies: Copies) -> None:
    first, last = waiter(), waiter()
    copies.claim(KEY, first)
    wait(copies, closed_loop)
    copies.claim(KEY, last)
    copies.publish(KEY, first, copy())
    assert last.ready


def test_a_wake_that_an_earlier_wait_has_left_is_not_called_again(copies: Copies) -> None:
    first, second, third = waiter(), waiter(), waiter()
    copies.claim(KEY, first)
    second.wake = closed_loop  # a lock that is open already
    copies.claim(KEY, second)
    copies.claim(KEY, third)
    copies.publish(KEY, first, None)
    assert copies.claim(KEY, second) == Claimed(None), "it was taken for one that is gone"


@pytest.mark.parametrize(
    "other",
    [
        KEY._replace(origin="https://example.org"),
        KEY._replace(product_token="other"),
        KEY._replace(redirects="same-host"),
        KEY._replace(via="proxy"),
    ],
)
def test_what_one_may_rely_on_another_may_not(copies: Copies, other: CopyKey) -> None:
    copies.claim(KEY, first := waiter())
    assert copies.claim(other, waiter()) == Claimed(None)
    copies.publish(KEY, first, copy())
    assert isinstance(copies.claim(other, waiter()), Busy)


def keep(copies: Copies, name: str, size: int) -> None:
    copies.claim(key(name), one := waiter())
    copies.publish(key(name), one, copy(size=size))


def is_kept(copies: Copies, name: str) -> bool:
    return isinstance(copies.claim(key(name), waiter()), Copy)


def test_the_least_recently_used_is_dropped_first(clock: Clock) -> None:
    each = COPY_OVERHEAD + 100 * PARSED_FACTOR
    copies = Copies(clock.monotonic, clock.wall, 3 * each)
    for name in "abc":
        keep(copies, name, 100)
    assert is_kept(copies, "a")
    keep(copies, "d", 100)
    assert {name: is_kept(copies, name) for name in "acd"} == {"a": True, "c": True, "d": True}
    assert not is_kept(copies, "b")


def test_they_are_bounded_by_bytes_and_not_by_number(clock: Clock) -> None:
    copies = Copies(clock.monotonic, clock.wall, 10**6)
    for number in range(2_000):
        keep(copies, f"host{number}", number % 500 * 10)
    taken = sum(COPY_OVERHEAD + PARSED_FACTOR * len(each.body) for each in copies._copies.values())
    assert 0 < taken == copies._bytes <= 10**6


def test_a_refreshed_copy_is_counted_once(clock: Clock) -> None:
    copies = Copies(clock.monotonic, clock.wall, 10**6)
    for number in range(1_000):
        copies.claim(KEY, one := waiter())
        copies.publish(KEY, one, copy(life=1.0, size=10_000, since=clock.passed))
        clock.passed += 1
        assert copies._bytes == COPY_OVERHEAD + PARSED_FACTOR * 10_000, number


def test_one_copy_beyond_the_bound_is_still_kept(clock: Clock) -> None:
    copies = Copies(clock.monotonic, clock.wall, 1_000)
    keep(copies, "small", 10)
    keep(copies, "huge", 500_000)
    assert is_kept(copies, "huge")
    assert not is_kept(copies, "small")


def test_who_waits_for_its_own_thread_is_told(copies: Copies) -> None:
    owners: list[Any] = []
    thread = threading.Thread(target=lambda: owners.append(waiter()))
    thread.start()
    thread.join()
    here = threading.get_ident()
    copies.claim(KEY, owners[0])
    copies.claim(KEY, second := waiter())
    assert copies.is_blocked_by(owners[0].thread, second, KEY)
    assert not copies.is_blocked_by(here, second, KEY)
    assert not copies.is_blocked_by(owners[0].thread, owners[0], KEY)
    assert not copies.is_blocked_by(here, second, key("other.example"))


def test_a_forked_child_keeps_copies_and_drops_claims(copies: Copies) -> None:
    keep(copies, "kept", 10)
    copies.claim(KEY, waiter())
    with copies._guard.lock:  # as another thread of the parent may have it
        copies.forget_claims()
        assert is_kept(copies, "kept")
        assert copies.claim(KEY, waiter()) == Claimed(None)


def test_threads_make_one_fetch_between_them(clock: Clock) -> None:
    copies = Copies(clock.monotonic, clock.wall, 10**6)
    claims: list[object] = []
    begin = threading.Barrier(16)

    def ask() -> None:
        begin.wait()
        one = waiter()
        answer = copies.claim(KEY, one)
        claims.append(answer)
        if isinstance(answer, Claimed):
            copies.publish(KEY, one, copy())

    threads = [threading.Thread(target=ask) for _ in range(16)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert sum(isinstance(each, Claimed) for each in claims) == 1
