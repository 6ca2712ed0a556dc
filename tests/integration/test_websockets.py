"""A WebSocket opens with a GET: checked and paced like any other, whatever its URL begins with."""

import asyncio
import threading
import time
from collections.abc import Callable, Iterator

import aiohttp
import httpx
import pytest
from aiohttp import web

from polite_transport import DisallowedByRobots, MemoryStore, Policy, PoliteTransport, install
from polite_transport.testing import Site

UA = "MyBot/1.0 (+https://example.org/bot)"
DELAY = 0.1
ROBOTS = f"User-agent: *\nDisallow: /private\nCrawl-delay: {DELAY}\n"
Start = Callable[..., Site]
schemes = pytest.mark.parametrize("scheme", ["ws", "WS", "http"])


def of(place: Site, scheme: str, path: str) -> str:
    return place.url(path).replace("http", scheme, 1)


@schemes
def test_aiohttp_in_an_installed_process(site: Start, store: MemoryStore, scheme: str) -> None:
    place = site(ROBOTS)

    async def visit() -> None:
        async with aiohttp.ClientSession() as session:
            for _ in range(2):
                with pytest.raises(aiohttp.WSServerHandshakeError):  # this site speaks HTTP alone
                    await session.ws_connect(of(place, scheme, "/socket"))
            with pytest.raises(DisallowedByRobots) as refused:
                await session.ws_connect(of(place, scheme, "/private/socket"))
            assert isinstance(refused.value, aiohttp.ClientError)

    with install(ua=UA, store=store):
        asyncio.run(visit())
    assert place.targets() == ["/robots.txt", "/socket", "/socket"]
    assert [each.headers.get("upgrade") for each in place.log] == [None, "websocket", "websocket"]
    assert min(place.gaps()) >= DELAY


@schemes
def test_httpx(site: Start, store: MemoryStore, scheme: str) -> None:
    place = site(ROBOTS)
    with httpx.Client(transport=PoliteTransport(ua=UA, store=store)) as client:
        for _ in range(2):
            client.get(of(place, scheme, "/socket"), headers={"Upgrade": "websocket"})
        with pytest.raises(DisallowedByRobots):
            client.get(of(place, scheme, "/private/socket"))
    assert place.targets() == ["/robots.txt", "/socket", "/socket"]
    assert min(place.gaps()) >= DELAY


# --- with a site that answers ---------------------------------------------------------------


class Answering:
    """A site with a WebSocket that sends back what it gets, and a log of arrivals."""

    def __init__(self) -> None:
        self.log: list[tuple[str, float]] = []
        self.port = 0
        self.loop = asyncio.new_event_loop()

    def url(self, path: str) -> str:
        return f"ws://127.0.0.1:{self.port}{path}"

    def arrive(self, request: web.Request) -> None:
        self.log.append((request.path, time.monotonic()))

    async def robots(self, request: web.Request) -> web.Response:
        self.arrive(request)
        return web.Response(text=ROBOTS)

    async def socket(self, request: web.Request) -> web.WebSocketResponse:
        self.arrive(request)
        answer = web.WebSocketResponse()
        await answer.prepare(request)
        async for message in answer:
            await answer.send_str(f"{message.data} again")
        return answer

    async def start(self) -> None:
        app = web.Application()
        app.router.add_get("/robots.txt", self.robots)
        app.router.add_get("/socket", self.socket)
        self.runner = web.AppRunner(app)
        await self.runner.setup()
        place = web.TCPSite(self.runner, "127.0.0.1", 0)
        await place.start()
        self.port = self.runner.addresses[0][1]


@pytest.fixture
def answering() -> Iterator[Answering]:
    place = Answering()
    thread = threading.Thread(target=place.loop.run_forever)
    thread.start()
    asyncio.run_coroutine_threadsafe(place.start(), place.loop).result(10)
    yield place
    asyncio.run_coroutine_threadsafe(place.runner.cleanup(), place.loop).result(10)
    place.loop.call_soon_threadsafe(place.loop.stop)
    thread.join()
    place.loop.close()


@pytest.mark.parametrize("pace_from", ["headers", "body"])
def test_an_open_socket_holds_no_turn(
    answering: Answering, store: MemoryStore, pace_from: str
) -> None:
    async def visit() -> None:
        async with (
            aiohttp.ClientSession() as session,
            session.ws_connect(answering.url("/socket")) as first,
        ):
            await first.send_str("hello")
            assert await first.receive_str() == "hello again"
            async with session.ws_connect(answering.url("/socket")) as second:
                await first.send_str("still here")
                assert await first.receive_str() == "still here again"
                await second.send_str("hello")
                assert await second.receive_str() == "hello again"

    policy = Policy(pace_from=pace_from, max_wait=5)  # type: ignore[arg-type]
    with install(ua=UA, store=store, policy=policy):
        asyncio.run(visit())
    assert [path for path, _ in answering.log] == ["/robots.txt", "/socket", "/socket"]
    times = [arrival for _, arrival in answering.log]
    assert times[1] - times[0] >= DELAY
    assert times[2] - times[1] >= DELAY


@pytest.mark.parametrize("pace_from", ["headers", "body"])
def test_nor_does_one_of_httpx(answering: Answering, store: MemoryStore, pace_from: str) -> None:
    handshake = {
        "Connection": "Upgrade",
        "Upgrade": "websocket",
        "Sec-WebSocket-Version": "13",
        "Sec-WebSocket-Key": "AAAAAAAAAAAAAAAAAAAAAA==",
    }
    policy = Policy(pace_from=pace_from, max_wait=5)  # type: ignore[arg-type]
    transport = PoliteTransport(ua=UA, store=store, policy=policy)
    with httpx.Client(transport=transport) as client:
        where = answering.url("/socket")
        with client.stream("GET", where, headers=handshake) as first:
            assert first.status_code == 101
            with client.stream("GET", where, headers=handshake) as second:
                assert second.status_code == 101
    assert [path for path, _ in answering.log] == ["/robots.txt", "/socket", "/socket"]
    assert answering.log[2][1] - answering.log[1][1] >= DELAY
