"""Taking a host's turn and giving it back, as steps."""

import logging

from polite_transport.decision import Decision
from polite_transport.errors import WaitReason, WaitTooLong
from polite_transport.flow.ask import ask_again
from polite_transport.flow.call import Attempt
from polite_transport.pacing.retry_after import (
    LONGEST_BACKOFF,
    OVERLOADED,
    asked_pause,
    retry_after,
)
from polite_transport.policy import Policy
from polite_transport.steps import Acquire, Flow, Now, Release, Sleep, Wait
from polite_transport.stores.base import Seat, StoreFault, Turn

log = logging.getLogger("polite_transport")

INSTANT = 1e-6  # seconds; what sums of waits leave below it by rounding is no time
SAID_WAIT = 1.0  # seconds; a wait so long is logged,
LONG_WAIT = 30.0  # and one so long shows even where logging is not set up


def take_turn(seat: Seat, policy: Policy, decision: Decision) -> Flow[float]:
    """Wait until the turn is the seat's; return the seconds that it took.

    Whatever interrupts the wait, the place is given back.
    Raises WaitTooLong, StoreFault.
    """
    waited = 0.0
    try:
        while True:
            try:
                turn = yield from Acquire(seat)
            except StoreFault as fault:
                turn = yield from ask_again(Acquire(seat), fault, policy)
            if turn.granted and not turn.wait:
                return waited
            if turn.pushed > policy.max_delay:
                limit = f"max_delay={policy.max_delay:g}"
                raise WaitTooLong(decision, turn.pushed, limit, _pause(turn, policy))
            if not waited:
                refuse_long_wait(decision, policy, turn.wait, _why_away(turn, policy))
                say_wait(seat.host, turn.wait, _why(seat, turn))
            if turn.granted:
                refuse_long_wait(decision, policy, waited + turn.wait, _why_away(turn, policy))
                waited += yield from Sleep(turn.wait)
            else:
                patience = turn.ask_again
                if policy.max_wait is not None:
                    patience = min(patience, policy.max_wait - waited)
                    if patience < INSTANT:
                        limit = f"max_wait={policy.max_wait:g}"
                        wait = waited + turn.wait
                        raise WaitTooLong(decision, wait, limit, _why_away(turn, policy))
                waited += yield from Wait(seat, patience)
    except BaseException:
        yield from Release(seat, sent=False)
        raise


def refuse_long_wait(decision: Decision, policy: Policy, wait: float, why: WaitReason) -> None:
    """Raise WaitTooLong where a wait, in seconds, is above Policy.max_wait."""
    if policy.max_wait is not None and wait > policy.max_wait:
        raise WaitTooLong(decision, wait, f"max_wait={policy.max_wait:g}", why)


def _why_away(turn: Turn, policy: Policy) -> WaitReason:
    if turn.pushed and turn.pushed >= turn.wait:
        return _pause(turn, policy)
    return WaitReason.LAST_REQUEST if turn.granted else WaitReason.QUEUE


def _pause(turn: Turn, policy: Policy) -> WaitReason:
    # Our own pause is a minute at most, or the delay of the request that was turned away; and none
    # has a delay beyond max_delay. What goes beyond both, the site has asked for.
    asked = turn.pushed > max(LONGEST_BACKOFF, policy.max_delay)
    return WaitReason.RETRY_AFTER if asked else WaitReason.PAUSE


def _why(seat: Seat, turn: Turn) -> str:
    if turn.pushed:
        return "the site asked for a pause, or is overloaded"
    if not turn.granted:
        return f"others are before it, and {seat.delay:g} s lie between two requests"
    if turn.wait > seat.delay:
        return "the request before it keeps a longer distance, or got no answer"
    return f"{seat.delay:g} s lie between two requests"


def say_wait(host: str, wait: float, why: str) -> None:
    """Log a wait that a person would notice."""
    if wait >= SAID_WAIT:
        level = logging.WARNING if wait >= LONG_WAIT else logging.INFO
        log.log(level, "waiting %.1f s or more for %s: %s", wait, host, why)


def end_turn(seat: Seat, attempt: Attempt) -> Flow[None]:
    """Give one turn back, with what its response asks of the whole host; whatever interrupts."""
    push, overloaded = 0.0, None
    try:
        push, overloaded = yield from _asked(attempt)
    finally:
        yield from Release(
            seat, sent=attempt.sent, arrived=attempt.arrived, push=push, overloaded=overloaded
        )


def heed(seat: Seat, attempt: Attempt) -> Flow[None]:
    """Do what a response asks of the whole host, where its turn was given back before.

    For clients that tell the status of a response only when its body is there.
    """
    push, overloaded = yield from _asked(attempt)
    yield from Release(seat, sent=False, push=push, overloaded=overloaded)


def _asked(attempt: Attempt) -> Flow[tuple[float, bool | None]]:
    """Return the pause that a response asks for in seconds, and ``overloaded`` as in a Release."""
    if attempt.status is None:
        return 0.0, None
    push = 0.0
    if attempt.retry_after is not None:
        now = yield from Now()
        seconds = retry_after(attempt.retry_after, attempt.date, now)
        push = asked_pause(attempt.status, seconds)
    if attempt.status not in OVERLOADED:
        return push, False
    return push, None if push else True
