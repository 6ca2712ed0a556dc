"""Fetching robots.txt through a transport of httpx."""

import time
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Any

import anyio
import httpx

from polite_transport.clients.httpx.response import async_stream, sync_stream
from polite_transport.flow import Call
from polite_transport.robots.access import Reply
from polite_transport.robots.body import Body, BrokenBody
from polite_transport.sending.fetching import Fetching
from polite_transport.sending.hand import Hand
from polite_transport.steps import Fetch
from polite_transport.stores.base import Store

Timeouts = Mapping[str, float | None]  # as httpx keeps them in a request's extensions


def get_robots(
    route: Callable[[httpx.URL], tuple[Callable[[httpx.Request], httpx.Response], str]],
    store: Store,
    call: Call,
    timeouts: Timeouts | None,
    step: Fetch,
) -> Reply:
    """GET one robots.txt URL through the page's own transport."""
    request = _robots_request(call, timeouts, step)
    with Fetching(step.target, store, step.timeout) as hand:
        request.extensions["trace"] = partial(_watch, hand)
        try:
            send, _ = route(request.url)
            response = send(request)
        except httpx.RequestError as error:
            failed = _timed_out(request, step) if hand.time_is_up else error
            return Reply(None, error=failed, elapsed=hand.elapsed)
        collected = _Collected(response, step.max_bytes)
        try:
            for chunk in sync_stream(response.stream):
                if not collected.wants_more(chunk):
                    break
                if hand.time_is_up:
                    break
        except httpx.RequestError as error:
            collected.fail(error)
        finally:
            # The end that came is perhaps one that we have made.
            collected.late = collected.late or hand.time_is_up
            hand.stop()
            response.close()
        return collected.reply(hand.elapsed)


def _watch(hand: Fetching, event: str, told: Mapping[str, Any]) -> None:
    """Take note of the connection that httpcore has opened, from its trace.

    Where it goes on with one that was open, it names none: then each read has its own timeout.
    """
    stream = told.get("return_value")
    if event.endswith(("connect_tcp.complete", "start_tls.complete")) and stream is not None:
        hand.watch_socket(stream.get_extra_info("socket"))


async def get_robots_async(
    route: Callable[[httpx.URL], tuple[Callable[[httpx.Request], Awaitable[httpx.Response]], str]],
    store: Store,
    call: Call,
    timeouts: Timeouts | None,
    step: Fetch,
) -> Reply:
    """GET one robots.txt URL through the page's own transport."""
    started = time.monotonic()
    request = _robots_request(call, timeouts, step)
    collected: _Collected | None = None
    with Hand(step.target, "GET", store, None):
        with anyio.move_on_after(step.timeout) as deadline:
            try:
                send, _ = route(request.url)
                response = await send(request)
            except httpx.RequestError as error:
                return Reply(None, error=error, elapsed=time.monotonic() - started)
            collected = _Collected(response, step.max_bytes)
            enough = anyio.CancelScope()
            try:
                with enough:
                    async for chunk in async_stream(response.stream):
                        if not collected.wants_more(chunk):
                            # A break would leave httpx's generators unfinished, as trio warns.
                            enough.cancel()
            except httpx.RequestError as error:
                if not enough.cancel_called:
                    collected.fail(error)
            finally:
                with anyio.CancelScope(shield=True):
                    await response.aclose()
    elapsed = time.monotonic() - started
    if collected is None:
        return Reply(None, error=_timed_out(request, step), elapsed=elapsed)
    if deadline.cancelled_caught:
        collected.late = True
    return collected.reply(elapsed)


def _timed_out(request: httpx.Request, step: Fetch) -> httpx.ReadTimeout:
    return httpx.ReadTimeout(f"no answer within {step.timeout:g} s", request=request)


def _robots_request(call: Call, timeouts: Timeouts | None, step: Fetch) -> httpx.Request:
    """Make the request for one robots.txt URL.

    Nothing of the script goes along: no cookie, no credential, no header but its User-Agent.
    """
    headers = dict(step.headers)
    if call.user_agent:
        headers["User-Agent"] = call.user_agent
    capped = {
        name: min((timeouts or {}).get(name) or step.timeout, step.timeout)
        for name in ("connect", "read", "write", "pool")
    }
    return httpx.Request("GET", step.target.url, headers=headers, extensions={"timeout": capped})


class _Collected:
    """The answer to one robots.txt request, as its body comes in."""

    def __init__(self, response: httpx.Response, max_bytes: int) -> None:
        self._response = response
        self._body: Body | None = None
        self.broken: str | None = None
        self.late = False
        try:
            self._body = Body(max_bytes, response.headers.get("Content-Encoding"))
        except BrokenBody as broken:
            self.broken = str(broken)

    def wants_more(self, chunk: bytes) -> bool:
        if self._body is None or self.broken is not None:
            return False
        try:
            return self._body.feed(chunk)
        except BrokenBody as broken:
            self.broken = str(broken)
            return False

    def fail(self, error: httpx.RequestError) -> None:
        self.late = isinstance(error, httpx.TimeoutException)
        self.broken = str(error)

    def reply(self, elapsed: float) -> Reply:
        content = b""
        if self._body is not None and self.broken is None and not self.late:
            try:
                content = self._body.content()
            except BrokenBody as broken:
                self.broken = str(broken)
        headers = {name.lower(): value for name, value in self._response.headers.items()}
        return Reply(
            self._response.status_code,
            headers,
            content,
            broken=self.broken,
            late=self.late,
            elapsed=elapsed,
        )
