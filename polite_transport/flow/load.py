"""Loading the robots.txt of an origin, once for all who need it, as steps.

Source: RFC 9309 sections 2.3 and 2.4.
"""

import math
from dataclasses import replace

from polite_transport.flow.ask import ask_again
from polite_transport.flow.call import UNANSWERED, Attempt, Call, NoAnswer, undecided
from polite_transport.flow.tell import tell_oddities
from polite_transport.flow.turn import end_turn, take_turn
from polite_transport.robots.access import Copy, Reply, read_copy
from polite_transport.robots.body import ACCEPT_ENCODING
from polite_transport.robots.redirects import MOST_HOPS, BadRedirect, next_hop
from polite_transport.steps import Claim, Fetch, Flow, Now, Publish, Sleep, Wait
from polite_transport.stores.base import Busy, Claimed, CopyKey, CopyWaiter, Seat, StoreFault
from polite_transport.url import Target

RETRY_PAUSE = 2.0  # seconds before a robots.txt that answered 5xx is asked once more, at the most


def load(call: Call) -> Flow[Copy | None]:
    """Return the origin's copy; of all who need it at once, one fetches it.

    None only with on_unreachable="allow", where there was no answer at all.
    Raises NoAnswer, WaitTooLong, StoreFault.
    Source: RFC 9309 sections 2.3 and 2.4.
    """
    key = copy_key(call)
    waiter = CopyWaiter()
    try:
        try:
            claim = yield from Claim(key, waiter)
        except StoreFault as fault:
            claim = yield from ask_again(Claim(key, waiter), fault, call.policy)
        if isinstance(claim, Copy):
            call.recheck_at = claim.expires_at
            return claim
        while isinstance(claim, Busy):
            call.waited += yield from Wait(waiter, claim.ask_again, key)
            try:
                claim = yield from Claim(key, waiter)
            except StoreFault as fault:
                claim = yield from ask_again(Claim(key, waiter), fault, call.policy)
        shared = not isinstance(claim, Claimed)
        outcome = claim if not isinstance(claim, Claimed) else (yield from _fetch(call, claim.last))
    except BaseException:
        yield from Publish(key, waiter, None)
        raise
    if not shared:
        yield from Publish(key, waiter, outcome)
    if isinstance(outcome, Copy):
        now = yield from Now()
        # Fetched just now, it counts for this request however short its life.
        call.recheck_at = outcome.expires_at if outcome.expires_at > now else math.inf
        return outcome
    if call.policy.on_unreachable == "allow":
        return None
    error = outcome.error or OSError("no answer")
    raise NoAnswer(error, _robots_url(call).url, shared=shared)


def copy_key(call: Call) -> CopyKey:
    """Return which copy a request needs."""
    policy = call.policy
    return CopyKey(
        call.target.origin,
        call.product_token.lower(),
        policy.robots_redirects,
        policy.robots_max_bytes,
        policy.robots_timeout,
        policy.robots_ttl,
        call.via,
    )


def _robots_url(call: Call) -> Target:
    """Return where the origin's robots.txt is: RFC 9309 section 2.3."""
    origin = call.target.origin
    return Target(f"{origin}/robots.txt", origin, call.target.host, "/robots.txt")


def _fetch(call: Call, last: Copy | None) -> Flow[Copy | Reply]:
    """Fetch robots.txt, and once more where that failed; a Reply where there was no answer."""
    reply, outcome = yield from _try(call, last)
    if reply.failed:
        if reply.status is not None:
            now = yield from Now()
            pause = reply.pause(now) or min(RETRY_PAUSE, call.policy.robots_timeout)
            if pause > call.policy.robots_timeout:
                tell_oddities(outcome, call.policy)
                return outcome
            call.waited += yield from Sleep(pause)
        reply, outcome = yield from _try(call, last)
    now = yield from Now()
    if isinstance(outcome, Reply) and last is not None and last.speaks_for_outage(now):
        # Nothing was learnt, so that nothing is published anew: the next request asks again.
        outcome = replace(
            last, expires_at=now, note="it does not answer; the copy held before counts"
        )
    tell_oddities(outcome, call.policy)
    return outcome


def _try(call: Call, last: Copy | None) -> Flow[tuple[Reply, Copy | Reply]]:
    """Go from hop to hop; return the last answer, and what it comes to.

    Every hop takes a turn of its host like any other request, since the site's log shows it too.
    """
    policy = call.policy
    here = first = _robots_url(call)
    seen = {here.url}
    left = policy.robots_timeout
    while True:
        headers = {"Accept": "text/plain, */*;q=0.5", "Accept-Encoding": ACCEPT_ENCODING}
        if last is not None and here is first:
            headers |= last.conditional_headers
        seat = Seat(here.host, _known_delay(call, here, last), policy.turn_limit, alone=True)
        call.waited += yield from take_turn(seat, policy, undecided(call))
        try:
            reply = yield from Fetch(here, headers, policy.robots_max_bytes, left)
            if reply.late and reply.elapsed >= left:
                # The policy's time was over, and not just the client's: it counts for everyone
                # who has that policy.
                reply = replace(reply, late=False, broken=reply.unusable)
            now = yield from Now()
            there = _read(call, reply, here, first, seen, last, now)
        except BaseException:
            yield from end_turn(seat, UNANSWERED)
            raise
        call.waited += reply.elapsed
        if isinstance(there, Copy) and policy.obey_crawl_delay and here.host == first.host:
            seat.delay = max(seat.delay, there.asked_delay)  # known only now, and counts in full
        yield from end_turn(seat, _attempt(reply))
        if not isinstance(there, Target):
            return reply, there
        here = there
        seen.add(here.url)
        left = max(left - reply.elapsed, 0.001)


def _known_delay(call: Call, here: Target, last: Copy | None) -> float:
    """Return what a fetch of robots.txt is bound to before its own Crawl-delay is known."""
    policy = call.policy
    if last is None or not policy.obey_crawl_delay or here.host != call.target.host:
        return policy.min_delay
    return max(policy.min_delay, last.asked_delay)


def _attempt(reply: Reply) -> Attempt:
    if reply.status is None:
        return UNANSWERED
    return Attempt(reply.status, reply.headers.get("retry-after"), reply.headers.get("date"))


def _read(
    call: Call,
    reply: Reply,
    here: Target,
    first: Target,
    seen: set[str],
    last: Copy | None,
    now: float,
) -> Target | Copy | Reply:
    """Return where an answer leads, or the copy that it comes to, or itself if it is no answer."""
    if reply.status is None:
        return reply
    endless = False
    if 300 <= reply.status < 400 and not (reply.status == 304 and last is not None):
        try:
            there = next_hop(here, reply.headers.get("location"), call.policy.robots_redirects)
        except BadRedirect as bad:
            reply = replace(reply, broken=str(bad))
        else:
            endless = len(seen) > MOST_HOPS or there.url in seen
            if not endless:
                return there
    return read_copy(
        reply,
        robots_url=first.url,
        product_token=call.product_token,
        redirected_to=None if here is first else here.url,
        endless=endless,
        max_bytes=call.policy.robots_max_bytes,
        ttl=call.policy.robots_ttl,
        now=now,
        last=last,
    )
