"""aiohttp (3.12 or newer): checked and paced in a client middleware.

A middleware sees every redirect hop and every re-send on a dropped connection. What it waits
counts against ``ClientTimeout(total=…)``, which aiohttp sets to 300 s by itself.

Every touch of what aiohttp does not call public stands here: ``ClientSession._request``,
``ClientSession._middlewares`` and ``ClientSession._retry_connection``, and ``TCPConnector._ssl``.
"""

import ssl
import time
from collections.abc import Awaitable, Callable
from dataclasses import replace
from functools import partial
from typing import Any

import aiohttp

from polite_transport import errors
from polite_transport.decision import Decision
from polite_transport.errors import PoliteError
from polite_transport.flow import (
    NOT_CONNECTED,
    UNANSWERED,
    Call,
    NoAnswer,
    answered,
)
from polite_transport.robots.access import Reply
from polite_transport.robots.body import Body, BrokenBody
from polite_transport.sending.hand import Hand, handed_down_async
from polite_transport.sending.native import Flavours, flavoured, native_error
from polite_transport.sending.passage import check_async, enter_async, leave_async
from polite_transport.steps import Fetch
from polite_transport.url import InvalidURL as UnreadableURL
from polite_transport.visitor import Visitor, unreadable, verifies, way

Handler = Callable[[aiohttp.ClientRequest], Awaitable[aiohttp.ClientResponse]]


class DisallowedByRobots(errors.DisallowedByRobots, aiohttp.ClientError):
    """``polite_transport.DisallowedByRobots`` that ``except aiohttp.ClientError`` sees."""


class RobotsUnreachable(errors.RobotsUnreachable, aiohttp.ClientError):
    """``polite_transport.RobotsUnreachable`` that ``except aiohttp.ClientError`` sees."""


class WaitTooLong(errors.WaitTooLong, aiohttp.ClientError):
    """``polite_transport.WaitTooLong`` that ``except aiohttp.ClientError`` sees."""


class StoreUnavailable(errors.StoreUnavailable, aiohttp.ClientError):
    """``polite_transport.StoreUnavailable`` that ``except aiohttp.ClientError`` sees."""


class InvalidURL(errors.InvalidURL, aiohttp.InvalidURL):
    """``polite_transport.InvalidURL`` that ``except aiohttp.ClientError`` sees."""

    @property
    def url(self) -> str:
        """The URL, without userinfo and fragment."""
        return self.decision.url


_FLAVOURS: Flavours = {
    errors.DisallowedByRobots: DisallowedByRobots,
    errors.RobotsUnreachable: RobotsUnreachable,
    errors.WaitTooLong: WaitTooLong,
    errors.StoreUnavailable: StoreUnavailable,
    errors.InvalidURL: InvalidURL,
}


_NOT_TCP = (aiohttp.UnixConnector, aiohttp.NamedPipeConnector)


def with_middleware(who: Visitor, session: Any, options: dict[str, Any]) -> dict[str, Any]:
    """Return the options of one request of a session with ours as its innermost middleware.

    They come back as they are where the session goes to a unix socket or a named pipe.
    """
    if isinstance(session.connector, _NOT_TCP):
        return options
    if not hasattr(session, "_middlewares"):
        raise RuntimeError(
            f"polite_transport needs aiohttp 3.12 or newer, and this is {aiohttp.__version__}: "
            "nothing is sent, since nothing could be checked"
        )
    script = options.get("middlewares")
    if script is None:
        script = session._middlewares  # noqa: SLF001 - see the module
    return {**options, "middlewares": (*script, _Middleware(who))}


class _Middleware:
    """Ours, for one call of a session and all its hops."""

    def __init__(self, who: Visitor) -> None:
        self._who = who
        self._failed: tuple[aiohttp.ClientRequest, Exception] | None = None

    async def __call__(
        self, request: aiohttp.ClientRequest, send: Handler
    ) -> aiohttp.ClientResponse:
        """Check one hop and send it in its turn."""
        failed, self._failed = self._failed, None
        if failed is not None and failed[0] is not request and failed[0].url == request.url:
            # A robots.txt that got no answer looks to aiohttp like a page on a connection that was
            # dropped, and it makes the same request anew. It is told the same anew.
            raise failed[1]
        try:
            return await _send_politely(self._who, request, send)
        except _NoRobots as no:
            self._failed = (request, no.error)
            failure = no.error
        raise failure


class _NoRobots(Exception):
    """robots.txt got no answer; error: what the script is to see of it."""

    def __init__(self, error: Exception) -> None:
        super().__init__(error)
        self.error = error


async def _send_politely(
    who: Visitor, request: aiohttp.ClientRequest, send: Handler
) -> aiohttp.ClientResponse:
    call = _call(who, request)
    if isinstance(call, Decision):
        return _with_decision(await send(request), call)
    above = await handed_down_async(call.method, call.target, request)
    if above is not None:
        above.on_wire = True
        return await send(request)
    call.via = _way(request)
    get = partial(_get_robots, who, request, call)
    try:
        await check_async(call, who.store, get)
        await enter_async(call, who.store, get)
    except NoAnswer as error:
        refusal: Exception = _NoRobots(
            native_error(error, aiohttp.ClientError, aiohttp.ClientConnectionError)
        )
    except PoliteError as error:
        refusal = flavoured(error, _FLAVOURS)
    else:
        return await _send_in_turn(who, call, send, request)
    raise refusal


async def _send_in_turn(
    who: Visitor, call: Call, send: Handler, request: aiohttp.ClientRequest
) -> aiohttp.ClientResponse:
    attempt = UNANSWERED
    try:
        with Hand(
            call.target,
            call.method,
            who.store,
            call,
            request=request,
            on_wire=True,
            paced_by=_LAYER,
        ):
            response = await send(request)
        attempt = answered(response.status, response.headers)
        if call.policy.pace_from == "body":
            await response.read()  # the response keeps it; aiohttp tells nobody when a body ends
    except aiohttp.ClientConnectorError:
        attempt = NOT_CONNECTED
        raise
    finally:
        await leave_async(call, attempt, who.store)
    return _with_decision(response, call.decision)


_LAYER = object()


def _call(who: Visitor, request: aiohttp.ClientRequest) -> Call | Decision:
    """Return the call of a hop, with the User-Agent written that it will be sent with."""
    sent = request.headers.get("User-Agent")
    method, url = request.method, str(request.url)
    ua = who.instead_of(sent, url, chosen=sent is not None and "aiohttp/" not in sent)
    if ua is not None:
        request.headers["User-Agent"] = sent = ua
    try:
        return who.call(method, url, sent, request.headers.get("Host"))
    except UnreadableURL as error:
        raise flavoured(unreadable(error, method, url, sent), _FLAVOURS) from None


def _way(request: aiohttp.ClientRequest) -> str:
    """Name the way of a request, as ``Call.via`` has it."""
    settings: Any = request
    connector = settings.session.connector
    tls = settings.ssl
    if tls is True:  # aiohttp's default: the connector's own counts
        tls = getattr(connector, "_ssl", True)
    verified = verifies(tls) if isinstance(tls, ssl.SSLContext) else tls is True
    proxy = None if settings.proxy is None else str(settings.proxy)
    # A connector of someone else's may go through SOCKS.
    known = connector.__class__ is aiohttp.TCPConnector
    return way(verified=verified, proxy=proxy, stranger=None if known else connector)


def _with_decision(response: aiohttp.ClientResponse, decision: Decision) -> aiohttp.ClientResponse:
    polite: Any = response
    polite.polite = decision
    return response


async def _get_robots(who: Visitor, page: aiohttp.ClientRequest, call: Call, step: Fetch) -> Reply:
    """GET one robots.txt URL through the page's own connector, proxy and TLS settings.

    In a session of its own: the script's cookies and headers stay out of it.
    """
    started = time.monotonic()
    headers = dict(step.headers)
    if call.user_agent:
        headers["User-Agent"] = call.user_agent
    settings: Any = page
    proxy, credentials = settings.proxy, settings.proxy_auth
    if proxy is not None and credentials is not None:
        # As a part of its URL: a proxy that misses them would answer in the site's place.
        proxy = proxy.with_user(credentials.login).with_password(credentials.password)
    own = aiohttp.ClientSession(
        connector=settings.session.connector,
        connector_owner=False,
        cookie_jar=aiohttp.DummyCookieJar(),
        auto_decompress=False,
        skip_auto_headers=("User-Agent",),
        timeout=aiohttp.ClientTimeout(total=step.timeout),
    )
    private: Any = own
    private._retry_connection = False  # noqa: SLF001 - what is sent again takes a turn of its own
    get = own.get(
        step.target.url,
        allow_redirects=False,
        headers=headers,
        proxy=proxy,
        proxy_headers=settings.proxy_headers,
        ssl=settings.ssl,
    )
    error: Exception
    with Hand(step.target, "GET", who.store, None):
        try:
            async with own, get as response:
                return replace(await _read(response, step), elapsed=time.monotonic() - started)
        except aiohttp.ClientError as failed:
            error = failed
        except TimeoutError:
            error = aiohttp.ServerTimeoutError(f"no answer within {step.timeout:g} s")
    return Reply(None, error=error, elapsed=time.monotonic() - started)


async def _read(response: aiohttp.ClientResponse, step: Fetch) -> Reply:
    found = {name.lower(): value for name, value in response.headers.items()}
    content, broken, late = b"", None, False
    try:
        body = Body(step.max_bytes, response.headers.get("Content-Encoding"))
        async for chunk in response.content.iter_any():
            if not body.feed(chunk):
                break
        content = body.content()
    except BrokenBody as error:
        broken = str(error)
    except TimeoutError:
        late = True
    except aiohttp.ClientError as error:
        broken = f"its body ends early ({error})"
    return Reply(response.status, found, content, broken=broken, late=late)
