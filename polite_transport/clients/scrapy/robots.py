"""The GET of a robots.txt URL through Scrapy's downloader."""

import time
from typing import Any, Self

import anyio
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
    """One hop to robots.txt, through the page's own proxy."""

    def __init__(self, page: Request, call: Call, step: Fetch) -> None:
        self._step = step
        self._started = time.monotonic()
        self._received = 0
        meta = {
            _KEY: self,
            "allow_offsite": True,
            "dont_cache": True,
            "dont_merge_cookies": True,
            "dont_redirect": True,
            "dont_retry": True,
            "download_timeout": step.timeout,
        }
        if "proxy" in page.meta:
            meta["proxy"] = page.meta["proxy"]
        self._request = Request(
            step.target.url,
            headers={**step.headers, "User-Agent": call.user_agent},
            meta=meta,
            priority=1_000,
            callback=NO_CALLBACK,
        )

    @classmethod
    def of(cls, request: Request) -> Self | None:
        """Return what a request belongs to, if it is one for robots.txt."""
        found: Self | None = request.meta.get(_KEY)
        return found

    def bytes_came(self, count: int) -> None:
        """Stop a robots.txt that is longer than is wanted; raises StopDownload."""
        self._received += count
        if self._received > self._step.max_bytes:
            raise StopDownload(fail=False)

    async def get(self, engine: Any) -> Reply:
        """Make the request; engine: Scrapy's."""
        step = self._step
        response: Response | None = None
        failure: Exception = TimeoutError(f"no answer within {step.timeout:g} s")
        with anyio.move_on_after(step.timeout):
            try:
                response = await engine.download_async(self._request)
            except Exception as error:  # noqa: BLE001 - whatever it is, there was no answer
                failure = error
        elapsed = time.monotonic() - self._started
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
