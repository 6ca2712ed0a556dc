"""An event loop goes on while a shared store is locked, also where a turn is given back."""

import asyncio
import json
import sqlite3
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import aiohttp
import anyio
import httpx
import pytest

from polite_transport import AsyncPoliteTransport, Policy, PoliteSession, SQLiteStore, install
from polite_transport.testing import Site

UA = "MyBot/1.0 (+https://example.org/bot)"
DELAY = 0.1
ROBOTS = f"User-agent: *\nCrawl-delay: {DELAY}\n"
Start = Callable[..., Site]


class Locked:
    """A store's file, locked until the event loop has gone on for a while; or has not, for long.

    went_on: whether it has.
    """

    def __init__(self, path: Path) -> None:
        self._ticks = threading.Semaphore(0)
        self._path = path
        self._holder: threading.Thread | None = None
        self.went_on = False

    def start(self) -> None:
        """Lock it, and let go by itself."""
        locked = threading.Event()
        self._holder = threading.Thread(target=self._hold, args=(locked,))
        self._holder.start()
        locked.wait()

    def _hold(self, locked: threading.Event) -> None:
        connection = sqlite3.connect(self._path, isolation_level=None)
        connection.execute("BEGIN IMMEDIATE")
        locked.set()
        # Three seconds are less than the store's own patience: a loop that waits for it stands.
        self.went_on = all(self._ticks.acquire(timeout=3) for _ in range(5))
        connection.execute("ROLLBACK")
        connection.close()

    async def tick(self) -> None:
        """Be the event loop's other work."""
        while True:
            await anyio.sleep(0.02)
            if self._holder is not None:
                self._ticks.release()

    def end(self) -> None:
        """Wait until it is free."""
        assert self._holder is not None
        self._holder.join()


@pytest.mark.anyio
async def test_httpx_gives_the_outer_turn_back(site: Start, tmp_path: Path) -> None:
    place = site(ROBOTS)
    locked = Locked(tmp_path / "store.sqlite")
    transport = AsyncPoliteTransport(ua=UA, store=SQLiteStore(tmp_path / "store.sqlite"))
    async with httpx.AsyncClient(transport=transport, timeout=20) as client:

        async def body() -> AsyncIterator[bytes]:
            yield b"a"
            locked.start()
            await client.get(place.url("/within"))
            yield b"b"

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(locked.tick)
            await client.post(place.url("/up"), content=body())
            tasks.cancel_scope.cancel()
    locked.end()
    assert locked.went_on
    assert place.targets() == ["/robots.txt", "/up", "/within"]
    assert min(place.gaps()) >= DELAY


def test_aiohttp_gives_the_outer_turn_back(site: Start, tmp_path: Path) -> None:
    place = site(ROBOTS)
    locked = Locked(tmp_path / "store.sqlite")

    async def visit() -> None:
        async with aiohttp.ClientSession() as session:

            async def body() -> AsyncIterator[bytes]:
                yield b"a"
                locked.start()
                await session.get(place.url("/within"))
                yield b"b"

            ticking = asyncio.create_task(locked.tick())
            await session.post(place.url("/up"), data=body())
            ticking.cancel()

    with install(ua=UA, store=SQLiteStore(tmp_path / "store.sqlite")):
        asyncio.run(visit())
    locked.end()
    assert locked.went_on
    assert place.targets() == ["/robots.txt", "/up", "/within"]
    assert min(place.gaps()) >= DELAY


# --- Scrapy: the handler of its signal cannot wait -----------------------------------------------

CRAWL = """
import asyncio, json, sys
from pathlib import Path
import scrapy
from scrapy import signals
from scrapy.crawler import CrawlerProcess
from polite_transport import SQLiteStore
from tests.integration.test_event_loops import Locked

url, path, settings = json.loads(sys.argv[1])
locked = Locked(Path(path))

class Pages(scrapy.Spider):
    name = "pages"

    @classmethod
    def from_crawler(cls, crawler):
        spider = super().from_crawler(crawler)
        crawler.signals.connect(spider.headers_came, signal=signals.headers_received)
        return spider

    async def start(self):
        self.ticking = asyncio.get_running_loop().create_task(locked.tick())
        yield scrapy.Request(url)

    def headers_came(self, request):  # connected first, it comes before the add-on's own
        if request.url == url:
            locked.start()

    def parse(self, response):
        print("got", response.url)

process = CrawlerProcess({**settings, "POLITE_STORE": SQLiteStore(path)})
process.crawl(Pages)
process.start()
locked.end()
print("went on", locked.went_on)
"""


def test_scrapy_gives_a_turn_back_when_the_headers_come(site: Start, tmp_path: Path) -> None:
    place = site(ROBOTS)
    path = tmp_path / "store.sqlite"
    settings = {
        "ADDONS": {"polite_transport.clients.scrapy.PoliteAddon": 0},
        "POLITE_UA": UA,
        "LOG_LEVEL": "ERROR",
        "TELNETCONSOLE_ENABLED": False,
    }
    done = subprocess.run(
        [sys.executable, "-c", CRAWL, json.dumps([place.url("/page"), str(path), settings])],
        check=True,
        stdout=subprocess.PIPE,
        text=True,
        timeout=60,
        cwd=Path(__file__).parents[2],
    )
    assert done.stdout.splitlines() == [f"got {place.url('/page')}", "went on True"]
    # Its last turn was given back before it ended: one that was lost would last for its lease.
    policy = Policy(max_wait=2 * DELAY)
    with PoliteSession(ua=UA, policy=policy, store=SQLiteStore(path)) as session:
        session.get(place.url("/next"))
    assert place.targets() == ["/robots.txt", "/page", "/next"]
    assert min(place.gaps()) >= DELAY
