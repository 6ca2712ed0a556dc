"""Turns at urllib3's connection pools, one for each attempt on the wire.

requests builds on this. Every touch of what urllib3 does not call public stands in this file:
``HTTPConnectionPool._make_request``.
"""

from collections.abc import Callable
from functools import cache
from typing import Any

from urllib3 import HTTPConnectionPool, PoolManager, Retry
from urllib3.exceptions import ConnectTimeoutError, NewConnectionError
from urllib3.response import BaseHTTPResponse

from polite_transport.clients.urllib3.line import is_under_way
from polite_transport.flow import NOT_CONNECTED, UNANSWERED, answered
from polite_transport.sending.body_end import leave_at_end
from polite_transport.sending.fetching import Fetching
from polite_transport.sending.hand import IN_HAND

# Nothing of such an attempt can still be on its way to the site.
_NO_CONNECTION = (NewConnectionError, ConnectTimeoutError)

Send = Callable[..., BaseHTTPResponse]


def paced_urlopen(layer: object, send: Send, *args: Any, **kwargs: Any) -> BaseHTTPResponse:
    """Wait for the turn of one attempt, then send it.

    layer: who asks. Of several layers on one request the first paces it, and the others pass it on.
    send: the pool's own ``urlopen``, with its arguments, the method and the URL first.

    The wait comes before a connection is taken from the pool, so that none goes stale over it.
    Retries, and re-sends on a dropped connection, come here again from within the attempt before.
    """
    hand = IN_HAND.get()
    if hand is None or not hand.is_open:
        return send(*args, **kwargs)
    if hand.call is None:
        return send(*args, **{**kwargs, "retries": _one_try(kwargs.get("retries"))})
    call = hand.call
    if not hand.borrows(layer):
        if not hand.is_paced_by(layer):
            return send(*args, **kwargs)
        if call.seat is not None:
            hand.leave(NOT_CONNECTED)
        hand.enter()
    kept = False
    try:
        response = send(*args, **kwargs)
        kept = call.policy.pace_from == "body"
        return response
    finally:
        # Where it came as far as a request, that is over already.
        if call.seat is not None and not kept:
            hand.leave(NOT_CONNECTED)


def _one_try(retries: Any) -> Retry | bool:
    """Return what lets robots.txt fail at once: it is fetched again by our own rule.

    retries: the script's own. What is raised in the end is what they would end in.
    """
    # False, which a manager keeps as Retry(False): what fails is raised as it is.
    if getattr(retries, "total", retries) is False:
        return False
    return Retry(0, read=False if getattr(retries, "read", None) is False else None)


def paced_request(layer: object, send: Send, *args: Any, **kwargs: Any) -> BaseHTTPResponse:
    """Send one attempt, and give its turn back as soon as the headers are in.

    send: the pool's own ``_make_request``, with its arguments.
    """
    hand = IN_HAND.get()
    if hand is None or not hand.is_open or hand.call is None or not hand.is_paced_by(layer):
        if isinstance(hand, Fetching) and hand.is_open:
            return _fetched(hand, send, *args, **kwargs)
        return send(*args, **kwargs)
    preload = kwargs.get("preload_content", True)
    # The body is read once the turn is given back; a slow one would hold it for nothing.
    kwargs["preload_content"] = False
    hand.on_wire = True
    try:
        response = send(*args, **kwargs)
    except _NO_CONNECTION:
        hand.leave(NOT_CONNECTED)
        raise
    except BaseException:
        hand.leave(UNANSWERED)
        raise
    finally:
        hand.on_wire = False
    attempt = answered(response.status, response.headers)
    if hand.call.policy.pace_from == "body":
        leave_at_end(response, hand, attempt)
    else:
        hand.leave(attempt)
    if preload:
        _ = response.data
    return response


def _fetched(fetching: Fetching, send: Send, *args: Any, **kwargs: Any) -> BaseHTTPResponse:
    fetching.watch(args[0])  # the connection
    try:
        return send(*args, **kwargs)
    finally:
        fetching.let_go()


class PolitePool(HTTPConnectionPool):
    """What is mixed into a pool class: each attempt of the request in hand takes a turn.

    checked: sends a request that is not in hand: it came straight to the pool, or the layers above
        have checked another URL than the one that stands here and goes into the request line.
    """

    checked: Send

    def urlopen(self, method: str, url: str, *args: Any, **kwargs: Any) -> BaseHTTPResponse:
        """Send a request, each attempt in its turn."""
        if is_under_way(self, method, url):
            return paced_urlopen(PolitePool, super().urlopen, method, url, *args, **kwargs)
        return self.checked(_urlopen_beneath, self, method, url, *args, **kwargs)

    def _make_request(self, *args: Any, **kwargs: Any) -> BaseHTTPResponse:
        return paced_request(PolitePool, super()._make_request, *args, **kwargs)


def _urlopen_beneath(pool: PolitePool, *args: Any, **kwargs: Any) -> BaseHTTPResponse:
    return super(PolitePool, pool).urlopen(*args, **kwargs)


@cache
def _polite_class(pool_class: type[HTTPConnectionPool]) -> type[HTTPConnectionPool]:
    if issubclass(pool_class, PolitePool):
        return pool_class
    # Under its own name, which urllib3's error messages show.
    return type(pool_class.__name__, (PolitePool, pool_class), {})


def use_polite_pools(pool_manager: PoolManager) -> None:
    """Let a pool manager make polite pools from now on; idempotent.

    Pools that it holds already are let go: they would stay as they are.
    """
    classes = pool_manager.pool_classes_by_scheme
    polite = {scheme: _polite_class(each) for scheme, each in classes.items()}
    if polite != classes:
        pool_manager.pool_classes_by_scheme = polite
        pool_manager.clear()
