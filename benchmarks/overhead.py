"""What politeness costs an allowed request: ``python benchmarks/overhead.py``.

The site asks for no delay, and its robots.txt of 100 wildcard rules has been read. Each client
sends blocks of requests bare and polite in turns, so that a slow moment of the machine hits both.
``--stages`` times the parts one by one, without a network.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import statistics
import time
from functools import partial
from typing import TYPE_CHECKING, Any

import httpx
import requests
import urllib3
from fast_site import ROBOTS, fast_site
from measure import per_call, print_head, print_machine, print_row

from polite_transport import (
    AsyncPoliteTransport,
    MemoryStore,
    PolitePoolManager,
    PoliteSession,
    PoliteTransport,
)
from polite_transport.clients.requests.response import with_decision
from polite_transport.decision import Decision, decide
from polite_transport.drive import run, run_async
from polite_transport.flow import Attempt, Call, check, enter, leave
from polite_transport.robots import parse_robots
from polite_transport.robots.access import Reply
from polite_transport.sending.hand import Hand
from polite_transport.url import target
from polite_transport.visitor import Visitor

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator, Sequence

    from polite_transport.steps import Fetch

    Block = Callable[[Sequence[str]], list[float]]  # sends to each URL, returns the seconds of each

UA = "MyBot/1.0 (+https://example.org/bot)"
PAGES = 20
# Requests before the other one's turn: so many that the interpreter, which adapts its code to the
# classes that it meets, has adapted to this one's. A program has one or the other.
BLOCK = 10 * PAGES
BUDGET = 1.05
AIM = 1.03


def blocking(get: Callable[[str], object]) -> Block:
    """Time one request after another."""

    def block(urls: Sequence[str]) -> list[float]:
        spent: list[float] = []
        for url in urls:
            start = time.perf_counter()
            get(url)
            spent.append(time.perf_counter() - start)
        return spent

    return block


def on_loop(runner: asyncio.Runner, get: Callable[[str], Awaitable[object]]) -> Block:
    """Time one request after another in an event loop that stays open."""

    async def each(urls: Sequence[str]) -> list[float]:
        spent: list[float] = []
        for url in urls:
            start = time.perf_counter()
            await get(url)
            spent.append(time.perf_counter() - start)
        return spent

    def block(urls: Sequence[str]) -> list[float]:
        return runner.run(each(urls))

    return block


# Pairs: the bare client and the polite one, both kept open.


@contextlib.contextmanager
def in_requests() -> Iterator[tuple[Block, Block]]:
    with requests.Session() as bare, PoliteSession(ua=UA, store=MemoryStore()) as polite:
        bare.headers["User-Agent"] = UA
        yield blocking(bare.get), blocking(polite.get)


@contextlib.contextmanager
def in_httpx() -> Iterator[tuple[Block, Block]]:
    transport = PoliteTransport(ua=UA, store=MemoryStore())
    headers = {"User-Agent": UA}
    with httpx.Client(headers=headers) as bare, httpx.Client(transport=transport) as polite:
        yield blocking(bare.get), blocking(polite.get)


@contextlib.contextmanager
def in_httpx_async() -> Iterator[tuple[Block, Block]]:
    transport = AsyncPoliteTransport(ua=UA, store=MemoryStore())
    bare = httpx.AsyncClient(headers={"User-Agent": UA})
    polite = httpx.AsyncClient(transport=transport)
    with asyncio.Runner() as runner:
        yield on_loop(runner, bare.get), on_loop(runner, polite.get)
        runner.run(bare.aclose())
        runner.run(polite.aclose())


@contextlib.contextmanager
def in_urllib3() -> Iterator[tuple[Block, Block]]:
    bare = urllib3.PoolManager(headers={"User-Agent": UA})
    polite = PolitePoolManager(ua=UA, store=MemoryStore())
    yield blocking(partial(bare.request, "GET")), blocking(partial(polite.request, "GET"))


@contextlib.contextmanager
def control() -> Iterator[tuple[Block, Block]]:
    """Pair the bare client with itself: how far from 1 chance alone leads."""
    with requests.Session() as bare, requests.Session() as other:
        yield blocking(bare.get), blocking(other.get)


PAIRS = {
    "requests": in_requests,
    "httpx": in_httpx,
    "httpx async (asyncio)": in_httpx_async,
    "urllib3": in_urllib3,
    "requests, bare against bare": control,
}


def compare(bare: Block, polite: Block, origin: str, blocks: int) -> list[str]:
    """Return the cells of one row: medians, their difference and ratio, and its quartiles."""
    pages = [f"{origin}/a/section/page-{number}.html?id={number}" for number in range(PAGES)]
    urls = pages * (BLOCK // PAGES)
    times: dict[Block, list[float]] = {bare: [], polite: []}
    ratios: list[float] = []
    for warming in (bare, polite):
        warming(urls)
    for number in range(blocks):
        medians: dict[Block, float] = {}
        for client in (bare, polite) if number % 2 else (polite, bare):
            spent = client(urls)
            medians[client] = statistics.median(spent)
            times[client] += spent
        ratios.append(medians[polite] / medians[bare])
    without, within = (1e6 * statistics.median(times[client]) for client in (bare, polite))
    low, middle, high = statistics.quantiles(ratios)
    return [
        f"{without:.0f}",
        f"{within:.0f}",
        f"{within - without:+.1f}",
        f"{middle:.3f}",
        f"{low:.3f} to {high:.3f}",
    ]


def overhead(names: Sequence[str], blocks: int) -> None:
    """Print one row a client."""
    print_head(
        f"µs, medians of {blocks * BLOCK} requests each",
        "bare",
        "polite",
        "difference",
        f"ratio (≤ {BUDGET}, aim {AIM})",
        "middle half of its blocks",
    )
    with fast_site() as origin:
        for name in names:
            with PAIRS[name]() as (bare, polite):
                print_row(name, *compare(bare, polite, origin, blocks))


# Stages


def _robots_txt(_: Fetch) -> Reply:
    return Reply(200, body=ROBOTS.encode())


def stages() -> None:
    """Print what each part of an allowed request costs."""
    store = MemoryStore()
    who = Visitor(UA, store=store)
    url = "http://127.0.0.1:8000/a/section/page-1.html?id=1"
    where = target(url)
    assert where is not None
    made = who.call("GET", url, UA)
    assert isinstance(made, Call)
    call = made
    run(check(call), store, _robots_txt)
    copy = call.copy
    robots = parse_robots(ROBOTS.encode())
    response = requests.Response()
    attempt = Attempt(200, None, "Thu, 01 Jan 2026 00:00:00 GMT")

    def decision() -> Decision:
        return decide(
            copy,
            where,
            method="GET",
            user_agent=UA,
            product_token="MyBot",
            policy=call.policy,
        )

    def in_hand() -> None:
        with Hand(where, "GET", store, call):
            pass

    def turn() -> None:
        run(enter(call), store)
        run(leave(call, attempt), store)

    parts: dict[str, Callable[[], object]] = {
        "target(url)": lambda: target(url),
        "Visitor.call, target included": lambda: who.call("GET", url, UA),
        "Robots.check": lambda: robots.check(where.path, "MyBot"),
        "decide, Robots.check included": decision,
        "check, decide included": lambda: run(check(call), store),
        "enter + leave": turn,
        "Hand in its ContextVar": in_hand,
        "with_decision (requests)": lambda: with_decision(response, call.decision, 0.0),
    }
    nothing = per_call(lambda: None)
    print_head("stage", "µs")
    for name, act in parts.items():
        print_row(name, f"{1e6 * (per_call(act) - nothing):.2f}")
    with asyncio.Runner() as runner:
        print_row("check on asyncio", f"{1e6 * runner.run(_check_async(call, store)):.2f}")


async def _check_async(call: Call, store: Any) -> float:
    times: list[float] = []
    for _ in range(5):
        start = time.perf_counter()
        for _ in range(1_000):
            await run_async(check(call), store)
        times.append((time.perf_counter() - start) / 1_000)
    return statistics.median(times)


def main() -> None:
    """Print everything that is asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("clients", nargs="*", metavar="CLIENT", help="; ".join(PAIRS))
    parser.add_argument("--blocks", type=int, default=24, help=f"of {BLOCK} requests each")
    parser.add_argument("--stages", action="store_true", help="time the parts, without a network")
    options = parser.parse_args()
    unknown = set(options.clients) - set(PAIRS)
    if unknown:
        parser.error(f"no such client: {', '.join(unknown)}")
    print_machine("requests", "httpx", "urllib3", "anyio")
    if options.stages:
        stages()
    else:
        overhead(options.clients or list(PAIRS), options.blocks)


if __name__ == "__main__":
    main()
