"""Scrapy (2.14 or newer): one line in ``ADDONS``.

::

    ADDONS = {"polite_transport.clients.scrapy.PoliteAddon": 0}

A downloader middleware checks each request, retries and redirects included, and lets it on to
Scrapy's own slots in its turn. The slots keep their own delays beside it: the larger counts.

Scrapy's scheduler sets the limits. A request that waits for its turn counts among
CONCURRENT_REQUESTS, as one that waits in a slot does. A response's status is known only with its
body, so that a Retry-After counts from there.

Settings: POLITE_UA (str), POLITE_POLICY (a Policy), POLITE_STORE (a Store, shared by a fleet).
"""

import asyncio
import logging
import time
from functools import partial
from typing import Any, Self
from weakref import WeakKeyDictionary

import anyio
from scrapy import Request, signals
from scrapy.crawler import Crawler
from scrapy.exceptions import IgnoreRequest, NotConfigured, StopDownload
from scrapy.http import Response
from scrapy.http.request import NO_CALLBACK
from scrapy.settings import BaseSettings
from scrapy.utils.asyncio import is_asyncio_available

from polite_transport import errors
from polite_transport.decision import Decision
from polite_transport.drive import run_async
from polite_transport.errors import PoliteError
from polite_transport.flow import (
    NOT_CONNECTED,
    UNANSWERED,
    Attempt,
    Call,
    NoAnswer,
    heed,
)
from polite_transport.robots.access import Reply
from polite_transport.robots.body import Body, BrokenBody
from polite_transport.sending.native import Flavours, flavoured
from polite_transport.sending.passage import check_async, enter_async, leave_async
from polite_transport.steps import Fetch
from polite_transport.stores.base import Seat
from polite_transport.url import InvalidURL as UnreadableURL
from polite_transport.visitor import Visitor, unreadable, visitor, way

log = logging.getLogger("polite_transport")

# Beneath the HTTP cache (900), so that a hit takes no turn; nothing stands between this and the
# downloader that would send a request again.
PRIORITY = 950
_ROBOTS = "polite_robots"  # in the meta of a fetch of robots.txt: how many bytes are wanted


class DisallowedByRobots(errors.DisallowedByRobots, IgnoreRequest):
    """``polite_transport.DisallowedByRobots`` that Scrapy drops as an IgnoreRequest."""


class RobotsUnreachable(errors.RobotsUnreachable, IgnoreRequest):
    """``polite_transport.RobotsUnreachable`` that Scrapy drops as an IgnoreRequest."""


class WaitTooLong(errors.WaitTooLong, IgnoreRequest):
    """``polite_transport.WaitTooLong`` that Scrapy drops as an IgnoreRequest."""


class StoreUnavailable(errors.StoreUnavailable, IgnoreRequest):
    """``polite_transport.StoreUnavailable`` that Scrapy drops as an IgnoreRequest."""


class InvalidURL(errors.InvalidURL, IgnoreRequest):
    """``polite_transport.InvalidURL`` that Scrapy drops as an IgnoreRequest."""


_FLAVOURS: Flavours = {
    errors.DisallowedByRobots: DisallowedByRobots,
    errors.RobotsUnreachable: RobotsUnreachable,
    errors.WaitTooLong: WaitTooLong,
    errors.StoreUnavailable: StoreUnavailable,
    errors.InvalidURL: InvalidURL,
}


class PoliteAddon:
    """Puts ``PoliteMiddleware`` in the place of Scrapy's own handling of robots.txt."""

    def update_settings(self, settings: BaseSettings) -> None:
        """See Scrapy's add-ons."""
        middlewares = settings["DOWNLOADER_MIDDLEWARES"]
        # Scrapy's own lets simultaneous first requests through (2.14 to 2.19), and keeps no delay.
        middlewares["scrapy.downloadermiddlewares.robotstxt.RobotsTxtMiddleware"] = None
        middlewares[PoliteMiddleware] = PRIORITY


class PoliteMiddleware:
    """Checks every request, and lets it on in its turn.

    The Decision stands in ``response.meta["polite"]``; refusals are counted in Scrapy's stats.
    """

    def __init__(self, crawler: Crawler, who: Visitor) -> None:
        self._crawler = crawler
        self._visitor = who
        # By the request itself: its meta is copied to retries, and written to disk queues.
        self._calls: WeakKeyDictionary[Request, Call] = WeakKeyDictionary()
        self._arrived: WeakKeyDictionary[Request, Seat] = WeakKeyDictionary()
        self._leaving: dict[Request, asyncio.Task[None]] = {}
        self._received: WeakKeyDictionary[Request, int] = WeakKeyDictionary()

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        """Make it from the settings; raises NotConfigured without Scrapy's asyncio reactor."""
        if not is_asyncio_available():
            raise NotConfigured("polite_transport needs Scrapy's asyncio reactor, its default")
        settings = crawler.settings
        who = visitor(
            settings.get("POLITE_UA"), settings.get("POLITE_POLICY"), settings.get("POLITE_STORE")
        )
        middleware = cls(crawler, who)
        crawler.signals.connect(middleware.spider_opened, signal=signals.spider_opened)
        crawler.signals.connect(middleware.spider_closed, signal=signals.spider_closed)
        crawler.signals.connect(middleware.headers_received, signal=signals.headers_received)
        crawler.signals.connect(middleware.bytes_received, signal=signals.bytes_received)
        return middleware

    def spider_opened(self) -> None:
        """Stop Twisted from re-sending by itself on a dropped connection: Scrapy's retries do.

        The pool is not public; a test fails where a new release moves it.
        """
        engine: Any = self._crawler.engine
        for scheme in ("http", "https"):
            handler = engine.downloader.handlers._get_handler(scheme)  # noqa: SLF001
            pool: Any = getattr(handler, "_pool", None)
            if hasattr(pool, "retryAutomatically"):
                pool.retryAutomatically = False

    async def process_request(self, request: Request) -> None:
        """Check a request, and wait for its turn."""
        if _ROBOTS in request.meta:
            return
        who = self._visitor
        if who.user_agent is not None:
            request.headers["User-Agent"] = who.user_agent
        sent = request.headers.get("User-Agent")
        try:
            call = who.call(request.method, request.url, sent)
        except UnreadableURL as error:
            self._count("polite/refused/InvalidURL")
            refused = unreadable(error, request.method, request.url, sent)
            raise flavoured(refused, _FLAVOURS) from None
        if isinstance(call, Decision):
            request.meta["polite"] = call
            return
        # Scrapy looks at no certificate, unless its settings name another context factory.
        is_tls = call.target.origin.startswith("https:")
        call.via = way(verified=not is_tls, proxy=request.meta.get("proxy"))
        get = partial(self._get_robots, request, call)
        try:
            await check_async(call, who.store, get)
            await enter_async(call, who.store, get)
        except PoliteError as error:
            self._count(f"polite/refused/{type(error).__name__}")
            refusal: Exception = flavoured(error, _FLAVOURS)
        except NoAnswer as error:
            refusal = error.error
            refusal.add_note(error.note)
        else:
            self._calls[request] = call
            request.meta["polite"] = call.decision
            self._count("polite/waited_seconds", call.waited)
            return
        raise refusal

    def headers_received(self, request: Request) -> None:
        """Give the turn back: the request has arrived."""
        call = self._calls.get(request)
        if call is not None and call.seat is not None:
            self._arrived[request] = call.seat
            # Scrapy waits for no handler of this signal, and a store may take its time.
            leave = leave_async(call, NOT_CONNECTED, self._visitor.store)
            leaving = asyncio.get_running_loop().create_task(leave)
            self._leaving[request] = leaving
            leaving.add_done_callback(lambda _: self._leaving.pop(request))

    async def _left(self, request: Request) -> Call | None:
        """Return a request's call when its turn is given back, where its headers came."""
        leaving = self._leaving.get(request)
        if leaving is not None:
            await asyncio.shield(leaving)
        return self._calls.pop(request, None)

    async def spider_closed(self) -> None:
        """Give the turns back whose headers came last, before the event loop ends."""
        await asyncio.gather(*self._leaving.values())

    async def process_response(self, request: Request, response: Response) -> Response:
        """Do what the response asks of its host."""
        call = await self._left(request)
        if call is not None:
            attempt = Attempt(
                response.status, _text(response, "Retry-After"), _text(response, "Date")
            )
            seat = self._arrived.pop(request, None)
            if seat is None:
                await leave_async(call, attempt, self._visitor.store)
            else:
                await run_async(heed(seat, attempt), self._visitor.store)
        return response

    async def process_exception(self, request: Request, exception: Exception) -> None:  # noqa: ARG002
        """Give the turn of a failed attempt back."""
        call = await self._left(request)
        self._arrived.pop(request, None)
        if call is not None:
            await leave_async(call, UNANSWERED, self._visitor.store)

    def bytes_received(self, data: bytes, request: Request) -> None:
        """Stop a robots.txt that is longer than is wanted; raises StopDownload."""
        wanted = request.meta.get(_ROBOTS)
        if wanted is not None:
            self._received[request] = self._received.get(request, 0) + len(data)
            if self._received[request] > wanted:
                raise StopDownload(fail=False)

    def _count(self, name: str, by: float = 1) -> None:
        stats: Any = self._crawler.stats
        if stats is not None and by:
            stats.inc_value(name, by)

    async def _get_robots(self, page: Request, call: Call, step: Fetch) -> Reply:
        """GET one robots.txt URL through Scrapy's downloader, and the page's own proxy."""
        started = time.monotonic()
        meta = {
            _ROBOTS: step.max_bytes,
            "allow_offsite": True,
            "dont_cache": True,
            "dont_merge_cookies": True,
            "dont_redirect": True,
            "dont_retry": True,
            "download_timeout": step.timeout,
        }
        if "proxy" in page.meta:
            meta["proxy"] = page.meta["proxy"]
        request = Request(
            step.target.url,
            headers={**step.headers, "User-Agent": call.user_agent},
            meta=meta,
            priority=1_000,
            callback=NO_CALLBACK,
        )
        engine: Any = self._crawler.engine
        self._count("polite/robots_requests")
        response: Response | None = None
        failure: Exception = TimeoutError(f"no answer within {step.timeout:g} s")
        with anyio.move_on_after(step.timeout):
            try:
                response = await engine.download_async(request)
            except Exception as error:  # noqa: BLE001 - whatever it is, there was no answer
                failure = error
        elapsed = time.monotonic() - started
        if response is None:
            return Reply(None, error=failure, elapsed=elapsed)
        headers = {
            name.decode("latin-1").lower(): b",".join(values).decode("latin-1")
            for name, values in response.headers.items()
        }
        try:
            body = Body(step.max_bytes, headers.get("content-encoding"))
            body.feed(response.body)
            return Reply(response.status, headers, body.content(), elapsed=elapsed)
        except BrokenBody as broken:
            return Reply(response.status, headers, broken=str(broken), elapsed=elapsed)


def _text(response: Response, header: str) -> str | None:
    value = response.headers.get(header)
    return None if value is None else value.decode("latin-1")
