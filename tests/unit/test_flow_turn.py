"""Waiting for a turn within the policy's bounds, and what an attempt's end asks of its host."""

import logging
from typing import Any

import pytest

from polite_transport import MemoryStore, Policy, StoreUnavailable, WaitTooLong
from polite_transport.decision import Reason
from polite_transport.errors import WaitReason
from polite_transport.flow import (
    NOT_CONNECTED,
    NOT_SENT,
    UNANSWERED,
    Attempt,
    check,
    enter,
    heed,
    leave,
)
from polite_transport.steps import Acquire, Release, Wait
from polite_transport.stores.base import Claimed, CopyKey, CopyWaiter, Seat, StoreFault, Turn

from .clockwork import ANSWERED, PAGE, START, Clockwork, file

TWO = Policy(min_delay=2.0)


def after(ends: Attempt, policy: Policy = TWO) -> float:
    """Return the seconds from the end of a page's attempt to the next request."""
    world = Clockwork()
    sent = world.send(policy=policy, ends=ends)
    return world.send(policy=policy) - sent


@pytest.mark.parametrize(
    ("ends", "pause"),
    [
        (ANSWERED, 2),
        (Attempt(404), 2),
        (Attempt(500), 2),
        (NOT_CONNECTED, 2),
        (NOT_SENT, 0),
        (UNANSWERED, 4),
        (Attempt(429, "7"), 7),
        (Attempt(503, "7"), 7),
        (Attempt(301, "7"), 7),
        (Attempt(503, "1"), 2),
        (Attempt(200, "7"), 2),
        (Attempt(500, "7"), 2),
        (Attempt(503, "Tue, 14 Nov 2023 22:14:20 GMT"), 58),
        (Attempt(503, "Tue, 14 Nov 2023 22:14:20 GMT", "Tue, 14 Nov 2023 22:14:00 GMT"), 20),
    ],
)
def test_how_an_attempt_ends_decides_when_the_next_may_start(ends: Attempt, pause: float) -> None:
    assert after(ends) == pytest.approx(pause)


@pytest.mark.parametrize("retry_after", [None, "0", "soon", "-5", "Sun, 06 Nov 1994 08:49:37 GMT"])
@pytest.mark.parametrize("status", [429, 503])
def test_without_a_usable_time_it_backs_off(status: int, retry_after: str | None) -> None:
    assert 2.0 <= after(Attempt(status, retry_after)) <= 2.5
    assert 1.0 <= after(Attempt(status, retry_after), Policy()) <= 1.25


def test_a_pause_holds_back_those_bound_to_nothing() -> None:
    assert after(Attempt(503, "7"), Policy()) == 7


def test_news_that_come_after_the_turn_count_too() -> None:
    world = Clockwork()
    sent = world.send(policy=Policy())
    world.run(heed(Seat("example.org", 0.0, 60.0), Attempt(429, "9")))
    assert world.send(policy=Policy()) == sent + 9


def test_leaving_twice_is_leaving_once() -> None:
    world = Clockwork()
    call = world.call(policy=TWO)
    world.run(check(call))
    world.run(enter(call))
    world.run(leave(call, ANSWERED))
    steps = len(world.steps)
    world.run(leave(call, UNANSWERED))
    assert len(world.steps) == steps


# --- bounds ---------------------------------------------------------------------------------


def test_a_turn_beyond_max_wait_is_told_at_once_and_gives_its_place_back() -> None:
    world = Clockwork()
    world.send(policy=Policy(min_delay=10.0))
    sent = world.passed
    with pytest.raises(WaitTooLong) as caught:
        world.send(policy=Policy(max_wait=9.0))
    assert (caught.value.wait, caught.value.limit) == (10.0, "max_wait=9")
    assert (caught.value.why, caught.value.retry_in) == (WaitReason.LAST_REQUEST, 10.0)
    assert "an earlier request keeps a longer distance" in str(caught.value)
    assert world.passed == sent
    assert world.send(policy=Policy(max_wait=10.0)) == sent + 10


def test_one_in_the_queue_is_told_too() -> None:
    world = Clockwork()
    world.check()
    world.store.acquire(Seat("example.org", 5.0, 60.0))
    with pytest.raises(WaitTooLong) as caught:
        world.send(policy=Policy(min_delay=3.0, max_wait=4.0))
    assert caught.value.wait == 10.0, "the one before it starts in 5 s, and 5 s lie after that"
    assert caught.value.why is WaitReason.QUEUE
    assert "before it, and Policy(min_delay=3) keeps" in str(caught.value)


def test_what_rounding_leaves_of_max_wait_is_not_waited_for() -> None:
    world = Clockwork()
    call = world.call(policy=Policy(min_delay=3.0, max_wait=5.0))
    world.run(check(call))
    flow = enter(call)
    queued = Turn(granted=False, wait=4.0, ask_again=60.0)
    assert isinstance(next(flow), Acquire)
    wait = flow.send(queued)
    assert isinstance(wait, Wait)
    assert wait.seconds == 5.0
    assert isinstance(flow.send(5.0 - 4e-15), Acquire)
    assert isinstance(flow.send(queued), Release)
    with pytest.raises(WaitTooLong, match="max_wait=5"):
        flow.send(None)


def test_coming_back_after_the_time_it_names_is_right() -> None:
    world = Clockwork(file("User-agent: *\nCrawl-delay: 20\n"))
    impatient = Policy(max_wait=5.0)
    world.send()
    with pytest.raises(WaitTooLong) as caught:
        world.send(policy=impatient)
    assert "because line 2 of http://example.org/robots.txt says 'Crawl-delay: 20'" in str(
        caught.value
    )
    assert caught.value.retry_in == 20.0
    world.passed += caught.value.retry_in
    assert world.send(policy=impatient) == world.passed


def test_the_turn_of_robots_txt_is_told_as_such() -> None:
    world = Clockwork()
    world.store.acquire(Seat("example.org", 5.0, 60.0))
    with pytest.raises(WaitTooLong) as caught:
        world.check(policy=Policy(max_wait=4.0))
    assert caught.value.decision.reason is Reason.NOT_YET
    assert "the turn of its robots.txt, which is read first, is 5.0 s or more" in str(caught.value)


@pytest.mark.parametrize(
    ("ends", "policy", "why"),
    [
        (Attempt(503, "40"), Policy(max_wait=5.0), WaitReason.PAUSE),
        (Attempt(503), Policy(max_wait=0.5), WaitReason.PAUSE),
        (Attempt(503), Policy(max_delay=0.5), WaitReason.PAUSE),
        (Attempt(503, "301"), Policy(), WaitReason.RETRY_AFTER),
        (Attempt(503, "400"), Policy(max_wait=5.0), WaitReason.RETRY_AFTER),
        (Attempt(503, "70"), Policy(max_delay=5.0), WaitReason.RETRY_AFTER),
    ],
)
def test_a_pause_is_told_from_a_distance(ends: Attempt, policy: Policy, why: WaitReason) -> None:
    world = Clockwork()
    world.send(ends=ends)
    with pytest.raises(WaitTooLong) as caught:
        world.send(policy=policy)
    assert caught.value.why is why
    assert caught.value.retry_in == caught.value.wait
    world.passed += caught.value.wait
    assert world.send(policy=policy) == world.passed, "the time it named was not enough"


def test_the_start_of_the_visit_time_is_told_as_such() -> None:
    night = file("User-agent: *\nVisit-time: 0100-0200\n")
    with pytest.raises(WaitTooLong) as caught:
        Clockwork(night).send(policy=Policy(obey_visit_time=True, max_wait=60.0))
    assert caught.value.why is WaitReason.VISIT_TIME
    assert "the site's Visit-time begins then" in str(caught.value)


def test_a_turn_that_comes_after_the_visit_time_is_at_its_next_start() -> None:
    world = Clockwork(file("User-agent: *\nVisit-time: 1000-2214\nCrawl-delay: 60\n"))
    policy = Policy(obey_visit_time=True)
    # It is 22:13:20. Within the window is time for robots.txt and one page, 60 seconds later.
    ten_in_the_morning = 11 * 3600 + 46 * 60 + 40
    sent = [world.send(policy=policy) for _ in range(3)]
    assert sent == pytest.approx([60, ten_in_the_morning, ten_in_the_morning + 60])


def test_a_turn_that_comes_after_the_visit_time_is_too_far_away() -> None:
    world = Clockwork(file("User-agent: *\nVisit-time: 1000-2214\nCrawl-delay: 60\n"))
    policy = Policy(obey_visit_time=True, max_wait=100.0)
    assert world.send(policy=policy) == 60
    with pytest.raises(WaitTooLong) as caught:
        world.send(policy=policy)
    assert caught.value.why is WaitReason.VISIT_TIME
    assert world.send(policy=Policy()) == 120, "it has kept the turn"


def test_a_wait_is_told_where_there_is_one_and_with_its_reason(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO, logger="polite_transport")
    world = Clockwork()
    policy = Policy(min_delay=3.0)
    world.send(policy=policy, ends=UNANSWERED)
    world.send(policy=policy, ends=Attempt(503, "1000"))
    with pytest.raises(WaitTooLong):
        world.send(policy=policy)
    told = [each.getMessage() for each in caplog.records]
    waits = [
        each.removeprefix("waiting ").partition(" s or more for example.org: ") for each in told
    ]
    assert [(seconds, why) for seconds, _, why in waits] == [
        ("3.0", "3 s lie between two requests"),
        ("6.0", "the request before it keeps a longer distance, or got no answer"),
    ]


@pytest.mark.parametrize("max_delay", [299.0, 300.0])
def test_a_pause_beyond_max_delay_is_told_and_never_shortened(max_delay: float) -> None:
    world = Clockwork()
    policy = Policy(max_delay=max_delay)
    sent = world.send(policy=policy, ends=Attempt(503, "300"))
    if max_delay < 300:
        with pytest.raises(WaitTooLong, match="max_delay=299"):
            world.send(policy=policy)
        assert world.passed == sent
    else:
        assert world.send(policy=policy) == sent + 300


@pytest.mark.parametrize("max_delay", [200.0, 250.0])
def test_ones_own_failures_are_no_pause_beyond_max_delay(max_delay: float) -> None:
    policy = Policy(min_delay=200.0, max_delay=max_delay)
    assert after(UNANSWERED, policy) == 400


@pytest.mark.parametrize(("delay", "pause"), [(0.0, 4.0), (1.0, 4.0), (2.0, 4.0), (5.0, 7.0)])
def test_after_no_answer_a_longer_delay_counts_from_the_latest_arrival(
    delay: float, pause: float
) -> None:
    world = Clockwork()
    sent = world.send(policy=TWO, ends=UNANSWERED)
    assert world.send(policy=Policy(min_delay=delay)) - sent == pause


# --- what people are told ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("delay", "level"),
    [(0.9, None), (1.0, logging.INFO), (29.0, logging.INFO), (30.0, logging.WARNING)],
)
def test_a_wait_that_a_person_would_notice_is_logged(
    delay: float, level: int | None, caplog: pytest.LogCaptureFixture
) -> None:
    world = Clockwork()
    world.check()
    caplog.set_level(logging.INFO, "polite_transport")
    world.send(policy=Policy(min_delay=delay))
    assert [each.levelno for each in caplog.records] == ([] if level is None else [level])
    if level is not None:
        assert "example.org" in caplog.text
        assert f"{delay:g} s lie between" in caplog.text


def test_a_pause_is_logged_as_one(caplog: pytest.LogCaptureFixture) -> None:
    world = Clockwork()
    world.send(ends=Attempt(503, "40"))
    world.send()
    assert "asked for a pause" in caplog.text


def test_what_was_waited_is_told() -> None:
    world = Clockwork()
    world.send(policy=TWO)
    call = world.call(policy=TWO)
    world.run(check(call))
    world.run(enter(call))
    assert call.decision.waited == 2.0
    world.run(leave(call, ANSWERED))
    world.run(enter(call))  # a retry
    assert call.decision.waited == 4.0


def test_no_step_is_one_too_many() -> None:
    world = Clockwork()
    world.send(policy=TWO)
    call = world.call(policy=TWO)
    world.run(check(call))
    world.steps.clear()
    world.run(enter(call))
    world.run(leave(call, ANSWERED))
    kinds = [type(each).__name__ for each in world.steps]
    assert kinds == ["Acquire", "Sleep", "Acquire", "Now", "Release"]


# --- a store that is away ---------------------------------------------------------------------


class Away(MemoryStore):
    """A store that cannot be asked for the first few times."""

    def __init__(
        self, world: Clockwork, fault: StoreFault, *, claims: int = 0, turns: int = 0
    ) -> None:
        super().__init__(clock=lambda: world.passed, wall=lambda: START + world.passed)
        self.left = {"claim": claims, "acquire": turns}
        self.fault = fault
        claim, acquire = self.claim, self.acquire

        def one(key: CopyKey, waiter: CopyWaiter) -> Any:
            self._ask("claim")
            return claim(key, waiter)

        def other(seat: Seat) -> Turn:
            self._ask("acquire")
            return acquire(seat)

        self.claim, self.acquire = one, other

    def _ask(self, verb: str) -> None:
        if self.left[verb]:
            self.left[verb] -= 1
            raise self.fault


def away(fault: StoreFault, **times: int) -> Clockwork:
    world = Clockwork()
    world.store = Away(world, fault, **times)
    return world


PASSING = StoreFault("locked", passing=True, spent=0.25, patience=5.0)


@pytest.mark.parametrize("verb", ["claims", "turns"])
def test_a_store_that_is_back_in_time_is_no_news(verb: str) -> None:
    world = away(PASSING, **{verb: 3})
    sent = world.send()
    assert 0 < sent < 5


@pytest.mark.parametrize("verb", ["claims", "turns"])
def test_a_store_that_stays_away_sends_nothing(verb: str) -> None:
    world = away(PASSING, **{verb: 10**6})
    with pytest.raises(StoreUnavailable, match="locked") as caught:
        world.send()
    assert caught.value.decision.url == PAGE
    assert caught.value.cause == "locked"
    assert 1 < world.passed <= 5
    assert len(world.fetches) == 0
    store = world.store
    assert isinstance(store, Away)
    store.left = dict.fromkeys(store.left, 0)
    assert world.send() == world.passed, "and leaves nothing behind"


@pytest.mark.parametrize("verb", ["claims", "turns"])
def test_nobody_waits_for_a_store_longer_than_for_a_turn(verb: str) -> None:
    world = away(PASSING, **{verb: 10**6})
    with pytest.raises(StoreUnavailable):
        world.send(policy=Policy(max_wait=1.0))
    assert world.passed <= 1


@pytest.mark.parametrize("verb", ["claims", "turns"])
def test_what_does_not_pass_is_not_waited_for(verb: str) -> None:
    world = away(StoreFault("no such server"), **{verb: 1})
    with pytest.raises(StoreUnavailable, match="no such server"):
        world.send()
    assert world.passed == 0


def test_a_store_that_goes_away_before_the_page_sends_no_page() -> None:
    world = Clockwork()
    call = world.call(policy=TWO)
    world.run(check(call))
    world.store = Away(world, StoreFault("gone"), turns=1)
    with pytest.raises(StoreUnavailable) as caught:
        world.run(enter(call))
    assert caught.value.decision is call.decision
    assert call.seat is None


# --- interruptions ------------------------------------------------------------------------------


class Interrupt(BaseException):
    """What a cancelled task or a Ctrl-C throws."""


@pytest.mark.parametrize("number", range(1, 30))
def test_interrupted_at_any_step_everything_is_given_back(number: int) -> None:
    """Store steps are interrupted when they are done, as in a thread that cannot be stopped."""
    world = Clockwork()
    policy = Policy(min_delay=2.0, robots_ttl=3.0)
    call = world.call(policy=policy)

    def life() -> Any:
        yield from check(call)
        for _ in range(2):
            yield from enter(call)
            yield from leave(call, Attempt(503, "1"))

    flow = life()
    answer: Any = None
    count = 0
    step = next(flow)
    try:
        while True:
            count += 1
            answer = world._perform(step)
            step = flow.throw(Interrupt()) if count == number else flow.send(answer)
    except (Interrupt, StopIteration):
        pass
    hosts = world.store._turns._hosts  # type: ignore[attr-defined]
    assert all(host.holder is None for host in hosts.values())
    assert not world.store._copies._claims  # type: ignore[attr-defined]
    assert isinstance(
        world.store.claim(
            CopyKey("http://example.org", "other", "follow", 512_000, 10.0, 86_400.0), CopyWaiter()
        ),
        Claimed,
    )
