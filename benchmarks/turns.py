"""Turns in the memory store: what one costs, how fast and how fairly it is handed on.

``python benchmarks/turns.py``. No network: a turn is taken and given back at once, as by requests
that are bound to a delay of a nanosecond.
"""

from __future__ import annotations

import argparse
import itertools
import os
import statistics
import subprocess
import sys
import threading
import time
from typing import TYPE_CHECKING

import anyio
import anyio.lowlevel
from measure import jain, per_call, print_head, print_machine, print_row

from polite_transport import MemoryStore, Policy
from polite_transport.drive import run, run_async
from polite_transport.flow import Attempt, Call, check, enter, leave
from polite_transport.robots.access import Access, Copy
from polite_transport.stores.base import CopyKey, CopyWaiter, Seat
from polite_transport.visitor import Visitor

if TYPE_CHECKING:
    from collections.abc import Callable

    from polite_transport.stores.base import Store

UA = "MyBot/1.0 (+https://example.org/bot)"
HOST = "example.org"
BOUND = Policy(min_delay=1e-9, obey_disallow=False, obey_crawl_delay=False)
FREE = Policy(obey_disallow=False, obey_crawl_delay=False)
ANSWERED = Attempt(200)


def new_call(policy: Policy) -> Call:
    """Return a call whose robots.txt is not asked for, decided already."""
    call = Visitor(UA, policy).call("GET", f"http://{HOST}/", UA)
    assert isinstance(call, Call)
    run(check(call), MemoryStore())
    return call


# What one turn costs


def verbs(delay: float) -> Callable[[], object]:
    """Acquire and release, called on the store itself."""
    store = MemoryStore()

    def turn() -> None:
        seat = Seat(HOST, delay, 60.0)
        store.acquire(seat)
        store.release(seat, sent=True)

    return turn


def driven(policy: Policy) -> Callable[[], object]:
    """Enter and leave, through generator and driver."""
    store, call = MemoryStore(), new_call(policy)

    def turn() -> None:
        run(enter(call), store)
        run(leave(call, ANSWERED), store)

    return turn


async def driven_async(policy: Policy) -> float:
    """Return the seconds of the same on an event loop."""
    store, call = MemoryStore(), new_call(policy)
    times: list[float] = []
    for _ in range(7):
        start = time.perf_counter()
        for _ in range(2_000):
            await run_async(enter(call), store)
            await run_async(leave(call, ANSWERED), store)
        times.append((time.perf_counter() - start) / 2_000)
    return statistics.median(times)


def costs() -> None:
    """Print what an uncontended turn costs."""
    print_head("µs a turn, nobody else there", "bound to a delay", "bound to none")
    pairs = {
        "the store's verbs (≤ 1)": (verbs(1e-9), verbs(0.0)),
        "generator and blocking driver (≤ 2.5)": (driven(BOUND), driven(FREE)),
    }
    for name, acts in pairs.items():
        print_row(name, *(f"{1e6 * per_call(act):.2f}" for act in acts))
    for backend in ("asyncio", "trio"):
        spent = [anyio.run(driven_async, policy, backend=backend) for policy in (BOUND, FREE)]
        print_row(f"generator and {backend} driver (≤ 6)", *(f"{1e6 * each:.2f}" for each in spent))


# How it is handed on


class Track:
    """Who was let in when, over parties that all want the same host.

    turns: after so many the parties stop.
    """

    def __init__(self, turns: int) -> None:
        self.turns = turns
        self.store: Store = MemoryStore()
        self.began: list[float] = []  # in order, because one turn is on at a time
        self.ended: list[float] = []
        self.shares: list[int] = []

    @property
    def over(self) -> bool:
        """Whether there were as many turns as were wanted."""
        return len(self.began) >= self.turns

    def thread(self) -> None:
        """Take turns, blocking."""
        call, share = new_call(BOUND), 0
        while not self.over:
            run(enter(call), self.store)
            self.began.append(time.perf_counter())
            share += 1
            time.sleep(0)  # where a request would be on its way, the others come to queue
            self.ended.append(time.perf_counter())
            run(leave(call, ANSWERED), self.store)
        self.shares.append(share)

    async def task(self) -> None:
        """Take turns on an event loop."""
        call, share = new_call(BOUND), 0
        while not self.over:
            await run_async(enter(call), self.store)
            self.began.append(time.perf_counter())
            share += 1
            await anyio.lowlevel.checkpoint()
            self.ended.append(time.perf_counter())
            await run_async(leave(call, ANSWERED), self.store)
        self.shares.append(share)

    async def tasks(self, count: int) -> None:
        """Let so many tasks take turns."""
        async with anyio.create_task_group() as group:
            for _ in range(count):
                group.start_soon(self.task)

    def race(self, threads: int, asyncio_tasks: int, trio_tasks: int) -> None:
        """Let all of them take turns."""
        jobs = [threading.Thread(target=self.thread) for _ in range(threads)]
        for backend, count in (("asyncio", asyncio_tasks), ("trio", trio_tasks)):
            if count:
                loop = threading.Thread(
                    target=anyio.run, args=(self.tasks, count), kwargs={"backend": backend}
                )
                jobs.append(loop)
        for job in jobs:
            job.start()
        for job in jobs:
            job.join()


RACES = {
    "8 threads": (8, 0, 0),
    "50 asyncio tasks": (0, 50, 0),
    "50 trio tasks": (0, 0, 50),
    "4 threads, 20 asyncio and 20 trio tasks": (4, 20, 20),
}


def races(turns: int) -> None:
    """Print how fast and how fairly turns are handed on."""
    print_head(
        f"{turns:,} turns of one host",
        "from release to running, µs: median",
        "95 % within",
        "Jain index (≥ 0.95)",
        "turns/s",
    )
    for name, parties in RACES.items():
        track = Track(turns)
        track.race(*parties)
        between = [
            1e6 * (began - ended)
            for ended, began in zip(
                track.ended, itertools.islice(track.began, 1, None), strict=False
            )
        ]
        if min(between) < 0:
            raise RuntimeError("two turns of one host were on at the same time")
        spent = track.ended[-1] - track.began[0]
        print_row(
            name,
            f"{statistics.median(between):.0f}",
            f"{statistics.quantiles(between, n=20)[-1]:.0f}",
            f"{jain(track.shares):.4f}",
            f"{len(between) / spent:,.0f}",
        )


# Memory


def resident() -> float:
    """Return this process's memory in MiB."""
    with open(f"/proc/{os.getpid()}/statm", encoding="ascii") as file:  # noqa: PTH123 - no file
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20


def hosts_memory(count: int) -> str:
    """Return what so many hosts' turns take, all of them remembered."""
    store = MemoryStore()
    before = resident()
    for number in range(count):
        seat = Seat(f"www.host-{number}.example", 1.0, 60.0)
        store.acquire(seat)
        store.release(seat, sent=True)
    return f"{resident() - before:.0f} MiB"


def copies_memory(count: int) -> str:
    """Return what so many copies of robots.txt take, each parsed and asked."""
    store = MemoryStore(copies_bytes=64 * 2**20)
    before = resident()
    read = 0
    for number in range(count):
        rules = "".join(f"Disallow: /{number}/{rule}/*.html\n" for rule in range(500))
        body = f"User-agent: *\n{rules}".encode()
        read += len(body)
        origin = f"https://www.host-{number}.example"
        copy = Copy(
            robots_url=f"{origin}/robots.txt",
            product_token="MyBot",
            status=200,
            access=Access.FILE,
            body=body,
            max_bytes=512_000,
            fetched_at=store.now(),
            expires_at=store.now() + 86_400,
        )
        key, waiter = CopyKey(origin, "mybot", "follow", 512_000, 10.0, 86_400.0), CopyWaiter()
        store.claim(key, waiter)
        store.publish(key, waiter, copy)
        copy.robots.check("/x", "MyBot")
    return f"{resident() - before:.0f} MiB after {read / 2**20:.0f} MiB of files, bound 64 MiB"


MEMORY = {
    "hosts": (hosts_memory, 1_000_000, "hosts' turns (≤ 260 MiB a million)"),
    "copies": (copies_memory, 4_000, "robots.txt copies"),
}


def memory() -> None:
    """Print what the store takes, each measured in a process of its own."""
    print_head("memory", "")
    for name, (_, count, label) in MEMORY.items():
        command = [sys.executable, __file__, "--memory-once", name]
        found = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        print_row(f"{count:,} {label}", found.strip())


def main() -> None:
    """Print everything."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--turns", type=int, default=20_000, help="of each race")
    parser.add_argument("--memory-once", choices=MEMORY, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.memory_once:
        measure, count, _ = MEMORY[options.memory_once]
        print(measure(count))
        return
    print_machine("anyio", "trio")
    costs()
    print()
    races(options.turns)
    print()
    memory()


if __name__ == "__main__":
    main()
