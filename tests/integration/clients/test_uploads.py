"""A body that makes requests while it is sent: also one that is just like the one it belongs to."""

from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import ExitStack
from typing import Any
from urllib.request import Request, urlopen

import anyio
import httpx
import pytest
import requests
import urllib3
from requests.adapters import BaseAdapter, HTTPAdapter

from polite_transport import (
    AsyncPoliteTransport,
    DisallowedByRobots,
    MemoryStore,
    PolitePoolManager,
    PoliteSession,
    PoliteTransport,
    install,
)
from polite_transport.testing import Site

from .faces import UA

DELAY = 0.05
ROBOTS = f"User-agent: *\nCrawl-delay: {DELAY}\n"
Start = Callable[..., Site]
Post = Callable[..., Any]  # url, body, headers


def through_requests(session: requests.Session) -> Post:
    return lambda url, body, headers=None: session.post(url, data=body, headers=headers)


def through_httpx(client: httpx.Client) -> Post:
    return lambda url, body, headers=None: client.post(url, content=body, headers=headers)


def through_urllib3(pools: urllib3.PoolManager) -> Post:
    return lambda url, body, headers=None: pools.request("POST", url, body=body, headers=headers)


def through_urllib(url: str, body: Any, headers: Any = None) -> Any:
    request = Request(url, data=body, headers=headers or {}, method="POST")
    with urlopen(request, timeout=20) as response:
        return response


def polite_clients(store: MemoryStore, running: ExitStack, ua: str | None = UA) -> dict[str, Post]:
    session = running.enter_context(PoliteSession(ua=ua, store=store))
    client = httpx.Client(transport=PoliteTransport(ua=ua, store=store), timeout=20)
    pools = running.enter_context(PolitePoolManager(ua=ua, store=store))
    return {
        "PoliteSession": through_requests(session),
        "PoliteTransport": through_httpx(running.enter_context(client)),
        "PolitePoolManager": through_urllib3(pools),
    }


def plain_clients(running: ExitStack) -> dict[str, Post]:
    return {
        "requests": through_requests(running.enter_context(requests.Session())),
        "httpx": through_httpx(running.enter_context(httpx.Client(timeout=20))),
        "urllib3": through_urllib3(running.enter_context(urllib3.PoolManager())),
        "urllib.request": through_urllib,
    }


POLITE = ["PoliteSession", "PoliteTransport", "PolitePoolManager"]
PLAIN = ["requests", "httpx", "urllib3", "urllib.request"]


def seen(place: Site, uploads: int) -> None:
    """Assert that as many uploads came, each in its turn."""
    assert place.targets() == ["/robots.txt", *["/up"] * uploads]
    assert min(place.gaps()) >= DELAY


@pytest.mark.parametrize("outer", POLITE)
def test_requests_like_itself(site: Start, store: MemoryStore, outer: str) -> None:
    place = site(ROBOTS)
    with ExitStack() as running:
        clients = polite_clients(store, running)

        def body() -> Iterator[bytes]:
            yield b"a"
            for post in clients.values():
                post(place.url("/up"), b"x")
                post(place.url("/up"), b"x")
            yield b"b"

        clients[outer](place.url("/up"), body())
    seen(place, 1 + 2 * len(POLITE))


@pytest.mark.parametrize("outer", POLITE + PLAIN)
def test_requests_like_itself_in_an_installed_process(
    site: Start, store: MemoryStore, outer: str
) -> None:
    place = site(ROBOTS)
    with install(ua=UA, store=store), ExitStack() as running:
        clients = polite_clients(store, running) | plain_clients(running)

        def body() -> Iterator[bytes]:
            yield b"a"
            for post in clients.values():
                post(place.url("/up"), b"x")
            yield b"b"

        clients[outer](place.url("/up"), body())
    seen(place, 1 + len(clients))


class Foreign(BaseAdapter):
    """An adapter that lets nobody see how it sends."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = HTTPAdapter()

    def send(self, *arguments: Any, **options: Any) -> requests.Response:
        return self.inner.send(*arguments, **options)

    def close(self) -> None:
        self.inner.close()


class Hiding(httpx.BaseTransport):
    """A transport that lets nobody see how it sends."""

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        with httpx.HTTPTransport() as inner:
            response = inner.handle_request(request)
            return httpx.Response(response.status_code, content=response.read())


@pytest.mark.parametrize("outer", ["requests", "httpx"])
def test_requests_like_itself_over_what_is_not_known(
    site: Start, store: MemoryStore, outer: str
) -> None:
    place = site(ROBOTS)
    with ExitStack() as running:
        session = running.enter_context(PoliteSession(ua=UA, store=store))
        session.mount("http://", Foreign())
        transport = PoliteTransport(Hiding(), ua=UA, store=store)
        client = running.enter_context(httpx.Client(transport=transport, timeout=20))
        post = through_requests(session) if outer == "requests" else through_httpx(client)

        def body() -> Iterator[bytes]:
            yield b"a"
            post(place.url("/up"), b"x")
            post(place.url("/up"), b"x")
            yield b"b"

        post(place.url("/up"), body())
    seen(place, 3)


@pytest.mark.parametrize("outer", POLITE)
def test_a_request_like_itself_but_for_the_user_agent_is_checked(
    site: Start, store: MemoryStore, outer: str
) -> None:
    place = site(f"User-agent: OtherBot\nDisallow: /\n\n{ROBOTS}")
    refused: list[str] = []
    with ExitStack() as running:
        clients = polite_clients(store, running, ua=None)

        def body() -> Iterator[bytes]:
            yield b"a"
            for name, post in clients.items():
                with pytest.raises(DisallowedByRobots):
                    post(place.url("/up"), b"x", {"User-Agent": "OtherBot (+mail@example.org)"})
                refused.append(name)
            yield b"b"

        clients[outer](place.url("/up"), body(), {"User-Agent": UA})
    assert refused == POLITE
    assert [each.headers["user-agent"] for each in place.log if each.target == "/up"] == [UA]


@pytest.mark.anyio
@pytest.mark.parametrize("installed", [False, True])
async def test_requests_like_itself_in_a_task(
    site: Start, store: MemoryStore, installed: bool
) -> None:
    place = site(ROBOTS)
    with ExitStack() as running:
        if installed:
            running.enter_context(install(ua=UA, store=store))
        transport = AsyncPoliteTransport(ua=UA, store=store)
        async with httpx.AsyncClient(transport=transport, timeout=20) as client:

            async def body() -> AsyncIterator[bytes]:
                yield b"a"
                await client.post(place.url("/up"), content=b"x")
                async with anyio.create_task_group() as tasks:
                    for _ in range(2):
                        tasks.start_soon(post_once)
                yield b"b"

            async def post_once() -> None:
                await client.post(place.url("/up"), content=b"x")

            with anyio.fail_after(20):
                await client.post(place.url("/up"), content=body())
    seen(place, 4)
