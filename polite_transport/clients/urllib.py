"""The standard library's ``urllib.request``: checked and paced at ``do_open``, once for each hop.

Every touch of what it does not call public stands here: ``AbstractHTTPHandler.do_open``,
``Request._tunnel_host``, and ``ssl._create_default_https_context``, which scripts replace.
"""

import http.client
import socket
import ssl
from collections.abc import Callable
from functools import partial
from typing import Any
from urllib.error import URLError
from urllib.request import Request

from polite_transport import errors
from polite_transport.decision import Decision
from polite_transport.errors import PoliteError
from polite_transport.flow import NOT_CONNECTED, UNANSWERED, Call, NoAnswer, answered
from polite_transport.robots.access import Reply
from polite_transport.robots.body import Body, BrokenBody
from polite_transport.sending.body_end import leave_at_end
from polite_transport.sending.checked import send_checked
from polite_transport.sending.fetching import Fetching
from polite_transport.sending.hand import IN_HAND, is_in_hand
from polite_transport.sending.native import Flavours, flavoured, native_error
from polite_transport.steps import Fetch
from polite_transport.url import DEFAULT_PORTS, is_absolute, presentable
from polite_transport.url import InvalidURL as UnreadableURL
from polite_transport.visitor import Visitor, unreadable, verifies, way

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


class InvalidURL(errors.InvalidURL, URLError):
    """``polite_transport.InvalidURL`` that ``except URLError`` sees."""


_FLAVOURS: Flavours = {
    errors.DisallowedByRobots: DisallowedByRobots,
    errors.RobotsUnreachable: RobotsUnreachable,
    errors.WaitTooLong: WaitTooLong,
    errors.StoreUnavailable: StoreUnavailable,
    errors.InvalidURL: InvalidURL,
}


def open_politely(
    who: Visitor, do_open: Open, http_class: Any, request: Request, connection: dict[str, Any]
) -> http.client.HTTPResponse:
    """Check one hop and open it in its turn.

    do_open: the handler's own, with its other arguments: http_class, request, and ``connection``.
    """
    sent: Any = request.get_header("User-agent")
    if isinstance(sent, bytes):  # http.client takes both
        sent = sent.decode("latin-1")
    chosen = sent is not None and not sent.startswith(_LIBRARY_UA)
    ua = who.instead_of(sent, request.full_url, chosen=chosen)
    if ua is not None:
        request.remove_header("User-agent")  # an opener's own goes over what is added
        request.add_header("User-Agent", ua)
        sent = ua
    try:
        # Through a tunnel urllib may name the proxy there, which is where the request goes first.
        host = request.get_header("Host")
        host = None if host == request.host else host
        call = who.call(request.get_method(), _sent_url(request), sent, host)
    except UnreadableURL as error:
        raise _native(unreadable(error, request.get_method(), request.full_url, sent)) from None
    send = partial(do_open, http_class, request, **connection)
    if isinstance(call, Decision):
        return _with_decision(send(), call)
    if is_in_hand(call.method, call.target, request):
        return send()
    call.via = _way(http_class, request, connection)
    get = partial(_get_robots, who, do_open, http_class, request, connection, call)
    response = send_checked(
        call, who.store, get, partial(_in_turn, call, send), _native, request=request
    )
    return _with_decision(response, call.decision)


def _sent_url(request: Request) -> str:
    """Return the absolute URL of what is sent.

    ``full_url`` is what the request was made with; ``selector``, which a script may set, is what
    stands in the request line, and ``host`` is where it goes.
    Raises url.InvalidURL for a selector that is neither a path nor an absolute URL: servers differ
    on what they make of it.
    """
    line, kind = request.selector, request.type
    if kind not in DEFAULT_PORTS or line == request.full_url:  # a proxy is sent the whole of it
        return request.full_url
    if is_absolute(line):
        return line
    if line and not line.startswith("/"):
        raise UnreadableURL(
            f"its selector {presentable(line)!r} is neither a path nor an http(s) URL"
        )
    host = getattr(request, "_tunnel_host", None) or request.host
    return f"{kind}://{host}{line or '/'}"


def _in_turn(call: Call, send: Callable[[], http.client.HTTPResponse]) -> Any:
    hand = IN_HAND.get()
    if hand is None or not hand.is_paced_by(_LAYER):
        return send()
    hand.enter()
    hand.on_wire = True
    try:
        response = send()
        attempt = answered(response.status, response.headers)
    except BaseException as error:
        hand.leave(NOT_CONNECTED if _never_connected(error) else UNANSWERED)
        raise
    if call.policy.pace_from == "body":
        leave_at_end(response, hand, attempt)
    else:
        hand.leave(attempt)
    return response


_LAYER = object()


def _never_connected(error: BaseException) -> bool:
    reason = getattr(error, "reason", error)
    return isinstance(reason, ConnectionRefusedError | socket.gaierror)


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


def _way(http_class: Any, request: Request, connection: dict[str, Any]) -> str:
    """Name the way of a hop, as ``Call.via`` has it; the arguments are those of ``do_open``."""
    # A class of someone else's, or a function that makes connections, may go through SOCKS.
    known = http_class in (http.client.HTTPConnection, http.client.HTTPSConnection)
    context = connection.get("context")
    if context is None:
        private: Any = ssl
        verified = private._create_default_https_context is ssl.create_default_context  # noqa: SLF001 - see the module
    else:
        verified = verifies(context)
    if connection.get("check_hostname") is False:  # which is put on the context only when it opens
        verified = False
    proxy = f"{request.type}://{request.host}" if _is_proxied(request) else None
    return way(verified=verified, proxy=proxy, stranger=None if known else http_class)


def _is_proxied(request: Request) -> bool:
    return is_absolute(request.selector) or bool(getattr(request, "_tunnel_host", None))


def _get_robots(
    who: Visitor,
    do_open: Open,
    http_class: Any,
    page: Request,
    connection: dict[str, Any],
    call: Call,
    step: Fetch,
) -> Reply:
    """GET one robots.txt URL through the page's own proxy and TLS settings."""
    request = Request(step.target.url, headers=dict(step.headers))  # noqa: S310 - http or https
    if call.user_agent:
        request.add_header("User-Agent", call.user_agent)
    page_timeout: Any = getattr(page, "timeout", None)
    timed = isinstance(page_timeout, int | float)
    request.timeout = min(page_timeout, step.timeout) if timed else step.timeout
    if _is_proxied(page):
        request.set_proxy(page.host, page.type)
        credentials = page.get_header("Proxy-authorization")
        if credentials is not None:  # for the proxy alone, which would answer in the site's place
            request.add_header("Proxy-Authorization", credentials)
    secure = step.target.url.startswith("https:")
    if secure != call.target.url.startswith("https:"):  # moved to where the page does not go
        http_class = http.client.HTTPSConnection if secure else http.client.HTTPConnection
        connection = {}
    with Fetching(step.target, who.store, step.timeout) as hand:

        def connect(*args: Any, **options: Any) -> Any:
            connected = http_class(*args, **options)
            hand.watch(connected)
            return connected

        try:
            response = do_open(connect, request, **connection)
        except (OSError, http.client.HTTPException) as error:
            return Reply(None, error=error, elapsed=hand.elapsed)
        with response:
            return _read(response, step, hand)


def _read(response: http.client.HTTPResponse, step: Fetch, hand: Fetching) -> Reply:
    headers = {name.lower(): value for name, value in response.headers.items()}
    content, broken, late = b"", None, False
    try:
        body = Body(step.max_bytes, response.headers.get("Content-Encoding"))
        while chunk := response.read1(_CHUNK):
            if not body.feed(chunk):
                break
            if hand.time_is_up:
                late = True
                break
        else:
            late = hand.time_is_up  # the end that came is perhaps one that we have made
            if response.length:  # announced, and not come
                raise BrokenBody("its body ends early")
        content = b"" if late else body.content()
    except BrokenBody as error:
        broken = str(error)
    except (OSError, http.client.HTTPException) as error:
        late = hand.time_is_up or isinstance(error, TimeoutError)
        broken = f"its body ends early ({error!r})"
    return Reply(response.status, headers, content, broken=broken, late=late, elapsed=hand.elapsed)
