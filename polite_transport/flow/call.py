"""What is handed from layer to layer: a request on its way, and how an attempt ended."""

import math
from dataclasses import dataclass, field
from typing import Protocol

from polite_transport.decision import Decision, Reason, decide
from polite_transport.policy import Policy
from polite_transport.robots.access import Copy
from polite_transport.stores.base import Seat
from polite_transport.url import Target


class NoAnswer(Exception):
    """robots.txt got no HTTP answer at all, so that nothing else was sent.

    error: the exception of the client that tried.
    shared: whether another request's fetch met it, perhaps through another client.
    """

    def __init__(self, error: Exception, robots_url: str, *, shared: bool) -> None:
        super().__init__(error)
        self.error = error
        self.shared = shared
        asked = "waited for another request to ask" if shared else "asked"
        self.note = (
            f"polite_transport met this while it {asked} for {robots_url}; "
            "the page itself was not asked for"
        )


@dataclass(slots=True)
class Attempt:
    """How one attempt on the wire ended.

    status, retry_after, date: of the response, where its headers came.
    arrived: whether it is known that nothing of it is still under way: headers came, or no
        connection was made.
    sent: False where nothing was sent at all.
    """

    status: int | None = None
    retry_after: str | None = None
    date: str | None = None
    arrived: bool = True
    sent: bool = True


class Headers(Protocol):
    """Any client's response headers; names in any case."""

    def get(self, name: str, /) -> str | None:
        """Return the value of one, or None."""
        ...


def answered(status: int, headers: Headers) -> Attempt:
    """Return how an attempt ended whose response headers are in.

    Those of a 2xx ask nothing of the host, and are not looked at.
    """
    if 200 <= status < 300:
        return Attempt(status)
    return Attempt(status, headers.get("Retry-After"), headers.get("Date"))


NOT_SENT = Attempt(sent=False)
NOT_CONNECTED = Attempt()
UNANSWERED = Attempt(arrived=False)


@dataclass(slots=True, eq=False)
class Call:
    """One request on its way, handed from layer to layer.

    policy: the one in force for its host.
    via: the way to the site where not everyone should rely on what comes along it: TLS that is not
        verified, a proxy. What is read of robots.txt on one way is not handed to those of another.
    decision, copy: what ``check`` came to.
    recheck_at: wall clock, when the copy no longer counts and the request is checked again.
    seat: the turn it holds, between ``enter`` and ``leave``.
    attempts: how often it was let onto the wire.
    waited: seconds spent on politeness so far.
    """

    target: Target
    method: str
    user_agent: str
    product_token: str
    policy: Policy
    via: str = ""
    decision: Decision = field(init=False)
    copy: Copy | None = None
    recheck_at: float = math.inf
    seat: Seat | None = None
    attempts: int = 0
    waited: float = 0.0


def undecided(call: Call) -> Decision:
    """Return what can be told about a request whose robots.txt has not been read."""
    decision = decide(
        None,
        call.target,
        method=call.method,
        user_agent=call.user_agent,
        product_token=call.product_token,
        policy=call.policy,
    )
    if not call.policy.asks_nothing:
        decision.reason = Reason.NOT_YET
    return decision
