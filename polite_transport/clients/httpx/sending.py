"""Checking a request of httpx and sending it in its turn.

A transport sees every redirect hop and every leg of an authentication, so that it is both the
client layer and the wire layer: both happen in the same place.
"""

from collections.abc import Awaitable, Callable
from functools import partial
from http import HTTPStatus

import httpx

from polite_transport.clients.httpx.beneath import opens_connections
from polite_transport.clients.httpx.errors import failed, native
from polite_transport.clients.httpx.request_line import asked_url
from polite_transport.clients.httpx.response import (
    AsyncPacedBody,
    PacedBody,
    with_decision,
)
from polite_transport.clients.httpx.robots import get_robots, get_robots_async
from polite_transport.decision import Decision
from polite_transport.errors import DisallowedByRobots, PoliteError, RobotsUnreachable
from polite_transport.flow import UNANSWERED, Attempt, Call, NoAnswer, answered
from polite_transport.sending.checked import decided
from polite_transport.sending.hand import Hand, handed_down, handed_down_async
from polite_transport.sending.passage import (
    check,
    check_async,
    enter,
    enter_async,
    leave,
    leave_async,
)
from polite_transport.stores.base import Store
from polite_transport.url import InvalidURL as UnreadableURL
from polite_transport.visitor import Visitor, unreadable

Send = Callable[[httpx.Request], httpx.Response]
AsyncSend = Callable[[httpx.Request], Awaitable[httpx.Response]]
# Which transport a URL goes through, and the name of its way: see ``Call.via``.
Route = Callable[[httpx.URL], tuple[Send, str]]
AsyncRoute = Callable[[httpx.URL], tuple[AsyncSend, str]]

_TRANSPORT = object()  # the layer that paces; what lies beneath only passes on
HTTPX_UA = f"python-httpx/{httpx.__version__}"
_PROBE_TIMEOUT = httpx.Timeout(5.0).as_dict()


def send_politely(who: Visitor, route: Route, request: httpx.Request) -> httpx.Response:
    """Check one request, and send it in its turn."""
    send, via = route(request.url)
    call, store = _call(who, send, request), who.store
    if isinstance(call, Decision):
        return with_decision(send(request), call, 0.0)
    above = handed_down(call.method, call.target, request)
    if above is None:
        call.via = via
    elif above.call is None or above.is_new_to(who):
        return send(request)
    else:  # a transport in between sends it once more: another attempt of the same call
        call, store = above.call, above.store
        leave(call, UNANSWERED, store)
    get = partial(get_robots, route, store, call, request.extensions.get("timeout"))
    try:
        check(call, store, get)
        enter(call, store, get)
    except (PoliteError, NoAnswer) as error:
        refusal = native(error)
    else:
        return _send_in_turn(store, call, send, request)
    raise refusal  # out here, where its own causes stay as they are


def _send_in_turn(store: Store, call: Call, send: Send, request: httpx.Request) -> httpx.Response:
    attempt: Attempt | None = None
    try:
        with Hand(
            call.target,
            call.method,
            store,
            call,
            request=request,
            # Only a body that is made as it goes can make requests meanwhile.
            on_wire=type(request.stream) is not httpx.ByteStream and opens_connections(send),
            paced_by=_TRANSPORT,
        ):
            response = send(request)
        attempt = answered(response.status_code, response.headers)
        to_its_end = _is_paced_to_its_end(call, response)
        if to_its_end:
            response.stream = PacedBody(response.stream, call, attempt, store)
        with_decision(response, call.decision, call.waited)
    except BaseException as error:
        leave(call, attempt or failed(error), store)
        raise
    if not to_its_end:
        leave(call, attempt, store)
    return response


def _is_paced_to_its_end(call: Call, response: httpx.Response) -> bool:
    """Whether a response keeps its turn until its body ends: a switch of protocols has no end."""
    switched = response.status_code == HTTPStatus.SWITCHING_PROTOCOLS
    return call.policy.pace_from == "body" and not switched


def decide_only(
    who: Visitor, route: Route, url: str | httpx.URL, user_agent: str | None
) -> Decision:
    """Return what would be decided about a GET that is not sent."""
    probe = _probe(url, user_agent)
    send, via = route(probe.url)
    call = _call(who, send, probe)
    if isinstance(call, Decision):
        return call
    call.via = via
    get = partial(get_robots, route, who.store, call, _PROBE_TIMEOUT)
    return decided(call, who.store, get, native)


async def send_politely_async(
    who: Visitor, route: AsyncRoute, request: httpx.Request
) -> httpx.Response:
    """Check one request, and send it in its turn, on asyncio or trio."""
    send, via = route(request.url)
    call, store = _call(who, send, request), who.store
    if isinstance(call, Decision):
        return with_decision(await send(request), call, 0.0)
    above = await handed_down_async(call.method, call.target, request)
    if above is None:
        call.via = via
    elif above.call is None or above.is_new_to(who):
        return await send(request)
    else:  # a transport in between sends it once more: another attempt of the same call
        call, store = above.call, above.store
        await leave_async(call, UNANSWERED, store)
    get = partial(get_robots_async, route, store, call, request.extensions.get("timeout"))
    try:
        await check_async(call, store, get)
        await enter_async(call, store, get)
    except (PoliteError, NoAnswer) as error:
        refusal = native(error)
    else:
        return await _send_in_turn_async(store, call, send, request)
    raise refusal  # out here, where its own causes stay as they are


async def _send_in_turn_async(
    store: Store, call: Call, send: AsyncSend, request: httpx.Request
) -> httpx.Response:
    attempt: Attempt | None = None
    try:
        with Hand(
            call.target,
            call.method,
            store,
            call,
            request=request,
            # Only a body that is made as it goes can make requests meanwhile.
            on_wire=type(request.stream) is not httpx.ByteStream and opens_connections(send),
            paced_by=_TRANSPORT,
        ):
            response = await send(request)
        attempt = answered(response.status_code, response.headers)
        to_its_end = _is_paced_to_its_end(call, response)
        if to_its_end:
            response.stream = AsyncPacedBody(response.stream, call, attempt, store)
        with_decision(response, call.decision, call.waited)
    except BaseException as error:
        await leave_async(call, attempt or failed(error), store)
        raise
    if not to_its_end:
        await leave_async(call, attempt, store)
    return response


async def decide_only_async(
    who: Visitor, route: AsyncRoute, url: str | httpx.URL, user_agent: str | None
) -> Decision:
    """Return what would be decided about a GET that is not sent, on asyncio or trio."""
    probe = _probe(url, user_agent)
    send, via = route(probe.url)
    call = _call(who, send, probe)
    if isinstance(call, Decision):
        return call
    call.via = via
    get = partial(get_robots_async, route, who.store, call, _PROBE_TIMEOUT)
    try:
        await check_async(call, who.store, get)
    except (DisallowedByRobots, RobotsUnreachable) as no:
        return no.decision
    except (PoliteError, NoAnswer) as error:
        refusal = native(error)
    else:
        return call.decision
    raise refusal


def _call(who: Visitor, send: Send | AsyncSend, request: httpx.Request) -> Call | Decision:
    """Return the call of a request, with the User-Agent written that it will be sent with."""
    sent = request.headers.get("User-Agent")
    url = str(request.url)
    ua = who.instead_of(sent, url, chosen=sent != HTTPX_UA)
    if ua is not None:
        request.headers["User-Agent"] = sent = ua
    try:
        if "target" in request.extensions:
            url = asked_url(request, send)
        return who.call(request.method, url, sent, request.headers.get("Host"))
    except UnreadableURL as error:
        raise native(unreadable(error, request.method, url, sent)) from None


def _probe(url: str | httpx.URL, user_agent: str | None) -> httpx.Request:
    return httpx.Request("GET", url, headers={"User-Agent": user_agent or HTTPX_UA})
