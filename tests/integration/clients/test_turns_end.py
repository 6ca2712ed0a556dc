"""Whatever goes wrong once a request has its turn, the turn is given back."""

import asyncio
import http.client
import urllib.request
from collections.abc import AsyncIterator, Callable, Iterator
from types import MappingProxyType
from typing import Any

import aiohttp
import anyio
import httpx
import pytest
import requests
from requests.adapters import BaseAdapter, HTTPAdapter

from polite_transport import (
    AsyncPoliteTransport,
    MemoryStore,
    Policy,
    PoliteSession,
    PoliteTransport,
    WaitTooLong,
    install,
)
from polite_transport.testing import Answer, Site

from .faces import UA

DELAY = 0.05
ROBOTS = f"User-agent: *\nCrawl-delay: {DELAY}\n"
PATIENCE = 20  # seconds, and far less than the limit of a turn that nobody gives back
FROM_BODY = Policy(pace_from="body", turn_limit=600)
LATER = {"Retry-After": "600"}  # more than a request waits: the next one is told so at once
Start = Callable[..., Site]


def who(store: MemoryStore) -> dict[str, Any]:
    return {"ua": UA, "store": store, "policy": FROM_BODY}


# --- aiohttp: the body is read within the turn ----------------------------------------------


def test_a_body_that_breaks_off_in_aiohttp(site: Start, store: MemoryStore) -> None:
    place = site(ROBOTS)
    place.serve("/broken", Answer(body=b"x" * 10, close="body"))
    place.serve("/busy", Answer(429, b"x" * 10, LATER, close="body"))

    async def visit() -> None:
        async with asyncio.timeout(PATIENCE), aiohttp.ClientSession() as session:
            for path in ("/broken", "/busy"):
                with pytest.raises(aiohttp.ClientPayloadError):
                    await session.get(place.url(path))
            with pytest.raises(WaitTooLong):  # what its headers ask for counts all the same
                await session.get(place.url("/next"))

    with install(**who(store)):
        asyncio.run(visit())
    assert place.targets() == ["/robots.txt", "/broken", "/busy"]
    assert min(place.gaps()) >= DELAY


def test_a_task_of_aiohttp_that_is_cancelled_as_it_reads(site: Start, store: MemoryStore) -> None:
    place = site(ROBOTS)
    place.serve("/endless", Answer(body=b"x", drip=(1, 0.05), endless=True))

    async def visit() -> None:
        begun = asyncio.Event()

        class Told(aiohttp.ClientResponse):
            async def read(self) -> bytes:
                begun.set()
                return await super().read()

        async def get(path: str) -> None:
            await session.get(place.url(path))

        async with asyncio.timeout(PATIENCE), aiohttp.ClientSession(response_class=Told) as session:
            reading = asyncio.create_task(get("/endless"))
            await begun.wait()
            reading.cancel()
            with pytest.raises(asyncio.CancelledError):
                await reading
            await get("/next")

    with install(**who(store)):
        asyncio.run(visit())
    assert place.targets() == ["/robots.txt", "/endless", "/next"]
    assert min(place.gaps()) >= DELAY


# --- responses that we cannot do our part with ----------------------------------------------


class SyncBody(httpx.SyncByteStream):
    """A body for synchronous clients only."""

    def __iter__(self) -> Iterator[bytes]:
        yield b""


class AsyncBody(httpx.AsyncByteStream):
    """A body for asynchronous clients only."""

    async def __aiter__(self) -> AsyncIterator[bytes]:
        yield b""


def of_the_other_kind(response: httpx.Response) -> None:
    is_async = isinstance(response.stream, httpx.AsyncByteStream)
    response.stream = SyncBody() if is_async else AsyncBody()


def read_only(response: httpx.Response) -> None:
    response.extensions = MappingProxyType(response.extensions)  # type: ignore[assignment]


SPOILS = [of_the_other_kind, read_only]
ODD = {"/odd", "/busy"}
Spoil = Callable[[httpx.Response], None]


@pytest.fixture
def place(site: Start) -> Site:
    place = site(ROBOTS)
    place.serve("/busy", Answer(429, b"", LATER))
    return place


@pytest.mark.parametrize("spoil", SPOILS)
def test_in_httpx(place: Site, store: MemoryStore, spoil: Spoil) -> None:
    class Spoiling(httpx.HTTPTransport):
        def handle_request(self, request: httpx.Request) -> httpx.Response:
            response = super().handle_request(request)
            if request.url.path in ODD:
                response.close()
                spoil(response)
            return response

    with httpx.Client(transport=PoliteTransport(Spoiling(), **who(store))) as client:
        for path in ("/odd", "/busy"):
            with pytest.raises(TypeError):
                client.get(place.url(path))
        with pytest.raises(WaitTooLong):
            client.get(place.url("/next"))
    assert place.targets() == ["/robots.txt", "/odd", "/busy"]
    assert min(place.gaps()) >= DELAY


@pytest.mark.anyio
@pytest.mark.parametrize("spoil", SPOILS)
async def test_in_httpx_in_a_task(place: Site, store: MemoryStore, spoil: Spoil) -> None:
    class Spoiling(httpx.AsyncHTTPTransport):
        async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
            response = await super().handle_async_request(request)
            if request.url.path in ODD:
                await response.aclose()
                spoil(response)
            return response

    transport = AsyncPoliteTransport(Spoiling(), **who(store))
    with anyio.fail_after(PATIENCE):
        async with httpx.AsyncClient(transport=transport) as client:
            for path in ("/odd", "/busy"):
                with pytest.raises(TypeError):
                    await client.get(place.url(path))
            with pytest.raises(WaitTooLong):
                await client.get(place.url("/next"))
    assert place.targets() == ["/robots.txt", "/odd", "/busy"]
    assert min(place.gaps()) >= DELAY


class WithoutStatus(BaseAdapter):
    """An adapter that forgets the status of some responses."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = HTTPAdapter()

    def send(
        self, request: requests.PreparedRequest, *arguments: Any, **options: Any
    ) -> requests.Response:
        response = self.inner.send(request, *arguments, **options)
        if request.path_url in ODD:
            response.close()
            response.status_code = None  # type: ignore[assignment]
        return response

    def close(self) -> None:
        self.inner.close()


def test_in_an_adapter_of_the_script_s_own(place: Site, store: MemoryStore) -> None:
    with PoliteSession(**who(store)) as session:
        session.mount("http://", WithoutStatus())
        with pytest.raises(TypeError):
            session.get(place.url("/odd"))
        session.get(place.url("/next"))
    assert place.targets() == ["/robots.txt", "/odd", "/next"]
    assert min(place.gaps()) >= DELAY


class Forgetful(http.client.HTTPConnection):
    """A connection that forgets the status of some responses."""

    path = ""

    def request(self, method: str, url: str, *arguments: Any, **options: Any) -> None:
        self.path = url
        super().request(method, url, *arguments, **options)

    def getresponse(self) -> http.client.HTTPResponse:
        response = super().getresponse()
        if self.path in ODD:
            response.close()
            response.status = None  # type: ignore[assignment]
        return response


class Handler(urllib.request.HTTPHandler):
    """A handler over such connections."""

    def http_open(self, req: urllib.request.Request) -> http.client.HTTPResponse:
        return self.do_open(Forgetful, req)


def test_in_a_handler_of_the_script_s_own(place: Site, store: MemoryStore) -> None:
    opener = urllib.request.build_opener(Handler)
    with install(**who(store)):
        with pytest.raises(TypeError):
            opener.open(place.url("/odd"))
        opener.open(place.url("/next")).close()
    assert place.targets() == ["/robots.txt", "/odd", "/next"]
    assert min(place.gaps()) >= DELAY
