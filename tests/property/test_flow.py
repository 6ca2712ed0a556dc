"""The politeness logic on a virtual clock, in any interleaving.

Many requests go through check, enter and leave over one MemoryStore. Who comes when, how long
everything takes, what fails and who is cancelled at which step is all drawn; the sites' log and
what the parties are left with is judged.
"""

import itertools
import logging
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import given as drawn
from hypothesis import strategies as st

from polite_transport import Policy
from polite_transport.flow import Attempt
from polite_transport.robots.access import Access, Reply
from polite_transport.steps import Wait
from polite_transport.stores.base import Seat
from polite_transport.visitor import Visitor

from .world import UA, WALL, Exchange, Line, Party, Serving, World

# Sixteenths of a second: sums of them are exact, so that a gap is kept to the last bit.
moments = st.integers(0, 48).map(lambda n: n / 16)
delays = st.sampled_from([0.0, 0.0, 0.5, 1.0, 2.5])
ORIGINS = ["http://a.example", "http://a.example:81", "http://b.example"]
DOWN = Reply(None, error=OSError("down"))
NEVER = 1e6
SLACK = 1e-9  # our own back-off is drawn at random, and no multiple of anything

given = settings(max_examples=250, deadline=None, suppress_health_check=[HealthCheck.too_slow])


def robots_txt(delay: float, *, closed: bool = False, etag: bool = False) -> Reply:
    body = f"User-agent: *\nDisallow: {'/' if closed else '/private'}\n"
    if delay:
        body += f"Crawl-delay: {delay:g}\n"
    return Reply(200, {"etag": f'"{delay}{closed}"'} if etag else {}, body.encode())


files = st.builds(
    robots_txt, delays, closed=st.sampled_from([False] * 4 + [True]), etag=st.booleans()
)
failures = st.sampled_from([Reply(503), Reply(500), DOWN, Reply(404), Reply(429)])


@st.composite
def servings(draw: st.DrawFn) -> dict[str, list[Serving]]:
    """What the sites answer to robots.txt: fail, be slow, change, or send one elsewhere."""
    found: dict[str, list[Serving]] = {"http://cdn.example/robots.txt": []}
    for origin in ORIGINS:
        answers = [*draw(st.lists(st.one_of(files, files, failures), max_size=2)), draw(files)]
        own = f"{origin}/robots.txt"
        found[own] = [Serving(each, draw(moments), draw(moments)) for each in answers]
        place = draw(st.sampled_from([None, None, None, "/moved.txt", found_elsewhere]))
        if place is not None:
            there = place if place == found_elsewhere else origin + place
            found[there] = found.get(there) or found[own]
            found[own] = [Serving(Reply(301, {"location": there}), draw(moments), 0.0)]
    return found


found_elsewhere = "http://cdn.example/robots.txt"

fine = st.builds(Exchange, moments, moments)
unanswered = st.builds(Exchange, moments, moments, st.none(), st.booleans())
refused = st.builds(Exchange, moments, moments, st.just(Attempt()))
paused = st.builds(
    Exchange,
    moments,
    moments,
    st.builds(Attempt, st.sampled_from([302, 429, 503]), st.sampled_from(["1", "3"]), st.none()),
)
overloaded = st.builds(Exchange, moments, moments, st.just(Attempt(503)))
exchanges = st.one_of(fine, fine, fine, unanswered, refused, paused, overloaded)


@st.composite
def policies(draw: st.DrawFn, ttl: float, turn_limit: float) -> Policy:
    return Policy(
        min_delay=draw(delays),
        max_wait=draw(st.sampled_from([None, None, None, 4.0, 30.0])),
        obey_crawl_delay=draw(st.sampled_from([True, True, True, False])),
        obey_disallow=draw(st.sampled_from([True, True, True, False])),
        on_unreachable=draw(st.sampled_from(["disallow", "disallow", "allow"])),
        turn_limit=turn_limit,
        robots_ttl=ttl,
    )


@st.composite
def worlds(
    draw: st.DrawFn, *, turn_limit: float = NEVER, cancels: bool = True, vanishes: bool = False
) -> World:
    """A world with all parties on their way."""
    world = World(draw(servings()))
    ttl = draw(st.sampled_from([5.0, 3600.0, 86_400.0]))
    visitors = [
        Visitor(UA, draw(policies(ttl, turn_limit)), world.store)
        for _ in range(draw(st.integers(1, 3)))
    ]
    origins = ORIGINS[: draw(st.integers(1, len(ORIGINS)))]
    for _ in range(draw(st.integers(1, 9))):
        url = draw(st.sampled_from(origins)) + draw(st.sampled_from(["/page", "/page", "/private"]))
        party = Party(
            draw(st.sampled_from(visitors)),
            url,
            draw(st.lists(exchanges, min_size=1, max_size=3)),
            cancel_at_step=draw(st.none() | st.integers(1, 25)) if cancels else None,
            vanish_at_step=draw(st.none() | st.integers(1, 25)) if vanishes else None,
            hesitates=draw(st.booleans()),
        )
        world.send_in(party, draw(moments))
        if cancels and draw(st.integers(0, 3)) == 0:
            world.at(draw(st.integers(0, 200)) / 16, lambda it=party: world.cancel(it))  # type: ignore[misc]
    return world


@pytest.fixture(autouse=True, scope="module")
def _silence() -> Iterator[None]:
    """What the parties log is told elsewhere; here it would bury what Hypothesis has to say."""
    logging.disable()
    yield
    logging.disable(logging.NOTSET)


@given
@drawn(worlds())
def test_the_gaps_are_kept_and_nobody_is_stranded(world: World) -> None:
    world.run()
    nobody_is_stranded(world)
    gaps_are_kept(world)
    pauses_are_kept(world)
    first_come_first_served(world)
    nobody_waits_longer_than_it_would(world)
    nothing_is_sent_that_is_not_allowed(world)
    assert not woken_by_time_alone(world), "someone polls"
    nobody_asks_for_nothing(world)


@given
@drawn(worlds(cancels=False))
def test_without_cancellations_every_party_comes_to_its_end(world: World) -> None:
    world.run()
    nobody_is_stranded(world)
    assert all(party.outcome for party in world.parties)
    gaps_are_kept(world)
    first_come_first_served(world)


@given
@drawn(worlds(turn_limit=2.0))
def test_with_turns_that_end_by_their_limit(world: World) -> None:
    world.run()
    nobody_is_stranded(world)
    gaps_are_kept(world)
    first_come_first_served(world)
    nobody_waits_longer_than_it_would(world)
    nothing_is_sent_that_is_not_allowed(world)


@given
@drawn(worlds(turn_limit=4.0, vanishes=True))
def test_parties_whose_event_loop_is_gone_strand_nobody(world: World) -> None:
    world.run()
    assert all(party.ended or party.vanished for party in world.parties)
    nothing_is_sent_that_is_not_allowed(world)
    nobody_waits_longer_than_it_would(world)


def nobody_is_stranded(world: World) -> None:
    """All have come to their end, and have left nothing behind that is in someone's way."""
    assert all(party.ended for party in world.parties)
    for name, host in world.store._turns._hosts.items():
        assert host.holder is None, f"{name} has a holder"
        assert not host.queue, f"{name} has a queue"
    assert not world.store._copies._claims


def gaps_are_kept(world: World) -> None:
    for host in {line.host for line in world.lines}:
        lines = sorted(
            (line for line in world.lines if line.host == host), key=lambda line: line.number
        )
        for earlier, later in itertools.combinations(lines, 2):
            _judge(earlier, later)


def _judge(earlier: Line, later: Line) -> None:
    """Judge two requests to one host by the promise, in the order of their sending."""
    assert earlier.ended is not None
    assert earlier.arrived is not None
    assert later.arrived is not None
    # One that was interrupted before it could read an answer does not know what it asks for.
    promised = max(earlier.before if earlier.unread else earlier.after, later.before)
    if earlier.is_free and later.number < earlier.over:
        # It took no turn, so that nothing waits for its end; but its sending counts.
        assert later.sent - earlier.sent >= later.before - SLACK
        return
    if later.number < earlier.over:
        latest = earlier.sent + earlier.limit + earlier.before
        # What it asks for is not known before its answer is read.
        promised = max(earlier.before, later.before)
        assert later.sent - latest >= promised - SLACK, "two turns at once"
    elif earlier.answered:
        latest = earlier.ended
    else:
        latest = earlier.ended + earlier.before
        assert later.sent - latest >= promised - SLACK, "it may have arrived just before"
    if earlier.arrived <= latest:
        assert later.arrived - earlier.arrived >= promised - SLACK


def pauses_are_kept(world: World) -> None:
    """Retry-After holds for the whole host, whatever binds a request; so does our own back-off."""
    for line in world.lines:
        assert line.ended is not None
        if line.unread:
            continue
        later = [each for each in world.lines if each.host == line.host and each.sent > line.ended]
        for each in later:
            assert each.sent - line.ended >= line.retry_after - SLACK
        alone = not any(
            each.overloaded or each.retry_after or not each.answered
            for each in world.lines
            if each is not line and each.host == line.host and (each.ended or 0.0) <= line.ended
        )
        if line.overloaded and not line.retry_after and alone:
            for each in later:
                assert each.sent - line.ended >= max(line.before, 1.0)


def first_come_first_served(world: World) -> None:
    for host in {seat.host for seat in world.seats}:
        served = [
            known
            for seat, known in world.seats.items()
            if seat.host == host and known.order is not None and (seat.delay or seat.alone)
        ]
        served.sort(key=lambda known: known.order or 0)
        numbers = [known.number for known in served]
        assert numbers == sorted(numbers), "someone was overtaken"


def nobody_waits_longer_than_it_would(world: World) -> None:
    for line in world.lines:
        call = line.call
        if call is not None and call.policy.max_wait is not None:
            for seated in world.seats.values():
                if seated.order == line.number:  # else it went at once
                    assert line.sent - seated.asked <= call.policy.max_wait + SLACK


def nothing_is_sent_that_is_not_allowed(world: World) -> None:
    for line in world.lines:
        call, copy = line.call, line.copy
        if call is None:
            continue
        policy = call.policy
        if copy is None:
            no_answer_counts = policy.on_unreachable == "allow"
            assert no_answer_counts or policy.asks_nothing, "sent without reading robots.txt"
            continue
        if copy.access is Access.UNREACHABLE:
            unheard = policy.on_too_many_requests if copy.status == 429 else policy.on_unreachable
            assert unheard == "allow" or not policy.obey_disallow
        if policy.obey_disallow:
            assert b"Disallow: /\n" not in copy.body
            assert b"Disallow" not in copy.body or line.target != "/private"
        alive = WALL + line.sent < copy.expires_at
        # Once is enough: else a file whose life is shorter than the queue would let nobody through.
        fresh = call.recheck_at == float("inf")
        assert alive or fresh or line.checked_again, "sent by a copy that no longer counts"


def woken_by_time_alone(world: World) -> list[Wait]:
    """Waits that ended by their time, though neither a limit nor impatience can explain it."""
    impatient = {
        seat
        for seat in world.seats
        if any(
            party.call.policy.max_wait is not None and party.call.target.host == seat.host
            for party in world.parties
        )
    }
    return [
        wait
        for wait in world.timeouts
        if not (isinstance(wait.waiter, Seat) and wait.waiter in impatient)
    ]


def nobody_asks_for_nothing(world: World) -> None:
    """Asked again is only after a wake-up, after a wait, or where someone was pushed meanwhile."""
    for known in world.seats.values():
        if known.sent is not None:
            assert known.acquires <= 3 + known.releases
