"""The turns of one process: handed on directly, first come first served, nobody stranded."""

import os
import threading
from collections.abc import Callable
from typing import Any, NoReturn

import pytest

from polite_transport import MemoryStore
from polite_transport.stores.base import NOW, Seat, Turn
from polite_transport.stores.turns import Host, Turns

HOST = "example.org"


class Clock:
    now = 1_000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def turns(clock: Clock) -> Turns:
    return Turns(clock)


def seat(delay: float = 1.0, limit: float = 60.0, host: str = HOST, *, alone: bool = False) -> Seat:
    made = Seat(host, delay, limit, alone=alone)
    made.wake = lambda: None
    return made


def queue(turns: Turns, *seats: Seat) -> list[Seat]:
    """Let all of them ask; return the list to which each adds itself when it is woken."""
    woken: list[Seat] = []
    for each in seats:
        turns.acquire(each)
        each.wake = lambda each=each: woken.append(each)
    return woken


def closed_loop() -> NoReturn:
    raise RuntimeError("Event loop is closed")


# --- handing on -----------------------------------------------------------------------------


def test_a_turn_is_handed_on_before_anyone_asks_again(turns: Turns, clock: Clock) -> None:
    first, second, third, late = seat(), seat(), seat(), seat()
    assert turns.acquire(first) == NOW
    woken = queue(turns, second, third)
    turns.release(first, sent=True)
    assert woken == [second], "one is woken, and no other"
    # Whoever asks first now, the turn is the second one's.
    assert not turns.acquire(late).granted
    assert not turns.acquire(third).granted
    assert turns.acquire(second) == Turn(granted=True, wait=1.0)
    clock.now += 1
    assert turns.acquire(second) == NOW
    turns.release(second, sent=True)
    turns.release(third, sent=False)
    assert woken == [second, third]
    assert turns.acquire(late) == Turn(granted=True, wait=1.0)


def test_where_it_stands_is_told_at_the_least(turns: Turns, clock: Clock) -> None:
    first, second, third = seat(2.0), seat(3.0), seat(5.0)
    turns.acquire(first)
    assert turns.acquire(second) == Turn(granted=False, wait=2.0, ask_again=60.0)
    assert turns.acquire(third).wait == 5.0
    turns.release(first, sent=True, push=10.0)
    assert turns.acquire(third) == Turn(granted=False, wait=13.0, pushed=10.0, ask_again=70.0)
    clock.now += 4
    assert turns.acquire(second) == Turn(granted=True, wait=6.0, pushed=6.0)


def test_a_place_given_back_shortens_the_wait_of_those_behind(turns: Turns) -> None:
    first, second = seat(2.0), seat(300.0)
    queue(turns, first, second)
    turns.release(second, sent=False)
    assert turns.acquire(seat(0.5)).wait == 2.0


@pytest.mark.parametrize("which", [0, 1, 2, 3])
def test_whoever_gives_up_the_others_go_on_in_order(turns: Turns, clock: Clock, which: int) -> None:
    seats = [seat() for _ in range(4)]
    woken = queue(turns, *seats)
    turns.release(seats[which], sent=False)
    left = [each for each in seats if each is not seats[which]]
    for each in left:
        clock.now += 1
        assert turns.acquire(each) == NOW
        turns.release(each, sent=True)
    assert woken == [each for each in seats[1:] if each is not seats[which] or which == 0]


def test_given_back_twice_it_is_given_back_once(turns: Turns) -> None:
    first, second, third = seat(), seat(), seat()
    woken = queue(turns, first, second, third)
    turns.release(first, sent=False)
    turns.release(first, sent=False)
    assert woken == [second]


def test_hosts_do_not_know_each_other(turns: Turns) -> None:
    for name in ("a.example", "b.example", "a.example."):
        assert turns.acquire(seat(9.0, host=name)) == NOW


# --- gaps -----------------------------------------------------------------------------------


@pytest.mark.parametrize(("earlier", "later"), [(1.0, 4.0), (4.0, 1.0), (4.0, 0.0)])
def test_the_clock_starts_when_the_headers_are_in(
    turns: Turns, clock: Clock, earlier: float, later: float
) -> None:
    first = seat(earlier)
    turns.acquire(first)
    clock.now += 30
    turns.release(first, sent=True)
    assert turns.acquire(seat(later)) == Turn(granted=True, wait=4.0)


@pytest.mark.parametrize(
    ("its_own", "next_one", "wait"), [(3.0, 3.0, 6.0), (3.0, 8.0, 11.0), (3.0, 0.0, 6.0)]
)
def test_without_an_answer_it_may_arrive_for_one_of_its_delays(
    turns: Turns, clock: Clock, its_own: float, next_one: float, wait: float
) -> None:
    first = seat(its_own)
    turns.acquire(first)
    clock.now += 30
    turns.release(first, sent=True, arrived=False)
    assert turns.acquire(second := seat(next_one)) == Turn(granted=True, wait=wait)
    clock.now += wait
    assert turns.acquire(second) == NOW


def test_a_pause_beside_an_end_without_an_answer_holds_for_all(turns: Turns) -> None:
    turns.acquire(first := seat(3.0))
    turns.release(seat(0.0), sent=False, push=10.0)
    turns.release(first, sent=True, arrived=False)
    assert turns.acquire(seat(0.0)) == Turn(granted=True, wait=10.0, pushed=10.0)
    turns_without_holder(turns)
    assert turns.acquire(seat(8.0)) == Turn(granted=True, wait=11.0, pushed=10.0)


def test_robots_txt_without_an_answer_is_bound_to_what_is_known(turns: Turns) -> None:
    turns.acquire(robots_txt := seat(0.0, alone=True))
    turns.release(robots_txt, sent=True, arrived=False)
    assert turns.acquire(seat(0.0)) == NOW
    assert turns.acquire(seat(5.0)).wait == 5.0


def test_the_end_of_one_bound_to_nothing_hides_no_late_arrival(turns: Turns, clock: Clock) -> None:
    turns.acquire(free := seat(0.0))
    turns.acquire(bound := seat(4.0))
    clock.now += 4
    assert turns.acquire(bound) == NOW
    turns.release(bound, sent=True, arrived=False)
    clock.now += 1
    turns.release(free, sent=True, overloaded=False)
    assert turns.acquire(seat(9.0)).wait == 3.0 + 9.0


def test_what_was_not_sent_costs_nothing(turns: Turns) -> None:
    first = seat(4.0)
    turns.acquire(first)
    turns.release(first, sent=False)
    assert turns.acquire(seat()) == NOW


def test_a_delay_learnt_while_sending_counts(turns: Turns) -> None:
    robots_txt = seat(0.0, alone=True)
    assert turns.acquire(robots_txt) == NOW
    robots_txt.delay = 7.0
    turns.release(robots_txt, sent=True)
    assert turns.acquire(seat(0.0)).wait == 7.0


def test_a_push_is_seen_by_one_who_has_waited_already(turns: Turns, clock: Clock) -> None:
    first, second = seat(), seat()
    turns.acquire(first)
    turns.release(first, sent=True)
    assert turns.acquire(second) == Turn(granted=True, wait=1.0)
    turns.release(seat(0.0), sent=False, push=5.0)  # news from one that took no turn
    clock.now += 1
    assert turns.acquire(second) == Turn(granted=True, wait=4.0, pushed=4.0)
    clock.now += 4
    assert turns.acquire(second) == NOW


def test_a_later_shorter_push_takes_nothing_away(turns: Turns) -> None:
    turns.acquire(seat(0.0))
    turns.release(seat(0.0), sent=False, push=50.0)
    turns.release(seat(0.0), sent=False, push=5.0)
    assert turns.acquire(seat(0.0)).wait == 50.0


# --- back-off -------------------------------------------------------------------------------


@pytest.fixture
def no_jitter(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("random.uniform", lambda least, _most: least)


@pytest.mark.usefixtures("no_jitter")
def test_back_off_doubles_to_a_minute_and_ends_with_a_good_answer(
    turns: Turns, clock: Clock
) -> None:
    pauses = []
    for _ in range(8):
        each = seat(0.0)
        turns.acquire(each)
        turns.release(each, sent=True, overloaded=True)
        pauses.append(turns.acquire(seat(0.0)).wait)
        turns = turns_without_holder(turns)
        clock.now += pauses[-1]
    assert pauses == [1, 2, 4, 8, 16, 32, 60, 60]
    fine = seat(0.0)
    turns.acquire(fine)
    turns.release(fine, sent=True, overloaded=False)
    assert turns.acquire(seat(0.0)) == NOW
    turns.release(seat(0.0), sent=True, overloaded=True)
    assert turns.acquire(seat(0.0)).wait == 1


def turns_without_holder(turns: Turns) -> Turns:
    holder = turns._hosts[HOST].holder
    if holder is not None:
        turns.release(holder, sent=False)
    return turns


@pytest.mark.usefixtures("no_jitter")
def test_requests_that_met_one_overload_are_one_strike(turns: Turns, clock: Clock) -> None:
    side_by_side = [seat(0.0) for _ in range(10)]
    for each in side_by_side:
        assert turns.acquire(each) == NOW
    for each in side_by_side:
        turns.release(each, sent=True, overloaded=True)
    assert turns.acquire(seat(0.0)).wait == 1
    turns_without_holder(turns)
    clock.now += 1
    turns.acquire(one := seat(0.0))
    turns.release(one, sent=True, overloaded=True)
    assert turns.acquire(seat(0.0)).wait == 2


@pytest.mark.usefixtures("no_jitter")
def test_back_off_begins_with_the_sites_own_delay_and_is_never_below_it(
    turns: Turns, clock: Clock
) -> None:
    for delay, pauses in ((10.0, (10, 20, 40, 60, 60)), (90.0, (90, 90))):
        for pause in pauses:
            clock.now += 100
            each = seat(delay, host=f"{delay}")
            assert turns.acquire(each) == NOW
            turns.release(each, sent=True, overloaded=True)
            turns.acquire(after := seat(0.0, host=f"{delay}"))
            assert turns.acquire(after).wait == pause
            turns.release(after, sent=False)


def test_a_response_that_never_came_is_no_news_of_the_row(turns: Turns, clock: Clock) -> None:
    turns.acquire(seat(0.0))
    turns.release(seat(0.0), sent=True, overloaded=True)
    clock.now += 2
    turns.release(seat(0.0), sent=True, overloaded=None)
    turns.release(seat(0.0), sent=True, overloaded=True)
    assert 2 <= turns.acquire(seat(0.0)).wait <= 2.5


# --- limits ---------------------------------------------------------------------------------


def test_a_turn_ends_by_its_limit_and_counts_as_unanswered(turns: Turns, clock: Clock) -> None:
    stalled, second = seat(3.0, limit=20.0), seat(1.0)
    turns.acquire(stalled)
    clock.now += 5
    assert turns.acquire(second).ask_again == 15.0
    clock.now += 14.9
    assert not turns.acquire(second).granted
    clock.now += 0.1
    assert turns.acquire(second) == Turn(granted=True, wait=6.0)


def test_after_a_limit_too_a_longer_delay_counts_from_the_latest_arrival(
    turns: Turns, clock: Clock
) -> None:
    stalled, second = seat(3.0, limit=20.0), seat(10.0)
    queue(turns, stalled, second)
    clock.now += 20
    assert turns.acquire(second) == Turn(granted=True, wait=13.0)
    clock.now += 1
    turns.release(stalled, sent=True, arrived=False)  # its client gives up as well
    assert turns.acquire(second) == Turn(granted=True, wait=13.0)


def test_its_limit_runs_from_its_confirmation(turns: Turns, clock: Clock) -> None:
    first, second, third = seat(50.0, limit=20.0), seat(50.0, limit=20.0), seat()
    turns.acquire(first)
    turns.release(first, sent=True)
    assert turns.acquire(second).wait == 50
    turns.acquire(third)
    clock.now += 60  # it was late to confirm
    assert turns.acquire(second) == NOW
    clock.now += 19.9
    assert not turns.acquire(third).granted
    clock.now += 0.1
    assert turns.acquire(third).granted


def test_it_is_renewed_while_something_comes_in(turns: Turns, clock: Clock) -> None:
    slow, second = seat(1.0, limit=20.0), seat(1.0)
    queue(turns, slow, second)
    for _ in range(5):
        clock.now += 19
        turns.renew(slow)
        assert not turns.acquire(second).granted
    clock.now += 20
    assert turns.acquire(second).granted
    turns.renew(slow)  # too late
    clock.now += 2
    assert turns.acquire(second) == NOW


def test_an_answer_after_the_limit_still_counts(turns: Turns, clock: Clock) -> None:
    stalled, second = seat(8.0, limit=20.0), seat(1.0)
    queue(turns, stalled, second)
    clock.now += 20
    turns.acquire(second)
    clock.now += 15.5
    turns.release(stalled, sent=True)
    assert turns.acquire(second) == Turn(granted=True, wait=8.0), "it came just now"


def test_who_asks_ends_the_overdue_turn_for_the_first_in_the_queue(
    turns: Turns, clock: Clock
) -> None:
    stalled, second, third = seat(1.0, limit=20.0), seat(1.0), seat(1.0)
    woken = queue(turns, stalled, second, third)
    clock.now += 20
    assert not turns.acquire(third).granted
    assert woken == [second]


# --- event loops that are closed ----------------------------------------------------------------


def test_tasks_whose_loop_is_closed_are_passed_over_at_once(turns: Turns) -> None:
    first, second, third, fourth = seat(), seat(), seat(), seat()
    woken = queue(turns, first, second, third, fourth)
    second.wake = third.wake = closed_loop
    turns.release(first, sent=True)
    assert woken == [fourth]
    assert turns.acquire(fourth).granted


def test_a_holder_whose_loop_is_closed_is_no_holder(turns: Turns) -> None:
    gone, second = seat(2.0), seat(1.0)
    turns.acquire(gone)
    gone.ended = lambda: True
    # What it had sent may still be on its way.
    assert turns.acquire(second) == Turn(granted=True, wait=4.0)


def test_a_thousand_closed_loops_in_a_row(turns: Turns) -> None:
    seats = [seat() for _ in range(2_000)]
    woken = queue(turns, *seats)
    for each in seats[1:-1]:
        each.wake = closed_loop
    turns.release(seats[0], sent=True)
    assert woken == [seats[-1]]


def test_a_wake_that_an_earlier_wait_has_left_is_not_called_again(
    turns: Turns, clock: Clock
) -> None:
    overslept, other = seat(1.0, limit=20.0), seat(1.0, limit=20.0)
    turns.acquire(overslept)
    turns.acquire(other)
    clock.now += 20
    assert turns.acquire(other).granted
    overslept.wake = closed_loop  # what it waited on before; a lock, already open
    assert not turns.acquire(overslept).granted
    turns.release(other, sent=False)
    assert turns.acquire(overslept).granted, "it was taken for one whose loop is closed"


# --- bound to nothing -----------------------------------------------------------------------


class NoLock:
    """A lock that nobody may take."""

    def __enter__(self) -> NoReturn:
        raise AssertionError("a lock was taken")

    def __exit__(self, *_: object) -> None: ...

    def _is_owned(self) -> bool:
        return False


def test_requests_bound_to_nothing_take_no_lock(turns: Turns) -> None:
    turns.acquire(first := seat(0.0))  # the first one has to take the host in
    turns.release(first, sent=True, overloaded=False)
    turns._guard.lock = NoLock()
    side_by_side = [seat(0.0) for _ in range(10)]
    for each in side_by_side:
        assert turns.acquire(each) == NOW
    for each in side_by_side:
        turns.release(each, sent=True, overloaded=False)
    with pytest.raises(AssertionError, match="a lock was taken"):
        turns.acquire(seat(0.1))


def test_they_leave_their_time_to_those_who_are_bound(turns: Turns, clock: Clock) -> None:
    free = seat(0.0)
    turns.acquire(free)
    assert turns.acquire(bound := seat(5.0)) == Turn(granted=True, wait=5.0)
    clock.now += 3
    turns.release(free, sent=True)
    assert turns.acquire(bound).wait == 5.0, "its headers came just now"


def test_those_who_are_bound_hold_them_up(turns: Turns, clock: Clock) -> None:
    bound, free = seat(5.0), seat(0.0)
    turns.acquire(bound)
    assert not turns.acquire(free).granted
    clock.now += 1
    turns.release(bound, sent=True)
    assert turns.acquire(free) == Turn(granted=True, wait=5.0)


@pytest.mark.parametrize("pause", ["overload", "robots.txt"])
def test_after_a_pause_they_go_side_by_side_again(turns: Turns, clock: Clock, pause: str) -> None:
    if pause == "overload":
        turns.acquire(first := seat(0.0))
        turns.release(first, sent=True, push=10.0)
        first = seat(0.0)  # it tries whether the site is well again
        assert turns.acquire(first).wait == 10.0
    else:
        first = seat(0.0, alone=True)
        assert turns.acquire(first) == NOW
    others = [seat(0.0) for _ in range(5)]
    woken = queue(turns, *others)
    assert not any(turns.acquire(each).granted for each in others)
    clock.now += 10
    assert turns.acquire(first) == NOW
    assert not any(turns.acquire(each).granted for each in others)
    turns.release(first, sent=True)
    assert woken == others, "they were let go one after the other, and would be for ever"
    turns._guard.lock = NoLock()
    for each in [*others, seat(0.0)]:
        assert turns.acquire(each) == NOW


def test_after_a_pause_that_goes_on_they_wait_on(turns: Turns, clock: Clock) -> None:
    first, second, third = seat(0.0), seat(0.0), seat(0.0)
    turns.acquire(seat(0.0))
    turns.release(seat(0.0), sent=True, push=10.0)
    turns.acquire(first)
    woken = queue(turns, second, third)
    clock.now += 10
    assert turns.acquire(first) == NOW
    turns.release(first, sent=True, push=10.0)
    assert woken == [second]
    assert turns.acquire(second) == Turn(granted=True, wait=10.0, pushed=10.0)
    assert not turns.acquire(third).granted


def test_one_bound_among_them_keeps_its_place(turns: Turns, clock: Clock) -> None:
    first, free, bound = seat(1.0), seat(0.0), seat(1.0)
    woken = queue(turns, first, free, bound)
    turns.release(first, sent=False)
    assert woken == [free]
    assert turns.acquire(free) == NOW
    turns.release(free, sent=True)
    clock.now += 1
    assert turns.acquire(bound) == NOW


# --- memory ---------------------------------------------------------------------------------


def test_idle_hosts_are_forgotten_and_live_ones_are_not(turns: Turns, clock: Clock) -> None:
    turns.acquire(held := seat(1.0, limit=1e9, host="held"))
    turns.acquire(over := seat(1.0, host="over"))
    turns.release(over, sent=True)
    turns.acquire(pushed := seat(1.0, host="pushed"))
    turns.release(pushed, sent=True, push=86_400.0)
    turns.acquire(slow := seat(900.0, host="slow"))
    turns.release(slow, sent=True)
    clock.now += 301
    turns.acquire(recent := seat(1.0, host="recent"))
    turns.release(recent, sent=True)
    for number in range(20):
        turns.acquire(each := seat(1.0, host=f"host{number}"))
        turns.release(each, sent=False)
    assert "over" not in turns._hosts
    assert {"held", "pushed", "slow", "recent"} <= set(turns._hosts)
    assert not turns.acquire(seat(1.0, host="held")).granted
    assert turns.acquire(seat(1.0, host="pushed")).wait > 86_000
    assert turns.acquire(seat(1.0, host="slow")).wait == 900 - 301
    turns.release(held, sent=False)


def test_a_crawl_of_many_hosts_holds_few(turns: Turns, clock: Clock) -> None:
    for number in range(5_000):
        turns.acquire(each := seat(1.0, host=f"host{number}"))
        turns.release(each, sent=True)
        clock.now += 1
    assert len(turns._hosts) < 1_000
    assert len(turns._ring) == len(turns._hosts)


def test_queues_are_made_only_for_those_who_wait(turns: Turns) -> None:
    first, second = seat(), seat()
    turns.acquire(first)
    assert turns._hosts[HOST].queue is None
    turns.acquire(second)
    turns.release(first, sent=False)
    turns.release(second, sent=False)
    assert turns._hosts[HOST].queue is None


# --- one's own thread, and forks ----------------------------------------------------------------


def in_thread(act: Callable[[], Any]) -> Any:
    answers: list[Any] = []
    thread = threading.Thread(target=lambda: answers.append(act()))
    thread.start()
    thread.join()
    return answers[0]


def test_who_waits_for_its_own_thread_is_told(turns: Turns) -> None:
    here = threading.get_ident()
    first = in_thread(seat)
    assert first.thread != here
    second, third = seat(), seat()
    queue(turns, first, second, third)
    assert not turns.is_blocked_by(here, second), "the first one goes on in another thread"
    assert turns.is_blocked_by(first.thread, second)
    assert turns.is_blocked_by(here, third), "the second one cannot go on while this one waits"
    turns.release(first, sent=False)
    assert turns.is_blocked_by(here, third)
    assert not turns.is_blocked_by(here, second), "it is its turn"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_child_has_turns_of_its_own_and_remembers_the_last_one() -> None:
    clock = Clock()
    store = MemoryStore(clock=clock)
    held, waiting, idle = seat(5.0), seat(5.0), seat(9.0, host="idle.example")
    store.acquire(idle)
    store.release(idle, sent=True)
    store.acquire(held)
    store.acquire(waiting)
    read, write = os.pipe()
    with (
        store._turns._guard.lock,
        store._copies._guard.lock,
    ):  # as another thread of the parent may have them
        child = os.fork()
        if not child:
            found = [store.acquire(seat(1.0)), store.acquire(seat(1.0, host="idle.example"))]
            os.write(write, repr([(each.granted, each.wait) for each in found]).encode())
            os._exit(0)
    os.close(write)
    with os.fdopen(read) as pipe:
        assert pipe.read() == "[(True, 5.0), (True, 9.0)]"
    os.waitpid(child, 0)
    assert not store.acquire(waiting).granted, "the parent goes on as before"


def test_one_that_passes_while_another_takes_the_host_waits_for_it(turns: Turns) -> None:
    """Without a lock the other may come at any moment: here between the look and the writing."""
    bound, taken = seat(5.0), list[Turn]()

    class Interrupted(Host):
        def __setattr__(self, name: str, value: Any) -> None:
            if name == "passed" and value > 0.0:
                taken.append(turns.acquire(bound))
            super().__setattr__(name, value)

    turns.acquire(seat(0.0))
    turns._hosts[HOST] = Interrupted()
    assert not turns.passes(HOST)
    assert taken == [NOW]
