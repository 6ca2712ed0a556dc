"""``PoliteTransport`` and ``AsyncPoliteTransport``."""

import ssl
from collections.abc import Callable, Iterable
from types import TracebackType
from typing import Any, Self, TypedDict, TypeVar, Unpack

import httpx

from polite_transport.clients.httpx.beneath import refuse_unfit
from polite_transport.clients.httpx.routes import Routes
from polite_transport.clients.httpx.sending import (
    AsyncSend,
    Send,
    decide_only,
    decide_only_async,
    send_politely,
    send_politely_async,
)
from polite_transport.decision import Decision
from polite_transport.policy import Policy
from polite_transport.stores.base import Store
from polite_transport.visitor import visitor


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


Transport = TypeVar("Transport", bound=httpx.BaseTransport | httpx.AsyncBaseTransport)


def _routes_over(
    transport: Transport, method: str, polite: str, options: TransportOptions
) -> Routes[Transport]:
    """Return the one route over a transport that was given.

    method, polite: as for ``refuse_unfit``.
    Raises TypeError where it is not fit, or where options were given too.
    """
    if options:
        raise TypeError(
            f"{', '.join(options)}: options make a new transport, and one was given; "
            "set them on that one"
        )
    refuse_unfit(transport, method, polite)
    return Routes(transport)


def _new_routes(make: Callable[..., Transport], options: TransportOptions) -> Routes[Transport]:
    """Return the routes that a client with these options would have, the environment's included."""

    def through(proxy: str) -> Transport:
        return make(**{**options, "proxy": proxy})

    by_env = options.get("trust_env", True) and not (options.get("proxy") or options.get("uds"))
    return Routes(make(**options), through if by_env else None)


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

    Raises ValueError for an option of the wrong type, a ua that cannot be sent or does not hold the
    policy's product token, and a POLITE_STORE in the environment that names no store.
    Raises TypeError for a transport together with options, and for one that is of the other kind
    (synchronous, asynchronous) or stands on another.
    Requests raise, beside what httpx raises, DisallowedByRobots, RobotsUnreachable, WaitTooLong,
    StoreUnavailable, InvalidURL; all are httpx.RequestError too. They raise ValueError for a
    User-Agent of their own that does not hold the policy's product token. Each response carries its
    Decision in ``response.extensions["polite"]``.
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
        self.visitor = visitor(ua, policy, store)
        self._routes: Routes[httpx.BaseTransport]
        if transport is None:
            self._routes = _new_routes(httpx.HTTPTransport, options)
        else:
            self._routes = _routes_over(transport, "handle_request", "PoliteTransport", options)

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """Check one request, and send it in its turn."""
        return send_politely(self.visitor, self._route, request)

    def check(self, url: str | httpx.URL, *, user_agent: str | None = None) -> Decision:
        """Return what would be decided about a GET of ``url``, without sending it.

        user_agent: where the transport has no ``ua``; None = httpx's own.
        Raises what httpx raises where robots.txt gets no answer; WaitTooLong.
        """
        return decide_only(self.visitor, self._route, url, user_agent)

    def _route(self, url: httpx.URL) -> tuple[Send, str]:
        transport, via = self._routes.to(url)
        return transport.handle_request, via  # bound late: mocks patch the class meanwhile

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
    """``PoliteTransport`` for ``httpx.AsyncClient``, on asyncio and trio.

    It takes the same options, and raises the same.
    """

    def __init__(
        self,
        transport: httpx.AsyncBaseTransport | None = None,
        *,
        ua: str | None = None,
        policy: Policy | None = None,
        store: Store | None = None,
        **options: Unpack[TransportOptions],
    ) -> None:
        self.visitor = visitor(ua, policy, store)
        self._routes: Routes[httpx.AsyncBaseTransport]
        if transport is None:
            self._routes = _new_routes(httpx.AsyncHTTPTransport, options)
        else:
            self._routes = _routes_over(
                transport, "handle_async_request", "AsyncPoliteTransport", options
            )

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Check one request, and send it in its turn."""
        return await send_politely_async(self.visitor, self._route, request)

    async def check(self, url: str | httpx.URL, *, user_agent: str | None = None) -> Decision:
        """Return what would be decided about a GET of ``url``, without sending it.

        user_agent: where the transport has no ``ua``; None = httpx's own.
        Raises what httpx raises where robots.txt gets no answer; WaitTooLong.
        """
        return await decide_only_async(self.visitor, self._route, url, user_agent)

    def _route(self, url: httpx.URL) -> tuple[AsyncSend, str]:
        transport, via = self._routes.to(url)
        return transport.handle_async_request, via

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
