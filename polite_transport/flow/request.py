"""What a request goes through: checked once a redirect hop, a turn for each attempt; as steps."""

import logging
from typing import NoReturn

from polite_transport.decision import Decision, Reason, decide
from polite_transport.errors import (
    DisallowedByRobots,
    RobotsUnreachable,
    StoreUnavailable,
    WaitReason,
    WaitTooLong,
)
from polite_transport.flow.call import NOT_SENT, Attempt, Call, undecided
from polite_transport.flow.load import load
from polite_transport.flow.turn import end_turn, refuse_long_wait, say_wait, take_turn
from polite_transport.pacing.visit_time import seconds_until_window
from polite_transport.robots.access import Copy
from polite_transport.steps import Flow, Now, Sleep
from polite_transport.stores.base import Seat, StoreFault

log = logging.getLogger("polite_transport")


def check(call: Call) -> Flow[None]:
    """Decide about a request; read the origin's robots.txt first where no copy of it counts.

    Raises DisallowedByRobots, RobotsUnreachable; WaitTooLong where the site asks for more than
    the policy allows, or the turn of robots.txt itself is too far away; NoAnswer;
    StoreUnavailable.
    """
    policy = call.policy
    try:
        copy = None if policy.asks_nothing else (yield from load(call))
    except StoreFault as fault:
        raise StoreUnavailable(undecided(call), fault.cause) from fault
    call.copy = copy
    call.decision = decision = decide(
        copy,
        call.target,
        method=call.method,
        user_agent=call.user_agent,
        product_token=call.product_token,
        policy=policy,
    )
    if copy is None and not policy.asks_nothing:
        decision.reason = Reason.NO_ANSWER
    if not decision.allowed:
        if policy.obey_disallow:
            yield from _refuse(decision, copy)
        log.warning("not refused, as obey_disallow is off: %s", decision)
    if decision.delay > policy.max_delay:
        limit = f"max_delay={policy.max_delay:g}"
        raise WaitTooLong(decision, decision.delay, limit, WaitReason.SITE_DELAY)


def _refuse(decision: Decision, copy: Copy | None) -> Flow[NoReturn]:
    if decision.reason is Reason.UNREACHABLE and copy is not None:
        now = yield from Now()
        raise RobotsUnreachable(decision, max(copy.expires_at - now, 0.0))
    raise DisallowedByRobots(decision)


def enter(call: Call) -> Flow[None]:
    """Wait for the host's turn and take it, for one attempt on the wire.

    A request that waited past the life of its copy of robots.txt is checked again.
    Raises WaitTooLong, StoreUnavailable, and whatever ``check`` raises then.
    """
    yield from _take_within_window(call)
    if call.copy is not None and (call.waited or call.attempts):
        try:
            now = yield from Now()
        except BaseException:
            yield from leave(call, NOT_SENT)
            raise
        if now >= call.recheck_at:
            yield from leave(call, NOT_SENT)
            yield from check(call)
            # Once is enough: fetched just now, a copy counts for this request.
            yield from _take_within_window(call)
    call.attempts += 1
    call.decision.waited = call.waited


def _take(call: Call) -> Flow[None]:
    seat = Seat(call.target.host, call.decision.delay, call.policy.turn_limit)
    try:
        call.waited += yield from take_turn(seat, call.policy, call.decision)
    except StoreFault as fault:
        raise StoreUnavailable(call.decision, fault.cause) from fault
    call.seat = seat


def _take_within_window(call: Call) -> Flow[None]:
    """Take a turn; outside the site's Visit-time it is at the start of its next window.

    The wait for a turn may outlast the window: then it is someone else's, and ours a later one.
    """
    wait = yield from _until_window(call)
    while True:
        if wait:
            refuse_long_wait(call.decision, call.policy, wait, WaitReason.VISIT_TIME)
            say_wait(call.target.host, wait, "its Visit-time begins then")
            call.waited += yield from Sleep(wait)
        yield from _take(call)
        try:
            wait = yield from _until_window(call)
        except BaseException:
            yield from leave(call, NOT_SENT)
            raise
        if not wait:
            return
        yield from leave(call, NOT_SENT)


def _until_window(call: Call) -> Flow[float]:
    """Return the seconds until the site's Visit-time, 0.0 within it or where it is not kept."""
    if call.copy is None or not call.policy.obey_visit_time:
        return 0.0
    window = call.copy.robots.visit_time(call.product_token)
    if window is None:
        return 0.0
    now = yield from Now()
    return seconds_until_window(window.start, window.end, now)


def leave(call: Call, attempt: Attempt) -> Flow[None]:
    """Give the turn back, once the attempt's headers are in or it has failed; idempotent."""
    seat, call.seat = call.seat, None
    if seat is not None:
        yield from end_turn(seat, attempt)
