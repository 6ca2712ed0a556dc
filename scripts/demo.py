"""Visits a small loopback site with three HTTP clients at once and prints the site's own log."""

import asyncio
import itertools
import os
import sys
import textwrap
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor

import httpx
import requests

from polite_transport import AsyncPoliteTransport, PoliteSession, PoliteTransport
from polite_transport.testing import Arrival, Site

UA = "DemoBot/1.0 (+https://example.org/demobot)"
CRAWL_DELAY = 0.5  # seconds
ROBOTS = f"""\
User-agent: *
Crawl-delay: {CRAWL_DELAY}
Disallow: /private/
"""
PAGES = 3  # for each of the six visitors below


def with_requests(site: Site, visitor: str) -> None:
    """Visit as a script does that uses requests."""
    with PoliteSession(ua=UA) as session:
        for page in range(1, PAGES + 1):
            session.get(site.url(f"/requests/{visitor}/page-{page}"))


def with_httpx(site: Site, visitor: str) -> None:
    """Visit as a script does that uses httpx."""
    with httpx.Client(transport=PoliteTransport(ua=UA)) as client:
        for page in range(1, PAGES + 1):
            client.get(site.url(f"/httpx/{visitor}/page-{page}"))


async def with_async_httpx(site: Site) -> None:
    """Visit as three tasks of one event loop."""
    async with httpx.AsyncClient(transport=AsyncPoliteTransport(ua=UA)) as client:

        async def visit(visitor: str) -> None:
            for page in range(1, PAGES + 1):
                await client.get(site.url(f"/httpx-async/{visitor}/page-{page}"))

        async with asyncio.TaskGroup() as tasks:
            for visitor in ("task-1", "task-2", "task-3"):
                tasks.create_task(visit(visitor))


def arrivals(site: Site, visits: list[Future[None]]) -> Iterator[Arrival]:
    """Yield each line of the site's log as it is written, until all ``visits`` are over."""
    for seen in itertools.count():
        log = site.log
        while len(log) <= seen:
            over = all(visit.done() for visit in visits)
            try:
                log = site.wait_for(seen + 1, timeout=0 if over else 0.2)
            except TimeoutError:
                if over:
                    return
        yield log[seen]


def show(log: Iterator[Arrival]) -> None:
    """Print each line of the log with its distance from the line before."""
    first = last = None
    print("     time      gap   asked   request")
    for arrival in log:
        gap = asked = verdict = ""
        if first is None or last is None:
            first = arrival.time
        else:
            distance = arrival.time - last
            gap, asked = f"{distance:.3f} s", f"{CRAWL_DELAY} s"
            verdict = "" if distance >= CRAWL_DELAY else "   TOO SOON"
        last = arrival.time
        line = f"{arrival.method} {arrival.target}{verdict}"
        print(f"  {last - first:5.2f} s  {gap:>7}   {asked:>5}   {line}", flush=True)


def refused(site: Site) -> str:
    """Return why a page that robots.txt disallows was not asked for."""
    with PoliteSession(ua=UA) as session:
        try:
            session.get(site.url("/private/accounts"))
        except requests.RequestException as error:  # as a script without polite_transport has it
            return f"{type(error).__name__}: {error}"
    return "It was not refused."


def main() -> int:
    """Return 0 if the site got what it asked for, else 1."""
    # A proxy of this machine's user would be asked for a site that only this machine can see.
    os.environ["NO_PROXY"] = os.environ["no_proxy"] = "127.0.0.1"
    with Site(ROBOTS) as site, ThreadPoolExecutor() as threads:
        print(f"{site.origin} says in its robots.txt:\n")
        print("".join(f"    {line}\n" for line in ROBOTS.splitlines()))
        print("Two threads with requests, one with httpx, and three asyncio tasks with httpx now")
        print(f"visit {PAGES} pages each, as fast as they are let. The site's own log:\n")
        visits = [
            threads.submit(with_requests, site, "thread-1"),
            threads.submit(with_requests, site, "thread-2"),
            threads.submit(with_httpx, site, "thread-3"),
            threads.submit(lambda: asyncio.run(with_async_httpx(site))),
        ]
        show(arrivals(site, visits))
        for visit in visits:
            visit.result()  # raises what went wrong there
        print("\nA page that the site does not want to be asked for:\n")
        print(f"    session.get({site.url('/private/accounts')!r})\n")
        print(textwrap.indent(textwrap.fill(refused(site), 92, break_on_hyphens=False), "    "))
        print()
        gaps, targets = site.gaps(), site.targets()
    fetches = targets.count("/robots.txt")
    private = sum(target.startswith("/private/") for target in targets)
    kept = min(gaps) >= CRAWL_DELAY and fetches == 1 and private == 0
    print(f"{len(targets)} requests, the smallest gap {min(gaps):.3f} s of {CRAWL_DELAY} s asked.")
    print(f"Fetches of robots.txt: {fetches}. Requests for /private/: {private}.")
    print(f"The site {'got' if kept else 'DID NOT GET'} what it asked for.")
    return 0 if kept else 1


if __name__ == "__main__":
    sys.exit(main())
