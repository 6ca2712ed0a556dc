"""One process of a crawl: ``python crawl.py JSON``, with

store: {"kind": "sqlite" or "redis", "place": path or URL, and options of the store};
urls: each thread goes through them, from a different one on, again and again;
threads; requests: of each thread; seconds: after which no new request is begun;
min_delay, ua, timeout; client: "requests", or "httpx" for as many tasks as threads;
clock: seconds by which the wall clock of this process is wrong.

It prints how many requests each thread got through, and the names of the errors it met.
"""

import asyncio
import itertools
import json
import sys
import threading
import time
from collections import Counter
from typing import Any

import httpx
import requests

from polite_transport import (
    AsyncPoliteTransport,
    Policy,
    PoliteSession,
    RedisStore,
    SQLiteStore,
)

orders: dict[str, Any] = json.loads(sys.argv[1])
if orders.get("clock"):
    wall = time.time
    time.time = lambda: wall() + orders["clock"]
options = dict(orders["store"])
kind, place = options.pop("kind"), options.pop("place")
store = SQLiteStore(place, **options) if kind == "sqlite" else RedisStore(place, **options)
policy = Policy(min_delay=orders.get("min_delay", 0.0))
ua = orders.get("ua", "CrawlBot/1.0 (+https://example.org/bot)")
threads, wanted = orders.get("threads", 4), orders.get("requests", 10**9)
ends = time.monotonic() + orders.get("seconds", 600.0)
timeout = orders.get("timeout", 30.0)
served = [0] * threads
errors: Counter[str] = Counter()


def urls_of(number: int) -> Any:
    urls = orders["urls"]
    first = number * len(urls) // threads
    return itertools.cycle(urls[first:] + urls[:first])


def crawl(number: int) -> None:
    urls = urls_of(number)
    with PoliteSession(ua=ua, policy=policy, store=store) as session:
        while served[number] < wanted and time.monotonic() < ends:
            try:
                session.get(next(urls), timeout=timeout)
            except requests.RequestException as error:
                errors[type(error).__name__] += 1
                time.sleep(0.05)
            else:
                served[number] += 1


async def crawl_all() -> None:
    transport = AsyncPoliteTransport(ua=ua, policy=policy, store=store)
    async with httpx.AsyncClient(transport=transport, timeout=timeout) as client:

        async def one(number: int) -> None:
            urls = urls_of(number)
            while served[number] < wanted and time.monotonic() < ends:
                try:
                    await client.get(next(urls))
                except httpx.HTTPError as error:
                    errors[type(error).__name__] += 1
                    await asyncio.sleep(0.05)
                else:
                    served[number] += 1

        await asyncio.gather(*map(one, range(threads)))


if orders.get("client") == "httpx":
    asyncio.run(crawl_all())
else:
    running = [threading.Thread(target=crawl, args=(number,)) for number in range(threads)]
    for each in running:
        each.start()
    for each in running:
        each.join()
sys.stdout.write(json.dumps({"served": served, "errors": errors}))
