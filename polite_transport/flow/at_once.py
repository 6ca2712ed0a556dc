"""The short way of what needs neither a wait nor a fetch.

Most requests are allowed by a copy of robots.txt that is at hand, and bound to no delay. They are
decided like all others, only without steps. Here nobody is refused and nothing is waited for: each
function says True where it has done the whole of it, and has done nothing where it says False.
"""

from polite_transport.decision import decide
from polite_transport.flow.call import Attempt, Call
from polite_transport.flow.load import copy_key
from polite_transport.pacing.retry_after import OVERLOADED
from polite_transport.stores.base import Seat, Store


def check_at_once(call: Call, store: Store) -> bool:
    """Check a request that its origin's copy allows; see ``check``."""
    policy = call.policy
    if policy.asks_nothing:
        return False
    copy = store.at_hand(copy_key(call))
    if copy is None:
        return False
    decision = decide(
        copy,
        call.target,
        method=call.method,
        user_agent=call.user_agent,
        product_token=call.product_token,
        policy=policy,
    )
    if not decision.allowed or decision.delay > policy.max_delay:
        return False
    call.copy = copy
    call.recheck_at = copy.expires_at
    call.decision = decision
    return True


def enter_at_once(call: Call, store: Store) -> bool:
    """Let a first attempt that is bound to no delay onto the wire; see ``enter``."""
    if call.decision.delay or call.waited or call.attempts or call.policy.obey_visit_time:
        return False
    host = call.target.host
    if not store.passes(host):
        return False
    call.seat = Seat(host, 0.0, call.policy.turn_limit)
    call.attempts = 1
    return True


def leave_at_once(call: Call, attempt: Attempt, store: Store) -> bool:
    """End an attempt whose answer asks nothing of its host; see ``leave``."""
    if call.seat is None or call.seat.token:  # a ledger has to be told
        return False
    if call.decision.delay or attempt.retry_after is not None:
        return False
    if attempt.status is None or attempt.status in OVERLOADED or not store.passes(call.target.host):
        return False
    call.seat = None
    return True
