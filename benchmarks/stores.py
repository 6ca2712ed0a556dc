"""Turns that processes share, measured: ``python benchmarks/stores.py [--seconds 4] [--long]``.

1. Verbs alone: acquire and release pairs per second and how long an acquire takes, for each store.
2. The promise: 8 processes of 4 threads send to a site that logs arrivals, each through each store,
   and through limiter libraries on the same job. Counted are gaps in the site's log that are
   shorter than the delay, and how evenly the threads were served (Jain's index). One process of as
   many threads over a MemoryStore shows what of it is the machine's and the site's own.
3. With --long: processes killed and stopped in mid-run, and Redis restarted.

redis-server is started where it is in PATH. A library that is not installed is left out.
"""

from __future__ import annotations

import argparse
import http.client
import importlib.metadata
import itertools
import json
import os
import platform
import random
import shutil
import signal
import socket
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections import defaultdict
from functools import partial
from importlib import import_module
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from polite_transport import MemoryStore, Policy, RedisStore, SQLiteStore
from polite_transport.decision import Decision, Reason
from polite_transport.drive import run
from polite_transport.flow.call import Attempt
from polite_transport.flow.turn import end_turn, take_turn
from polite_transport.stores.base import Seat
from polite_transport.testing import Site

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

PROCESSES, THREADS = 8, 4
SLOWEST_ANSWER = 0.020  # seconds; each page takes between 0 and this
JOBS = ((1, 0.05), (10, 0.2), (1000, 0.5))  # hosts, delay in seconds
OURS = ("SQLiteStore", "RedisStore")
ALONE = "MemoryStore"  # of one process, to compare
PEERS = ("pyrate-limiter SQLite", "pyrate-limiter Redis", "limits Redis", "throttled-py Redis")
SAMPLES = 2_000  # latencies that each process reports

Turn: TypeAlias = "Callable[[str, float, Callable[[], None]], None]"


# --- one process of a crew ------------------------------------------------------------------


def store_of(name: str, place: dict[str, str], lease: float) -> Any:
    if name == ALONE:
        return MemoryStore()
    if name == "SQLiteStore":
        return SQLiteStore(place["file"], lease=lease)
    return RedisStore(place["redis"], namespace=place["namespace"], lease=lease)


def ours(store: Any) -> Turn:
    """Our own turns: taken before the request, given back with its response headers."""
    undecided = Decision(
        url="",
        method="GET",
        allowed=True,
        reason=Reason.NOT_ASKED,
        product_token="",
        user_agent="",
    )
    policy = Policy()

    def send_in_turn(host: str, delay: float, send: Callable[[], None]) -> None:
        seat = Seat(host, delay, policy.turn_limit, alone=True)
        run(take_turn(seat, policy, undecided), store)
        try:
            send()
        finally:
            run(end_turn(seat, Attempt(200)), store)

    return send_in_turn


def pyrate(kind: str, place: dict[str, str]) -> Turn:
    library: Any = import_module("pyrate_limiter")
    redis: Any = import_module("redis")
    limiters: dict[str, Any] = {}
    lock = threading.Lock()

    def limiter(host: str, delay: float) -> Any:
        with lock:
            if host not in limiters:
                rates = [library.Rate(1, round(delay * 1000))]
                bucket: Any
                if kind == "Redis":
                    client = redis.Redis.from_url(place["redis"])
                    bucket = library.RedisBucket.init(rates, client, f"{place['namespace']}{host}")
                else:
                    table = "t" + "".join(filter(str.isalnum, host))
                    bucket = library.SQLiteBucket.init_from_file(
                        rates, table=table, db_path=place["file"] + ".pyrate", use_file_lock=True
                    )
                limiters[host] = library.Limiter(bucket)
            return limiters[host]

    def send_in_turn(host: str, delay: float, send: Callable[[], None]) -> None:
        limiter(host, delay).try_acquire(host)
        send()

    return send_in_turn


def limits(place: dict[str, str]) -> Turn:
    library: Any = import_module("limits")
    storage = library.storage.storage_from_string(place["redis"])
    strategy = library.strategies.MovingWindowRateLimiter(storage)

    def send_in_turn(host: str, delay: float, send: Callable[[], None]) -> None:
        # Whole seconds are the least that it counts in.
        rate = library.RateLimitItemPerSecond(round(1 / delay), 1, namespace=place["namespace"])
        while not strategy.hit(rate, host):
            time.sleep(delay / 4)
        send()

    return send_in_turn


def throttled(place: dict[str, str]) -> Turn:
    library: Any = import_module("throttled")
    store = library.RedisStore(server=place["redis"])

    def send_in_turn(host: str, delay: float, send: Callable[[], None]) -> None:
        quota = library.rate_limiter.per_sec(round(1 / delay), burst=1)
        library.Throttled(
            key=f"{place['namespace']}{host}", using="gcra", quota=quota, store=store, timeout=60
        ).limit()
        send()

    return send_in_turn


def turn_of(name: str, place: dict[str, str], lease: float) -> Turn:
    if name in (*OURS, ALONE):
        return ours(store_of(name, place, lease))
    if name.startswith("pyrate"):
        return pyrate(name.rpartition(" ")[2], place)
    return limits(place) if name.startswith("limits") else throttled(place)


def work(orders: dict[str, Any]) -> None:
    """Be one process: wait for the word on stdin, work, report on stdout."""
    send_in_turn = turn_of(orders["name"], orders["place"], orders["lease"])
    hosts, delay, seed = orders["hosts"], orders["delay"], orders["seed"]
    served = [0] * orders["threads"]
    latencies: list[float] = []
    answered: list[tuple[str, float]] = []
    print("ready", flush=True)
    sys.stdin.readline()
    ends = time.monotonic() + orders["seconds"]

    def send_nothing(started: float, mine: list[float]) -> None:
        mine.append(time.perf_counter() - started)

    def send(connection: http.client.HTTPConnection, host: str, answer: float) -> None:
        connection.request("GET", f"/slow?headers={answer:.4f}&size=1&host={host}")
        response = connection.getresponse()
        answered.append((host, time.monotonic()))
        response.read()

    def thread(number: int) -> None:
        choose = random.Random(f"{seed} {number}")
        connection = http.client.HTTPConnection("127.0.0.1", orders["port"] or 9, timeout=30)
        mine: list[float] = []
        while time.monotonic() < ends:
            host = f"h{choose.randrange(hosts)}"
            act = (
                partial(send, connection, host, choose.uniform(0.0, SLOWEST_ANSWER))
                if orders["port"]
                else partial(send_nothing, time.perf_counter(), mine)
            )
            try:
                send_in_turn(host, delay, act)
            except Exception as error:  # noqa: BLE001 - a peer's, or the end of the run
                print(f"{orders['name']}: {error!r}", file=sys.stderr)
                connection.close()
                continue
            served[number] += 1
        latencies.extend(mine)

    threads = [
        threading.Thread(target=thread, args=(each,), daemon=True)
        for each in range(orders["threads"])
    ]
    for each in threads:
        each.start()
    for each in threads:
        each.join(timeout=max(ends - time.monotonic(), 0) + 30)
    latencies.sort()
    kept = latencies[:: max(1, len(latencies) // SAMPLES)] + latencies[-1:]
    print(json.dumps({"served": served, "latencies": kept, "answered": answered}), flush=True)


# --- the crew -------------------------------------------------------------------------------


def crew(**orders: Any) -> list[subprocess.Popen[str]]:
    """Start the processes, and let them go at once."""
    processes = 1 if orders["name"] == ALONE else PROCESSES
    orders["threads"] = PROCESSES * THREADS // processes
    started = [
        subprocess.Popen(
            [
                sys.executable,
                __file__,
                "--work",
                json.dumps({"lease": 10.0, **orders, "seed": seed}),
            ],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for seed in range(processes)
    ]
    for each in started:
        assert each.stdout is not None
        each.stdout.readline()
    for each in started:
        assert each.stdin is not None
        each.stdin.write("go\n")
        each.stdin.flush()
    return started


def reports(of: Sequence[subprocess.Popen[str]]) -> list[dict[str, Any]]:
    outputs = [each.communicate()[0] for each in of]
    return [json.loads(output) for output in outputs if output.strip()]


def jain(served: Sequence[int]) -> float:
    return sum(served) ** 2 / (len(served) * sum(each * each for each in served) or 1)


def verbs(name: str, hosts: int, place: dict[str, str], seconds: float) -> None:
    running = crew(name=name, hosts=hosts, delay=0.0, place=place, seconds=seconds, port=0)
    told = reports(running)
    pairs = sum(sum(each["served"]) for each in told) / seconds
    latencies = sorted(itertools.chain.from_iterable(each["latencies"] for each in told))
    last = len(latencies) - 1
    shown = [latencies[min(int(len(latencies) * part), last)] for part in (0.5, 0.99, 1)]
    tail = "".join(f"{1000 * each:10.2f}" for each in shown)
    print(f"{name:<24}{hosts:>6}{pairs:>12,.0f}{tail}", flush=True)


def gaps(
    site: Site, delay: float, told: Sequence[dict[str, Any]]
) -> tuple[list[float], list[float]]:
    """Return all gaps of the log, host by host, and by how much each turn came late.

    Late is what lies between the headers of a response, in the process that got them, and the next
    arrival in the site's log, beyond the delay.
    """
    arrived: dict[str, list[float]] = defaultdict(list)
    for arrival in site.log:
        arrived[arrival.target.rpartition("&host=")[2]].append(arrival.time)
    answered: dict[str, list[float]] = defaultdict(list)
    for host, when in sorted((each for one in told for each in one["answered"]), key=itemgetter(1)):
        answered[host].append(when)
    pairs = [pair for log in arrived.values() for pair in itertools.pairwise(log)]
    return (
        [later - earlier for earlier, later in pairs],
        [
            later - headers - delay
            for host, log in arrived.items()
            for headers, later in zip(answered[host], log[1:], strict=False)
        ],
    )


def promise(
    name: str, hosts: int, delay: float, place: dict[str, str], seconds: float, **trouble: Any
) -> None:
    with Site() as site:
        orders = {"name": name, "hosts": hosts, "delay": delay, "place": place, "port": site.port}
        running = crew(**orders, seconds=seconds, lease=trouble.pop("lease", 10.0))
        for act in trouble.values():
            act(running)
        told = reports(running)
        found, above = gaps(site, delay, told)
    short = [gap for gap in found if gap < delay]
    served = [count for each in told for count in each["served"]]
    label = name + (f", {', '.join(trouble)}" if trouble else "")
    print(
        f"{label:<40}{hosts:>6}{delay:>7g}{len(found):>7}{len(short):>8}"
        f"{1000 * max((delay - gap for gap in short), default=0.0):>10.1f}"
        f"{1000 * statistics.median(above or [0.0]):>10.2f}{jain(served):>8.3f}"
        f"{1000 * max(found, default=0.0):>10.0f}",
        flush=True,
    )


# --- troubles -------------------------------------------------------------------------------


def killed(running: list[subprocess.Popen[str]]) -> None:
    time.sleep(2)
    for victim in running[:2]:
        victim.kill()


def stopped(running: list[subprocess.Popen[str]]) -> None:
    time.sleep(2)
    for victim in running[:2]:
        victim.send_signal(signal.SIGSTOP)
    time.sleep(4)
    for victim in running[:2]:
        victim.send_signal(signal.SIGCONT)


class Redis:
    """A redis-server of the benchmark's own."""

    def __init__(self, folder: str) -> None:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        self._command = [
            *("redis-server", "--port", str(self.port), "--bind", "127.0.0.1", "--save", ""),
            *("--dir", folder, "--loglevel", "warning"),
        ]
        self.start()

    def start(self) -> None:
        """Start it, and wait until it listens."""
        self._running = subprocess.Popen(self._command, stdout=subprocess.DEVNULL)
        while True:
            try:
                socket.create_connection(("127.0.0.1", self.port)).close()
            except OSError:
                time.sleep(0.02)
            else:
                return

    def stop(self) -> None:
        """Kill it."""
        self._running.kill()
        self._running.wait()

    def restarted(self, _: list[subprocess.Popen[str]]) -> None:
        """Kill it in mid-run; a second later it is back, without its memory."""
        time.sleep(2)
        self.stop()
        time.sleep(1)
        self.start()


def places(folder: str, redis: Redis | None) -> Iterator[dict[str, str]]:
    """Give each run a file and a namespace of its own."""
    for number in itertools.count():
        yield {
            "file": f"{folder}/{number}.sqlite",
            "redis": f"redis://127.0.0.1:{redis.port}/0" if redis else "",
            "namespace": f"run{number}",
        }


def installed(name: str) -> str | None:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None


def table(title: str, *columns: tuple[str, int]) -> None:
    print("\n" + title + "".join(f"{name:>{width}}" for name, width in columns))


def measure(names: Sequence[str], seconds: float, redis: Redis | None, folder: str) -> None:
    place = places(folder, redis)
    own = [name for name in names if name in OURS]
    title = f"{'verbs alone, ms':<24}"
    table(title, ("hosts", 6), ("pairs/s", 12), ("median", 10), ("p99", 10), ("worst", 10))
    for name, (hosts, _) in itertools.product(own, JOBS):
        verbs(name, hosts, next(place), seconds)
    title = f"{'the promise, ms':<40}{'hosts':>6}{'delay':>7}{'gaps':>7}"
    table(title, ("short", 8), ("by up to", 10), ("above", 10), ("Jain", 8), ("longest", 10))
    for name in names:
        for hosts, delay in JOBS[:1] if name in PEERS else JOBS:
            promise(name, hosts, delay, next(place), seconds)


def measure_troubles(names: Sequence[str], redis: Redis | None, folder: str) -> None:
    place = places(folder + "/long", redis)
    Path(folder + "/long").mkdir()
    for name in names:
        promise(name, 10, 0.2, next(place), 12, killed=killed, lease=3.0)
        promise(name, 10, 0.2, next(place), 12, stopped=stopped, lease=2.0)
        if redis and name == "RedisStore":
            promise(name, 10, 0.5, next(place), 12, restarted=redis.restarted)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--seconds", type=float, default=4.0, help="of each run")
    parser.add_argument("--long", action="store_true", help="with killed and stopped processes too")
    parser.add_argument("--only", default="", help="names that begin so")
    parser.add_argument("--work", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.work:
        work(json.loads(options.work))
        return
    folder = tempfile.mkdtemp(prefix="polite-benchmark-")
    redis = Redis(folder) if shutil.which("redis-server") and installed("redis") else None
    names = [
        name
        for name in (*OURS, ALONE, *PEERS)
        if name.startswith(options.only)
        and (redis or "Redis" not in name)
        and (name not in PEERS or installed(name.split()[0]))
    ]
    versions = [f"{each} {installed(each)}" for each in ("redis", *{p.split()[0] for p in PEERS})]
    print(
        f"Python {platform.python_version()}, SQLite {sqlite3.sqlite_version}, "
        f"{', '.join(versions)}; {platform.machine()}, {os.cpu_count()} processors; "
        f"{PROCESSES} processes of {THREADS} threads"
    )
    try:
        measure(names, options.seconds, redis, folder)
        if options.long:
            measure_troubles([name for name in names if name in OURS], redis, folder)
    finally:
        if redis:
            redis.stop()
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    # "redis" in the folder of this script would be found before the package.
    sys.path[:] = [entry for entry in sys.path if entry != str(Path(__file__).parent)]
    main()
