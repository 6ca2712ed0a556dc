"""Bodies on their way up and down, which hold a turn no longer than they should."""

from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import anyio
import httpx
import pytest

from polite_transport import (
    AsyncPoliteTransport,
    MemoryStore,
    Policy,
    PolitePoolManager,
    PoliteSession,
    PoliteTransport,
)
from polite_transport.testing import Site

from .faces import UA, Visitor

DELAY = 0.1
ROBOTS = f"User-agent: *\nCrawl-delay: {DELAY}\n"
Start = Callable[..., Site]
Visit = Callable[..., Visitor]


def test_a_slow_body_holds_nobody_back(site: Start, visit: Visit) -> None:
    place = site(ROBOTS)
    client = visit()
    with ThreadPoolExecutor(1) as thread:
        slow = thread.submit(client.get, place.url("/slow?body=0.8"))
        place.wait_for(2)
        client.get(place.url("/next"))
        assert not slow.done()
        assert slow.result().body == b"x" * 1000
    assert place.targets() == ["/robots.txt", "/slow?body=0.8", "/next"]
    assert min(place.gaps()) >= DELAY


@pytest.mark.parametrize("client", ["requests", "httpx", "urllib3"])
def test_an_upload_that_downloads_from_the_same_host(
    site: Start, store: MemoryStore, client: str
) -> None:
    place = site(ROBOTS)
    session = PoliteSession(ua=UA, store=store)
    pools = PolitePoolManager(ua=UA, store=store)
    in_httpx = httpx.Client(transport=PoliteTransport(ua=UA, store=store))
    get: Callable[[str], Any]
    post: Callable[[str, Any], Any]
    if client == "requests":
        get, post = session.get, lambda url, body: session.post(url, data=body)
    elif client == "httpx":
        get, post = in_httpx.get, lambda url, body: in_httpx.post(url, content=body)
    else:
        get = lambda url: pools.request("GET", url)  # noqa: E731
        post = lambda url, body: pools.request("POST", url, body=body)  # noqa: E731

    def body() -> Iterator[bytes]:
        yield b"begin "
        get(place.url("/within"))
        yield b"end"

    assert post(place.url("/echo"), body()).json()["body"] == "begin end"
    get(place.url("/next"))
    for each in (session, in_httpx):
        each.close()
    pools.clear()
    assert place.targets() == ["/robots.txt", "/echo", "/within", "/next"]
    # The upload had no answer yet when the turn passed on: the second of its two delays is for
    # the way that its first bytes may still have had to go.
    assert min(place.gaps()) >= DELAY
    assert place.gaps()[1] > 1.5 * DELAY


@pytest.mark.anyio
async def test_an_upload_that_downloads_in_a_task(site: Start, store: MemoryStore) -> None:
    place = site(ROBOTS)
    transport = AsyncPoliteTransport(ua=UA, store=store)
    async with httpx.AsyncClient(transport=transport) as client:

        async def body() -> AsyncIterator[bytes]:
            yield b"begin "
            await client.get(place.url("/within"))
            yield b"end"

        with anyio.fail_after(20):
            response = await client.post(place.url("/echo"), content=body())
    assert response.json()["body"] == "begin end"
    assert place.targets() == ["/robots.txt", "/echo", "/within"]
    assert place.gaps()[0] >= DELAY
    assert place.gaps()[1] > 1.5 * DELAY


@pytest.mark.anyio
async def test_streams_in_tasks_end_their_turns_with_their_bodies(
    site: Start, store: MemoryStore
) -> None:
    place = site(ROBOTS)
    policy = Policy(pace_from="body")
    transport = AsyncPoliteTransport(ua=UA, store=store, policy=policy)
    async with httpx.AsyncClient(transport=transport) as client:

        async def stream(path: str, pieces: int | None) -> None:
            async with client.stream("GET", place.url(path)) as response:
                if pieces is None:
                    await response.aread()

        with anyio.fail_after(20):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(stream, "/slow?body=0.3", None)
                tasks.start_soon(stream, "/large?size=3000000", 0)  # closed without being read
                tasks.start_soon(stream, "/slow?body=0.3&again", None)
    times = {each.target: each.time for each in place.log}
    assert len(times) == 4
    assert min(place.gaps()) >= DELAY
    slow = [time for target, time in times.items() if target.startswith("/slow")]
    for time in slow:
        later = [each for each in times.values() if each > time]
        assert not later or min(later) - time >= 0.3 + DELAY


def test_a_stream_that_is_never_read(site: Start, store: MemoryStore) -> None:
    place = site(ROBOTS)
    pools = PolitePoolManager(ua=UA, store=store)
    path = "/large?size=5000000"
    with (
        PoliteSession(ua=UA, store=store) as session,
        httpx.Client(transport=PoliteTransport(ua=UA, store=store)) as client,
    ):
        unread = session.get(place.url(path), stream=True)
        with client.stream("GET", place.url(path)):
            preloaded = pools.request("GET", place.url(path), preload_content=False)
            session.get(place.url("/next"))
        unread.close()
        preloaded.close()
    pools.clear()
    assert place.targets() == ["/robots.txt", path, path, path, "/next"]
    assert min(place.gaps()) >= DELAY
