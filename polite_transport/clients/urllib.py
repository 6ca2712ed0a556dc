"""The standard library's ``urllib.request``: checked and paced at ``do_open``, once for each hop.

Every touch of what it does not call public stands here: ``AbstractHTTPHandler.do_open`` and
``Request._tunnel_host``.
"""

import http.client
import socket
import time
from collections.abc import Callable
from functools import partial
from typing import Any
from urllib.error import URLError
from urllib.request import Request

from polite_transport import errors
from polite_transport.decision import Decision
from polite_transport.errors import PoliteError
from polite_transport.flow import NOT_CONNECTED, UNANSWERED, Attempt, Call, NoAnswer
from polite_transport.in_hand import (
    IN_HAND,
    Flavours,
    Hand,
    flavoured,
    is_in_hand,
    native_error,
    say_replaced,
    send_checked,
)
from polite_transport.robots.access import Reply
from polite_transport.robots.body import Body, BrokenBody
from polite_transport.steps import Fetch
from polite_transport.visitor import Visitor

_LIBRARY_UA = "Python-urllib/"
_CHUNK = 65_536

Open = Callable[..., http.client.HTTPResponse]


class DisallowedByRobots(errors.DisallowedByRobots, URLError):
    """``polite_transport.DisallowedByRobots`` that ``except URLError`` sees."""


class RobotsUnreachable(errors.RobotsUnreachable, URLError):
    """``polite_transport.RobotsUnreachable`` that ``except URLError`` sees."""


class WaitTooLong(errors.WaitTooLong, URLError):
    """``polite_transport.WaitTooLong`` that ``except URLError`` sees."""


class StoreUnavailable(errors.StoreUnavailable, URLError):
    """``polite_transport.StoreUnavailable`` that ``except URLError`` sees."""


_FLAVOURS: Flavours = {
    errors.DisallowedByRobots: DisallowedByRobots,
    errors.RobotsUnreachable: RobotsUnreachable,
    errors.WaitTooLong: WaitTooLong,
    errors.StoreUnavailable: StoreUnavailable,
}


def open_politely(
    who: Visitor, do_open: Open, http_class: Any, request: Request, connection: dict[str, Any]
) -> http.client.HTTPResponse:
    """Check one hop and open it in its turn.

    do_open: the handler's own, with its other arguments: http_class, request, and ``connection``.
    """
    sent = request.get_header("User-agent")
    ua = who.user_agent
    if ua is not None and sent != ua:
        if sent is not None and not sent.startswith(_LIBRARY_UA):
            say_replaced(sent, ua)
        request.remove_header("User-agent")  # an opener's own goes over what is added
        request.add_header("User-Agent", ua)
        sent = ua
    call = who.call(request.get_method(), request.full_url, sent)
    send = partial(do_open, http_class, request, **connection)
    if isinstance(call, Decision):
        return _with_decision(send(), call)
    if is_in_hand(call):
        return send()
    get = partial(_get_robots, who, do_open, request, call)
    response = send_checked(call, who.store, get, partial(_in_turn, call, send), _native)
    return _with_decision(response, call.decision)


def _in_turn(call: Call, send: Callable[[], http.client.HTTPResponse]) -> Any:
    hand = IN_HAND.get()
    if hand is None or not hand.is_paced_by(_LAYER):
        return send()
    hand.enter()
    try:
        response = send()
    except BaseException as error:
        hand.leave(NOT_CONNECTED if _never_connected(error) else UNANSWERED)
        raise
    headers = response.headers
    attempt = Attempt(response.status, headers.get("Retry-After"), headers.get("Date"))
    if call.policy.pace_from == "body":
        _leave_at_end(response, hand, attempt)
    else:
        hand.leave(attempt)
    return response


_LAYER = object()


def _never_connected(error: BaseException) -> bool:
    reason = getattr(error, "reason", error)
    return isinstance(reason, ConnectionRefusedError | socket.gaierror)


def _leave_at_end(response: Any, hand: Hand, attempt: Attempt) -> None:
    """Give the turn back when the body has been read or given up; renew it as bytes come in."""
    read, close = response.read, response.close

    def reading(*args: Any) -> bytes:
        content: bytes = read(*args)
        hand.renew()
        if response.isclosed():
            hand.leave(attempt)
        return content

    def closing() -> None:
        hand.leave(attempt)
        close()

    response.read, response.close = reading, closing


def _with_decision(
    response: http.client.HTTPResponse, decision: Decision
) -> http.client.HTTPResponse:
    polite: Any = response
    polite.polite = decision
    return response


def _native(error: PoliteError | NoAnswer) -> Exception:
    if isinstance(error, NoAnswer):
        return native_error(error, OSError, URLError)
    return flavoured(error, _FLAVOURS)


def _get_robots(who: Visitor, do_open: Open, page: Request, call: Call, step: Fetch) -> Reply:
    """GET one robots.txt URL through the page's own proxy and TLS settings."""
    started = time.monotonic()
    request = Request(step.target.url, headers=dict(step.headers))  # noqa: S310 - http or https
    if call.user_agent:
        request.add_header("User-Agent", call.user_agent)
    page_timeout: Any = getattr(page, "timeout", None)
    timed = isinstance(page_timeout, int | float)
    request.timeout = min(page_timeout, step.timeout) if timed else step.timeout
    if page.has_proxy() or getattr(page, "_tunnel_host", None):
        request.set_proxy(page.host, page.type)
    secure = step.target.url.startswith("https:")
    connection = http.client.HTTPSConnection if secure else http.client.HTTPConnection
    with Hand(step.target, "GET", who.store, None):
        try:
            response = do_open(connection, request)
        except (OSError, http.client.HTTPException) as error:
            return Reply(None, error=error, elapsed=time.monotonic() - started)
        with response:
            content, broken = _read(response, step, started)
    headers = {name.lower(): value for name, value in response.headers.items()}
    elapsed = time.monotonic() - started
    return Reply(response.status, headers, content, broken=broken, elapsed=elapsed)


def _read(
    response: http.client.HTTPResponse, step: Fetch, started: float
) -> tuple[bytes, str | None]:
    try:
        body = Body(step.max_bytes, response.headers.get("Content-Encoding"))
        while chunk := response.read1(_CHUNK):
            if not body.feed(chunk):
                break
            if time.monotonic() > started + step.timeout:
                return b"", "its body takes too long"
        if response.length:  # announced, and not come
            return b"", "its body ends early"
        return body.content(), None
    except BrokenBody as error:
        return b"", str(error)
    except (OSError, http.client.HTTPException) as error:
        return b"", f"its body ends early ({error!r})"
