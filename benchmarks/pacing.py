"""How long a paced crawl takes over the ideal, and that the site's log shows no gap too small.

``python benchmarks/pacing.py``. On one host n requests need at least (n - 1) × (delay + response
time): the delay runs from one response's headers to the next request. Many hosts go side by side.
"""

from __future__ import annotations

import argparse
import contextlib
import ssl
import statistics
import threading
import time
from functools import partial
from typing import TYPE_CHECKING

import anyio
import httpx
from measure import print_head, print_machine, print_row

from polite_transport import AsyncPoliteTransport, MemoryStore, Policy, PoliteSession
from polite_transport.testing import Site

if TYPE_CHECKING:
    from collections.abc import Callable

UA = "MyBot/1.0 (+https://example.org/bot)"
THREADS = 8
TASKS = 50
DELAY = 0.1
HOSTS = 1_000
HOSTS_A_CLIENT = 100
HOSTS_DELAY = 5.0
PAGES = 10  # of each of the many hosts, beside its robots.txt
BUDGET = 1.03


def robots(delay: float) -> str:
    return f"User-agent: *\nCrawl-delay: {delay}\n"


def response_time(site: Site) -> float:
    """Return the seconds from sending a request to its headers: one client, nothing else to do."""
    with httpx.Client() as client:
        times = [client.get(site.url("/")).elapsed.total_seconds() for _ in range(50)]
    site.clear()
    return statistics.median(times)


def in_threads(site: Site, each: int) -> None:
    """Let every thread have a session of its own."""
    store = MemoryStore()

    def visit(number: int) -> None:
        with PoliteSession(ua=UA, store=store) as session:
            for page in range(each):
                session.get(site.url(f"/{number}/{page}"))

    threads = [threading.Thread(target=visit, args=(number,)) for number in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def in_tasks(backend: str) -> Callable[[Site, int], None]:
    """Let the tasks of one event loop share a client."""

    async def visit(client: httpx.AsyncClient, site: Site, number: int, each: int) -> None:
        for page in range(each):
            await client.get(site.url(f"/{number}/{page}"))

    async def crawl(site: Site, each: int) -> None:
        transport = AsyncPoliteTransport(ua=UA, store=MemoryStore())
        async with (
            httpx.AsyncClient(transport=transport) as client,
            anyio.create_task_group() as tasks,
        ):
            for number in range(TASKS):
                tasks.start_soon(visit, client, site, number, each)

    return lambda site, each: anyio.run(crawl, site, each, backend=backend)


def one_host(name: str, crawl: Callable[[Site, int], None], each: int) -> None:
    """Print a row for many parties on one host."""
    with Site(robots(DELAY)) as site:
        answering = response_time(site)
        crawl(site, each)
        log = site.log
        gaps = site.gaps()
    wall = log[-1].time - log[0].time
    ideal = len(gaps) * (DELAY + answering)
    print_row(
        name,
        str(len(log)),
        f"{wall:.2f}",
        f"{ideal:.2f}",
        f"{wall / ideal:.3f}",
        f"{1e3 * min(gaps):.2f}",
        f"{1e3 * (statistics.median(gaps) - DELAY):.2f}",
        str(sum(gap < DELAY for gap in gaps)),
    )


async def _visit_hosts(site: Site, hosts: list[str], *, bare: bool) -> None:
    """Visit all hosts, some of them through each of several clients.

    httpx looks through all connections of a client at each request, so that one client of a
    thousand hosts would be busy with that alone. One store makes one robot of them all the same.
    """
    store, policy, context = MemoryStore(), Policy(robots_timeout=60), ssl.create_default_context()
    limits = httpx.Limits(max_connections=HOSTS_A_CLIENT, max_keepalive_connections=0)

    async def visit(client: httpx.AsyncClient, host: str) -> None:
        for page in range(PAGES):
            await client.get(site.url(f"/{page}", host))

    async with contextlib.AsyncExitStack() as stack:
        clients = [
            await stack.enter_async_context(
                httpx.AsyncClient(
                    transport=httpx.AsyncHTTPTransport(limits=limits, verify=context)
                    if bare
                    else AsyncPoliteTransport(
                        ua=UA, store=store, policy=policy, limits=limits, verify=context
                    ),
                    timeout=60,
                )
            )
            for _ in range(0, len(hosts), HOSTS_A_CLIENT)
        ]
        async with anyio.create_task_group() as tasks:
            for number, host in enumerate(hosts):
                tasks.start_soon(visit, clients[number % len(clients)], host)


def many_hosts(count: int, *, bare: bool = False) -> tuple[float, float, list[float]]:
    """Return the seconds that all hosts take side by side, the ideal, and the gaps in the log.

    bare: without politeness, as fast as httpx can.
    """
    hosts = [f"127.0.{number // 250 + 1}.{number % 250 + 1}" for number in range(count)]
    with Site(robots(HOSTS_DELAY), addresses=hosts) as site:
        ideal = PAGES * (HOSTS_DELAY + response_time(site))
        started = time.perf_counter()
        anyio.run(partial(_visit_hosts, site, hosts, bare=bare))
        spent = time.perf_counter() - started
        gaps = site.gaps()
    wanted = (PAGES - bare) * count  # robots.txt makes one more
    if len(gaps) != wanted:
        raise RuntimeError(f"{len(gaps)} gaps in the log, and {wanted} were to be there")
    return spent, ideal, gaps


def main() -> None:
    """Print everything."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--requests", type=int, default=200, help="on one host, about")
    parser.add_argument("--hosts", type=int, default=HOSTS, help="0 leaves the many hosts out")
    options = parser.parse_args()
    print_machine("requests", "httpx", "anyio", "trio")
    print_head(
        f"one host, Crawl-delay {DELAY:g}",
        "requests",
        "seconds",
        "ideal",
        f"over ideal (≤ {BUDGET})",
        "least gap, ms",
        "median above the delay, ms",
        "too close (0)",
    )
    one_host(f"{THREADS} threads, requests", in_threads, options.requests // THREADS)
    for backend in ("asyncio", "trio"):
        name = f"{TASKS} tasks on {backend}, httpx"
        one_host(name, in_tasks(backend), options.requests // TASKS)
    if options.hosts:
        print()
        print_head(
            f"Crawl-delay {HOSTS_DELAY:g}, robots.txt and {PAGES} pages a host, one process",
            "seconds",
            "ideal",
            f"over ideal (≤ {BUDGET})",
            "median above the delay, ms",
            "too close (0)",
        )
        spent, ideal, gaps = many_hosts(options.hosts)
        print_row(
            f"{options.hosts:,} hosts",
            f"{spent:.2f}",
            f"{ideal:.2f}",
            f"{spent / ideal:.3f}",
            f"{1e3 * (statistics.median(gaps) - HOSTS_DELAY):.2f}",
            str(sum(gap < HOSTS_DELAY for gap in gaps)),
        )
        # Where this is not far below, the machine is too slow to tell anything about pacing.
        flat_out, _, _ = many_hosts(options.hosts, bare=True)
        print_row("the same pages bare, flat out", f"{flat_out:.2f}", "", "", "", "")


if __name__ == "__main__":
    main()
