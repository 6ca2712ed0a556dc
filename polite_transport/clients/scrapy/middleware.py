"""The downloader middleware: every request is checked, and let on in its turn."""

import asyncio
from typing import Any, Self
from weakref import WeakKeyDictionary

from scrapy import Request, signals
from scrapy.crawler import Crawler
from scrapy.exceptions import NotConfigured
from scrapy.http import Response
from scrapy.utils.asyncio import is_asyncio_available

from polite_transport.clients.scrapy.errors import native
from polite_transport.clients.scrapy.robots import RobotsFetch
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
from polite_transport.sending.passage import check_async, enter_async, leave_async
from polite_transport.steps import Fetch
from polite_transport.stores.base import Seat
from polite_transport.url import InvalidURL as UnreadableURL
from polite_transport.visitor import Visitor, unreadable, visitor, way

_LIBRARY_UA = "Scrapy/"


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
        fetch = RobotsFetch.of(request)
        if fetch is not None:
            fetch.put_headers(request)
            return
        who = self._visitor
        header = request.headers.get("User-Agent")
        sent = None if header is None else header.decode("latin-1")
        chosen = sent is not None and not sent.startswith(_LIBRARY_UA)
        ua = who.instead_of(sent, request.url, chosen=chosen)
        if ua is not None:
            request.headers["User-Agent"] = sent = ua
        try:
            call = who.call(request.method, request.url, sent, request.headers.get("Host"))
        except UnreadableURL as error:
            self._count("polite/refused/InvalidURL")
            refused = unreadable(error, request.method, request.url, sent)
            raise native(refused) from None
        if isinstance(call, Decision):
            request.meta["polite"] = call
            return
        # Scrapy looks at no certificate, unless its settings name another context factory.
        is_tls = call.target.origin.startswith("https:")
        call.via = way(verified=not is_tls, proxy=request.meta.get("proxy"))

        async def get(step: Fetch) -> Reply:
            self._count("polite/robots_requests")
            return await RobotsFetch(request, call, step).get(self._crawler.engine)

        try:
            await check_async(call, who.store, get)
            await enter_async(call, who.store, get)
        except PoliteError as error:
            self._count(f"polite/refused/{type(error).__name__}")
            refusal = native(error)
        except NoAnswer as error:
            refusal = native(error)
        else:
            self._calls[request] = call
            request.meta["polite"] = call.decision
            self._count("polite/waited_seconds", call.waited)
            return
        raise refusal

    def headers_received(self, request: Request) -> None:
        """Give the turn back: the request has arrived."""
        fetch = RobotsFetch.of(request)
        if fetch is not None:
            fetch.note_sending(request)
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
        """Do what the response asks of its host; a robots.txt goes to whom it was fetched for."""
        fetch = RobotsFetch.of(request)
        if fetch is not None:
            return fetch.take(request, response)
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
        fetch = RobotsFetch.of(request)
        if fetch is not None:
            fetch.bytes_came(len(data))

    def _count(self, name: str, by: float = 1) -> None:
        stats: Any = self._crawler.stats
        if stats is not None and by:
            stats.inc_value(name, by)


def _text(response: Response, header: str) -> str | None:
    value = response.headers.get(header)
    return None if value is None else value.decode("latin-1")
