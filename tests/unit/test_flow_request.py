"""A request from check to leave: refusals, retries, and copies that run out on the way."""

import pytest

from polite_transport import DisallowedByRobots, Policy, RobotsUnreachable, WaitTooLong
from polite_transport.decision import Reason
from polite_transport.errors import WaitReason
from polite_transport.flow import Attempt, Call, check, enter, leave
from polite_transport.stores.base import Seat

from .clockwork import ANSWERED, FORBIDS, NO_ANSWER, ORIGIN, PAGE, Clockwork, closed, file

PRIVATE = f"{ORIGIN}/private"
SHUT = file("User-agent: *\nDisallow: /\n")
SHORT = Policy(robots_ttl=10.0)


def checked(world: Clockwork, policy: Policy | None = None, url: str = PAGE) -> Call:
    call = world.call(url, policy)
    world.run(check(call))
    return call


def test_a_refused_request_takes_no_turn() -> None:
    world = Clockwork()
    world.check()
    world.steps.clear()
    with pytest.raises(DisallowedByRobots):
        world.send(PRIVATE, Policy(min_delay=5.0))
    assert [type(step).__name__ for step in world.steps] == ["Claim"]


def test_checked_and_allowed_with_nothing_to_wait_for_is_three_steps() -> None:
    world = Clockwork()
    world.check()
    world.steps.clear()
    world.send()
    assert [type(step).__name__ for step in world.steps] == ["Claim", "Acquire", "Release"]


def test_a_dry_run_sends_what_would_be_refused_and_says_so(
    caplog: pytest.LogCaptureFixture,
) -> None:
    world = Clockwork(SHUT)
    call = checked(world, Policy(obey_disallow=False))
    assert (call.decision.allowed, call.decision.reason) == (False, Reason.RULE)
    assert "not refused" in caplog.text
    assert "line 2" in caplog.text
    world.run(enter(call))
    world.run(leave(call, ANSWERED))


def test_a_dry_run_goes_on_through_an_outage() -> None:
    call = checked(Clockwork(closed(503)), Policy(obey_disallow=False))
    assert (call.decision.allowed, call.decision.reason) == (False, Reason.UNREACHABLE)


def test_a_site_that_asks_for_more_than_the_policy_allows_is_told_before_any_turn() -> None:
    world = Clockwork(file("User-agent: *\nCrawl-delay: 301\n"))
    with pytest.raises(WaitTooLong) as caught:
        world.check()
    assert (caught.value.wait, caught.value.limit) == (301.0, "max_delay=300")
    assert (caught.value.why, caught.value.retry_in) == (WaitReason.SITE_DELAY, None)
    assert "line 2 of http://example.org/robots.txt says 'Crawl-delay: 301'" in str(caught.value)
    assert caught.value.decision.delay_record == ("crawl-delay", "301", 2)
    assert world.check(policy=Policy(obey_crawl_delay=False)).allowed
    assert Clockwork(file("User-agent: *\nCrawl-delay: 300\n")).check().delay == 300


@pytest.mark.parametrize("passed", [0.0, 302.0, 86_000.0])
def test_no_time_that_passes_cures_that(passed: float) -> None:
    world = Clockwork(file("User-agent: *\nCrawl-delay: 301\n"))
    with pytest.raises(WaitTooLong):
        world.check()
    world.passed += passed
    with pytest.raises(WaitTooLong) as caught:
        world.check()
    assert caught.value.retry_in is None


def test_a_distance_beyond_all_numbers_is_refused_in_a_short_sentence() -> None:
    world = Clockwork(file("User-agent: *\nDisallow:\nRequest-rate: 1/" + "9" * 400))
    with pytest.raises(WaitTooLong) as caught:
        world.check()
    assert "line 3 of" in str(caught.value)
    assert "9" * 41 not in str(caught.value)
    assert len(str(caught.value)) < 450


def test_each_attempt_takes_a_turn_of_its_own() -> None:
    world = Clockwork()
    call = checked(world, Policy(min_delay=3.0))
    sent = []
    for _ in range(3):
        world.run(enter(call))
        sent.append(world.passed)
        world.run(leave(call, Attempt(503, "5")))
    assert sent == [3, 8, 13]
    assert call.attempts == 3


def test_pages_keep_the_sites_own_delay_between_them() -> None:
    world = Clockwork(file("User-agent: *\nCrawl-delay: 5\n"))
    assert [world.send() for _ in range(3)] == [5, 10, 15]
    assert world.send(policy=Policy(min_delay=7.0)) == 22


# --- copies that run out ----------------------------------------------------------------------


def test_one_that_waited_past_the_life_of_its_copy_is_checked_again() -> None:
    world = Clockwork([FORBIDS, SHUT])
    call = checked(world, SHORT)
    world.store.release(Seat("example.org", 0.0, 60.0), sent=False, push=11.0)
    with pytest.raises(DisallowedByRobots):
        world.run(enter(call))
    assert call.seat is None
    assert len(world.fetches) == 2
    assert world.store.acquire(Seat("example.org", 1.0, 60.0)).granted, "its turn is given back"


def test_so_is_one_that_found_the_copy_of_another() -> None:
    world = Clockwork([FORBIDS, SHUT])
    world.check(policy=SHORT)
    world.passed = 5.0
    call = checked(world, SHORT)
    assert len(world.fetches) == 1
    world.store.release(Seat("example.org", 0.0, 60.0), sent=False, push=6.0)
    with pytest.raises(DisallowedByRobots):
        world.run(enter(call))


def test_checked_again_and_still_allowed_it_is_sent_with_the_new_decision() -> None:
    slower = file("User-agent: *\nCrawl-delay: 4\n")
    world = Clockwork([FORBIDS, slower])
    call = checked(world, SHORT)
    world.store.release(Seat("example.org", 0.0, 60.0), sent=False, push=11.0)
    world.run(enter(call))
    assert world.passed == 15, "the new file's delay counts from its fetch on"
    assert call.decision.delay == 4
    assert call.decision.waited == 15


def test_one_whose_copy_lives_is_not_checked_again() -> None:
    world = Clockwork([FORBIDS, SHUT])
    call = checked(world, SHORT)
    world.store.release(Seat("example.org", 0.0, 60.0), sent=False, push=9.0)
    world.run(enter(call))
    assert len(world.fetches) == 1


def test_a_retry_long_after_is_checked_again() -> None:
    world = Clockwork([FORBIDS, SHUT])
    call = checked(world, SHORT)
    world.run(enter(call))
    world.run(leave(call, ANSWERED))
    world.passed += 11
    with pytest.raises(DisallowedByRobots):
        world.run(enter(call))


def test_a_file_that_lives_no_longer_than_the_wait_lets_requests_through_all_the_same() -> None:
    world = Clockwork(file("User-agent: *\nCrawl-delay: 30\n"))
    call = checked(world, SHORT)
    world.run(enter(call))
    # Fetched again once, after the first wait; and then not again.
    assert len(world.fetches) <= 2
    assert world.passed <= 60


def test_an_outage_met_while_waiting_refuses_too() -> None:
    world = Clockwork([closed(404), closed(503)])
    call = checked(world, SHORT)
    world.store.release(Seat("example.org", 0.0, 60.0), sent=False, push=11.0)
    with pytest.raises(RobotsUnreachable):
        world.run(enter(call))
    assert call.seat is None


def test_no_answer_taken_for_no_rules_is_not_asked_about_again_and_again() -> None:
    world = Clockwork(NO_ANSWER)
    call = checked(world, Policy(on_unreachable="allow", min_delay=2.0))
    assert call.copy is None
    fetches = len(world.fetches)
    world.run(enter(call))
    world.run(leave(call, ANSWERED))
    world.run(enter(call))
    assert len(world.fetches) == fetches
