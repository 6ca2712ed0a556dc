"""A request checked, in hand, and sent: what every blocking client layer does."""

from collections.abc import Callable
from typing import TypeVar

from polite_transport.decision import Decision
from polite_transport.drive import Get
from polite_transport.errors import DisallowedByRobots, PoliteError, RobotsUnreachable
from polite_transport.flow import Call, NoAnswer
from polite_transport.sending.hand import Hand
from polite_transport.sending.passage import check
from polite_transport.stores.base import Store

R = TypeVar("R")

Native = Callable[[PoliteError | NoAnswer], Exception]


def send_checked(
    call: Call,
    store: Store,
    get: Get,
    send: Callable[[], R],
    native: Native,
    request: object = None,
) -> R:
    """Check a request and send it, blocking: what every blocking client layer does.

    send: the client's own send, beneath which the wire layer takes the turns.
    native: turns a refusal into the client's own exception.
    request: as for ``Hand``.
    """
    try:
        check(call, store, get)
        with Hand(call.target, call.method, store, call, get, request=request):
            return send()
    except (PoliteError, NoAnswer) as error:
        refusal = native(error)
    raise refusal  # out here, where its own causes stay as they are


def decided(call: Call, store: Store, get: Get, native: Native) -> Decision:
    """Return what ``check`` decides about a request that is not sent, blocking."""
    try:
        check(call, store, get)
    except (DisallowedByRobots, RobotsUnreachable) as no:
        return no.decision
    except (PoliteError, NoAnswer) as error:
        refusal = native(error)
    else:
        return call.decision
    raise refusal
