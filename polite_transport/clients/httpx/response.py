"""What is added to a response of httpx."""

from collections.abc import AsyncIterator, Iterator
from datetime import timedelta

import httpx

from polite_transport.decision import Decision
from polite_transport.flow import Attempt, Call
from polite_transport.sending.passage import leave, leave_async
from polite_transport.stores.base import Store


class _PoliteResponse(httpx.Response):
    """A response whose ``elapsed`` is without the time that the request waited for its turn."""

    _waited: timedelta

    @property
    def elapsed(self) -> timedelta:
        return httpx.Response.elapsed.fget(self)  # type: ignore[attr-defined,no-any-return]

    @elapsed.setter
    def elapsed(self, elapsed: timedelta) -> None:
        self._elapsed = max(elapsed - self._waited, timedelta(0))


def with_decision(response: httpx.Response, decision: Decision, waited: float) -> httpx.Response:
    """Put a Decision on a response. waited: seconds that are not to count in ``elapsed``."""
    response.extensions["polite"] = decision
    if waited and type(response) is httpx.Response:
        # The client times the transport as a whole; only the response's class can be changed here.
        response.__class__ = _PoliteResponse
        response._waited = timedelta(seconds=waited)  # type: ignore[attr-defined]  # noqa: SLF001
    return response


def sync_stream(stream: object) -> httpx.SyncByteStream:
    """Return the body of a response that came from a synchronous transport."""
    if not isinstance(stream, httpx.SyncByteStream):
        raise TypeError("a synchronous transport gave an asynchronous response")
    return stream


def async_stream(stream: object) -> httpx.AsyncByteStream:
    """Return the body of a response that came from an asynchronous transport."""
    if not isinstance(stream, httpx.AsyncByteStream):
        raise TypeError("an asynchronous transport gave a synchronous response")
    return stream


class PacedBody(httpx.SyncByteStream):
    """A body whose end ends the turn: Policy(pace_from="body")."""

    def __init__(self, stream: object, call: Call, attempt: Attempt, store: Store) -> None:
        self._stream = sync_stream(stream)
        self._call = call
        self._attempt = attempt
        self._store = store

    def __iter__(self) -> Iterator[bytes]:
        for chunk in self._stream:
            if self._call.seat is not None:
                self._store.renew(self._call.seat)
            yield chunk

    def close(self) -> None:
        """Close the body, and give the turn back."""
        try:
            self._stream.close()
        finally:
            leave(self._call, self._attempt, self._store)


class AsyncPacedBody(httpx.AsyncByteStream):
    """A body whose end ends the turn: Policy(pace_from="body")."""

    def __init__(self, stream: object, call: Call, attempt: Attempt, store: Store) -> None:
        self._stream = async_stream(stream)
        self._call = call
        self._attempt = attempt
        self._store = store

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for chunk in self._stream:
            if self._call.seat is not None:
                self._store.renew(self._call.seat)
            yield chunk

    async def aclose(self) -> None:
        """Close the body, and give the turn back."""
        try:
            await self._stream.aclose()
        finally:
            await leave_async(self._call, self._attempt, self._store)
