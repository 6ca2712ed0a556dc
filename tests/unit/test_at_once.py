"""The short way: gone only where nothing has to be fetched, refused or waited for."""

import pytest

from polite_transport import Policy
from polite_transport.flow import NOT_CONNECTED, UNANSWERED, Attempt, Call, check, enter
from polite_transport.flow.at_once import check_at_once, enter_at_once, leave_at_once
from polite_transport.stores.base import Seat

from .clockwork import ANSWERED, ORIGIN, PAGE, Clockwork, file

PRIVATE = f"{ORIGIN}/private"
SLOW = file("User-agent: *\nCrawl-delay: 2\n")


def known(world: Clockwork, policy: Policy | None = None) -> Call:
    """A call that is checked, to a host that has been visited."""
    world.send(PAGE, policy)
    call = world.call(PAGE, policy)
    assert check_at_once(call, world.store)
    return call


def test_an_allowed_request_goes_all_the_way_and_leaves_its_time() -> None:
    world = Clockwork()
    call = known(world)
    assert enter_at_once(call, world.store)
    assert call.seat is not None
    world.passed += 5.0
    assert leave_at_once(call, ANSWERED, world.store)
    assert call.seat is None
    later = Seat("example.org", 2.0, 60.0)
    assert world.store.acquire(later).wait == 2.0


def test_it_decides_as_the_long_way_does() -> None:
    world = Clockwork()
    short = known(world)
    long = world.call(PAGE)
    world.run(check(long))
    assert (short.decision, short.copy, short.recheck_at) == (
        long.decision,
        long.copy,
        long.recheck_at,
    )


def test_without_a_copy_nothing_is_decided() -> None:
    call = Clockwork().call(PAGE)
    assert not check_at_once(call, Clockwork().store)
    assert not hasattr(call, "decision")


def test_a_copy_that_has_run_out_is_no_copy() -> None:
    world = Clockwork()
    policy = Policy(robots_ttl=10.0)
    known(world, policy)
    world.passed += 10.0
    assert not check_at_once(world.call(PAGE, policy), world.store)


@pytest.mark.parametrize(
    ("url", "policy"),
    [
        (PRIVATE, None),
        (PRIVATE, Policy(obey_disallow=False)),
        (PAGE, Policy(max_delay=1.0)),
        (PAGE, Policy(obey_disallow=False, obey_crawl_delay=False)),
    ],
)
def test_no_doubt_and_no_refusal_is_settled_here(url: str, policy: Policy | None) -> None:
    world = Clockwork(file("User-agent: *\nDisallow: /private\nCrawl-delay: 2\n"))
    world.send()
    assert not check_at_once(world.call(url, policy), world.store)


def test_a_delay_or_an_earlier_attempt_takes_a_turn() -> None:
    slow = Clockwork(SLOW)
    assert not enter_at_once(known(slow), slow.store)
    world = Clockwork()
    call = known(world)
    call.attempts = 1
    assert not enter_at_once(call, world.store)
    assert call.seat is None


def test_the_sites_visiting_hours_are_looked_up() -> None:
    world = Clockwork()
    call = known(world, Policy(obey_visit_time=True))
    assert not enter_at_once(call, world.store)


def test_a_host_that_has_never_been_visited_is_taken_in_first() -> None:
    world = Clockwork()
    world.check()
    call = world.call(f"{ORIGIN}:81/page")
    call.decision = known(world).decision
    call.target = call.target._replace(host="elsewhere.example")
    assert not enter_at_once(call, world.store)


def test_someones_turn_or_a_pause_is_waited_for() -> None:
    world = Clockwork()
    call = known(world)
    turn = Seat("example.org", 2.0, 60.0)
    world.passed += 2.0
    assert world.store.acquire(turn).granted
    assert not enter_at_once(call, world.store)
    world.store.release(turn, sent=False, push=7.0)
    assert not enter_at_once(call, world.store)
    world.passed += 7.0
    assert enter_at_once(call, world.store)


@pytest.mark.parametrize(
    "attempt",
    [
        UNANSWERED,
        NOT_CONNECTED,
        Attempt(429),
        Attempt(503),
        Attempt(302, retry_after="5"),
        Attempt(503, retry_after="5"),
    ],
)
def test_an_end_that_says_more_is_told_in_full(attempt: Attempt) -> None:
    world = Clockwork()
    call = known(world)
    assert enter_at_once(call, world.store)
    assert not leave_at_once(call, attempt, world.store)
    assert call.seat is not None


def test_an_answer_after_overloads_ends_their_row_in_full() -> None:
    world = Clockwork()
    world.send()
    world.store.release(Seat("example.org", 0.0, 60.0), sent=True, overloaded=True)
    world.passed += 3600.0
    call = known_again(world)
    assert not leave_at_once(call, ANSWERED, world.store)


def known_again(world: Clockwork) -> Call:
    call = world.call(PAGE)
    world.run(check(call))
    world.run(enter(call))
    return call


def test_a_ledger_is_told_though_the_turn_in_this_process_is_over() -> None:
    world = Clockwork()
    call = known(world)
    assert enter_at_once(call, world.store)
    assert call.seat is not None
    call.seat.token = "its name in a ledger"
    assert not leave_at_once(call, ANSWERED, world.store)
    assert call.seat is not None
