"""The GET of a robots.txt URL through Scrapy's downloader."""

import time
from typing import Any, Self

from scrapy import Request
from scrapy.exceptions import StopDownload
from scrapy.http import Response
from scrapy.http.request import NO_CALLBACK

from polite_transport.flow import Call
from polite_transport.robots.access import Reply
from polite_transport.robots.body import Body, BrokenBody
from polite_transport.steps import Fetch

# In the request's meta, which stays with it whatever other middlewares make of it.
_KEY = "polite_robots"


class RobotsFetch:
    """One hop to robots.txt, through the page's own proxy.

    Its time counts from when it is really sent: Scrapy's slot may keep it for longer than it may
    take (DOWNLOAD_DELAY).
    """

    def __init__(self, page: Request, call: Call, step: Fetch) -> None:
        self._page = page
        self._step = step
        self._headers = {**step.headers, "User-Agent": call.user_agent}
        self._queued_at = time.monotonic()
        self._sent_at: float | None = None
        self._received = 0
        self._takes_too_long = False
        self._reply: Reply | None = None
        meta = {
            _KEY: self,
            "allow_offsite": True,
            "dont_cache": True,
            "dont_merge_cookies": True,
            "dont_redirect": True,
            "dont_retry": True,
            "download_fail_on_dataloss": False,  # it would take the status from us; see _read
            "download_timeout": step.timeout,  # Scrapy's handlers count it from the slot on
        }
        if "proxy" in page.meta:
            meta["proxy"] = page.meta["proxy"]
        self._request = Request(
            step.target.url,
            headers=self._headers,
            meta=meta,
            priority=1_000,
            callback=NO_CALLBACK,
        )

    @classmethod
    def of(cls, request: Request) -> Self | None:
        """Return what a request belongs to, if it is one for robots.txt."""
        found: Self | None = request.meta.get(_KEY)
        return found

    def put_headers(self, request: Request) -> None:
        """Give it our own headers alone, after all middlewares; request: as it will be sent."""
        # The page's meta["proxy"] has lost its password to this header by the time we see it.
        # Where a middleware has chosen another proxy since, that one must not learn it.
        proxy = self._page.meta.get("proxy")
        asked = self._page if proxy and request.meta.get("proxy") == proxy else request
        password = asked.headers.get("Proxy-Authorization")
        # Default headers and the spider's http_user may be secrets, a rotated User-Agent another's.
        request.headers.clear()
        request.headers.update(self._headers)
        if password is not None:
            request.headers["Proxy-Authorization"] = password

    def note_sending(self, request: Request) -> None:
        """Learn when it was sent, as soon as the headers tell; request: as it was sent."""
        latency: float | None = request.meta.get("download_latency")
        if self._sent_at is None and latency is not None:
            self._sent_at = time.monotonic() - latency

    def bytes_came(self, count: int) -> None:
        """Stop a robots.txt that is longer than is wanted, or takes longer; raises StopDownload."""
        self._received += count
        # Not every handler bounds the whole of a body: to some, the time is for each read.
        self._takes_too_long = self._elapsed > self._step.timeout and self._sent_at is not None
        if self._takes_too_long or self._received > self._step.max_bytes:
            raise StopDownload(fail=False)

    @property
    def _elapsed(self) -> float:
        started = self._queued_at if self._sent_at is None else self._sent_at
        return time.monotonic() - started

    async def get(self, engine: Any) -> Reply:
        """Make the request; engine: Scrapy's."""
        try:
            response: Response = await engine.download_async(self._request)
        except BaseException as error:
            self._leave_queue(engine.downloader)
            if not isinstance(error, Exception):
                raise
            # Whatever it is, there was no answer.
            return Reply(None, error=error, elapsed=self._elapsed)
        return self._reply or self._read(response)  # the latter where no middleware was called

    def take(self, request: Request, response: Response) -> Response:
        """Read the response as it came, and leave nothing for other middlewares to decode.

        Scrapy's own undoes what a broken compression left, as if it were whole.
        request: as it was sent.
        """
        self.note_sending(request)
        self._reply = self._read(response)
        headers = {
            name: values
            for name, values in response.headers.items()
            if name.lower() != b"content-encoding"
        }
        return response.replace(headers=headers, body=b"")

    def _leave_queue(self, downloader: Any) -> None:
        """Give up for good: a slot keeps what nobody waits for any more, and sends it in time.

        The slots are not public; a test fails where a new release changes them.
        """
        for slot in getattr(downloader, "slots", {}).values():
            for queued in [each for each in slot.queue if self.of(each[0]) is self]:
                slot.queue.remove(queued)

    def _read(self, response: Response) -> Reply:
        headers = {
            name.decode("latin-1").lower(): b",".join(values).decode("latin-1")
            for name, values in response.headers.items()
        }
        elapsed = self._elapsed
        if self._takes_too_long:
            return Reply(response.status, headers, late=True, elapsed=elapsed)
        if "dataloss" in response.flags:
            cut = "its body ends early"
            return Reply(response.status, headers, broken=cut, elapsed=elapsed)
        try:
            body = Body(self._step.max_bytes, headers.get("content-encoding"))
            body.feed(response.body)
            return Reply(response.status, headers, body.content(), elapsed=elapsed)
        except BrokenBody as broken:
            return Reply(response.status, headers, broken=str(broken), elapsed=elapsed)
