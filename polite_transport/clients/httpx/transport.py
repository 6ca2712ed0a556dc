"""Transports of httpx that check what they send, and pace it.

A transport sees every redirect hop and every leg of an authentication, so that it is both the
client layer and the wire layer: a request is checked and takes its turn in the same place.
"""

import ssl
from collections.abc import Iterable
from functools import partial
from types import TracebackType
from typing import Any, Self, TypedDict, Unpack

import httpx

from polite_transport.clients.httpx.errors import failed, native
from polite_transport.clients.httpx.response import (
    AsyncPacedBody,
    PacedBody,
    answered,
    with_decision,
)
from polite_transport.clients.httpx.robots import get_robots, get_robots_async
from polite_transport.clients.httpx.routes import Routes
from polite_transport.decision import Decision
from polite_transport.drive import run, run_async
from polite_transport.errors import DisallowedByRobots, PoliteError, RobotsUnreachable
from polite_transport.flow import Call, NoAnswer, check, enter, leave
from polite_transport.in_hand import IN_HAND, Hand, give_back_outer_turn, say_replaced
from polite_transport.policy import Policy
from polite_transport.stores.base import Store
from polite_transport.visitor import Visitor, visitor


class TransportOptions(TypedDict, total=False):
    """What ``httpx.HTTPTransport`` takes."""

    verify: ssl.SSLContext | str | bool
    cert: Any
    trust_env: bool
    http1: bool
    http2: bool
    limits: httpx.Limits
    proxy: httpx.Proxy | httpx.URL | str | None
    uds: str | None
    local_address: str | None
    retries: int
    socket_options: Iterable[Any] | None


_HTTPX_UA = f"python-httpx/{httpx.__version__}"
_PROBE_TIMEOUT = httpx.Timeout(5.0).as_dict()


def _refuse_both(options: TransportOptions) -> None:
    if options:
        raise TypeError(
            f"{', '.join(options)}: options make a new transport, and one was given; "
            "set them on that one"
        )


def _with_proxy(options: TransportOptions, proxy: str) -> TransportOptions:
    proxied = options.copy()
    proxied["proxy"] = proxy
    return proxied


def _trusts_env(options: TransportOptions) -> bool:
    """Whether a client with these options would go through the environment's proxies."""
    return options.get("trust_env", True) and not (options.get("proxy") or options.get("uds"))


def _call(who: Visitor, request: httpx.Request) -> Call | Decision:
    """Return the call of a request, with the User-Agent written that it will be sent with."""
    sent = request.headers.get("User-Agent")
    ua = who.user_agent
    if ua is not None and sent != ua:
        if sent not in (None, _HTTPX_UA):
            say_replaced(sent, ua)
        request.headers["User-Agent"] = sent = ua
    return who.call(request.method, str(request.url), sent)


def _probe(url: str | httpx.URL, user_agent: str | None) -> httpx.Request:
    return httpx.Request("GET", url, headers={"User-Agent": user_agent or _HTTPX_UA})


class PoliteTransport(httpx.BaseTransport):
    """An httpx transport that keeps robots.txt and each host's Crawl-delay.

    transport: the transport to wrap; None = an ``httpx.HTTPTransport`` made of the options, and
        one for each proxy of the environment unless trust_env is off.
    ua: the User-Agent to send, such as ``"MyBot/1.0 (+https://example.org/bot)"``, whatever the
        script sets; None = what each request carries.
    policy: how polite to be.
    store: where turns and robots.txt copies live; None = this process's own.
    options: of ``httpx.HTTPTransport``: verify, cert, trust_env, http1, http2, limits, proxy, uds,
        local_address, retries, socket_options. ``httpx.Client(transport=…)`` ignores its own.

    Requests raise, beside what httpx raises, DisallowedByRobots, RobotsUnreachable, WaitTooLong,
    StoreUnavailable; all are httpx.RequestError too. Each response carries its Decision in
    ``response.extensions["polite"]``.
    """

    def __init__(
        self,
        transport: httpx.BaseTransport | None = None,
        *,
        ua: str | None = None,
        policy: Policy | None = None,
        store: Store | None = None,
        **options: Unpack[TransportOptions],
    ) -> None:
        self._visitor = visitor(ua, policy, store)
        if transport is not None:
            _refuse_both(options)
            self._routes = Routes(transport)
        else:

            def through(proxy: str) -> httpx.BaseTransport:
                return httpx.HTTPTransport(**_with_proxy(options, proxy))

            direct = httpx.HTTPTransport(**options)
            self._routes = Routes[httpx.BaseTransport](
                direct, through if _trusts_env(options) else None
            )

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """Check one request, and send it in its turn."""
        transport = self._routes.to(request.url)
        call = _call(self._visitor, request)
        if isinstance(call, Decision):
            return with_decision(transport.handle_request(request), call, 0.0)
        hand = IN_HAND.get()
        if hand is not None and hand.carries(call.method, call.target):
            return transport.handle_request(request)
        store = self._visitor.store
        get = partial(get_robots, self._routes, store, call, request.extensions.get("timeout"))
        try:
            if hand is not None:
                give_back_outer_turn(call.target.host)
            run(check(call), store, get)
            run(enter(call), store, get)
        except (PoliteError, NoAnswer) as error:
            raise native(error) from None
        try:
            with Hand(call.target, call.method, store, call):
                response = transport.handle_request(request)
        except BaseException as error:
            run(leave(call, failed(error)), store)
            raise
        attempt = answered(response)
        if call.policy.pace_from == "body":
            response.stream = PacedBody(response.stream, call, attempt, store)
        else:
            run(leave(call, attempt), store)
        return with_decision(response, call.decision, call.waited)

    def check(self, url: str | httpx.URL, *, user_agent: str | None = None) -> Decision:
        """Return what would be decided about a GET of ``url``, without sending it.

        user_agent: where the transport has no ``ua``; None = httpx's own.
        Raises what httpx raises where robots.txt gets no answer; WaitTooLong.
        """
        call = _call(self._visitor, _probe(url, user_agent))
        if isinstance(call, Decision):
            return call
        try:
            store = self._visitor.store
            run(check(call), store, partial(get_robots, self._routes, store, call, _PROBE_TIMEOUT))
        except (DisallowedByRobots, RobotsUnreachable) as refusal:
            return refusal.decision
        except (PoliteError, NoAnswer) as error:
            raise native(error) from None
        return call.decision

    def __enter__(self) -> Self:
        for transport in self._routes:
            transport.__enter__()
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None = None,
        exc_value: BaseException | None = None,
        traceback: TracebackType | None = None,
    ) -> None:
        for transport in self._routes:
            transport.__exit__(exc_type, exc_value, traceback)

    def close(self) -> None:
        """Close the transports beneath."""
        for transport in self._routes:
            transport.close()


class AsyncPoliteTransport(httpx.AsyncBaseTransport):
    """``PoliteTransport`` for ``httpx.AsyncClient``, on asyncio and trio; the same options."""

    def __init__(
        self,
        transport: httpx.AsyncBaseTransport | None = None,
        *,
        ua: str | None = None,
        policy: Policy | None = None,
        store: Store | None = None,
        **options: Unpack[TransportOptions],
    ) -> None:
        self._visitor = visitor(ua, policy, store)
        if transport is not None:
            _refuse_both(options)
            self._routes = Routes(transport)
        else:

            def through(proxy: str) -> httpx.AsyncBaseTransport:
                return httpx.AsyncHTTPTransport(**_with_proxy(options, proxy))

            direct = httpx.AsyncHTTPTransport(**options)
            self._routes = Routes[httpx.AsyncBaseTransport](
                direct, through if _trusts_env(options) else None
            )

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Check one request, and send it in its turn."""
        transport = self._routes.to(request.url)
        call = _call(self._visitor, request)
        if isinstance(call, Decision):
            return with_decision(await transport.handle_async_request(request), call, 0.0)
        hand = IN_HAND.get()
        if hand is not None and hand.carries(call.method, call.target):
            return await transport.handle_async_request(request)
        store = self._visitor.store
        get = partial(
            get_robots_async, self._routes, store, call, request.extensions.get("timeout")
        )
        try:
            if hand is not None:
                give_back_outer_turn(call.target.host)
            await run_async(check(call), store, get)
            await run_async(enter(call), store, get)
        except (PoliteError, NoAnswer) as error:
            raise native(error) from None
        try:
            with Hand(call.target, call.method, store, call):
                response = await transport.handle_async_request(request)
        except BaseException as error:
            await run_async(leave(call, failed(error)), store)
            raise
        attempt = answered(response)
        if call.policy.pace_from == "body":
            response.stream = AsyncPacedBody(response.stream, call, attempt, store)
        else:
            await run_async(leave(call, attempt), store)
        return with_decision(response, call.decision, call.waited)

    async def check(self, url: str | httpx.URL, *, user_agent: str | None = None) -> Decision:
        """Return what would be decided about a GET of ``url``, without sending it.

        user_agent: where the transport has no ``ua``; None = httpx's own.
        Raises what httpx raises where robots.txt gets no answer; WaitTooLong.
        """
        call = _call(self._visitor, _probe(url, user_agent))
        if isinstance(call, Decision):
            return call
        try:
            store = self._visitor.store
            get = partial(get_robots_async, self._routes, store, call, _PROBE_TIMEOUT)
            await run_async(check(call), store, get)
        except (DisallowedByRobots, RobotsUnreachable) as refusal:
            return refusal.decision
        except (PoliteError, NoAnswer) as error:
            raise native(error) from None
        return call.decision

    async def __aenter__(self) -> Self:
        for transport in self._routes:
            await transport.__aenter__()
        return self

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None = None,
        exc_value: BaseException | None = None,
        traceback: TracebackType | None = None,
    ) -> None:
        for transport in self._routes:
            await transport.__aexit__(exc_type, exc_value, traceback)

    async def aclose(self) -> None:
        """Close the transports beneath."""
        for transport in self._routes:
            await transport.aclose()
