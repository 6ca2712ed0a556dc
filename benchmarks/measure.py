"""What the benchmarks share: a line about the machine, tables, and times."""

from __future__ import annotations

import importlib.metadata
import platform
import statistics
import threading
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

ROUNDS = 7


def per_call(act: Callable[[], object], *, seconds: float = 0.02) -> float:
    """Return the seconds that one call of ``act`` takes: the median of some rounds.

    seconds: how long one round takes, about.
    """
    calls = 1
    while (spent := _spent(act, calls)) < seconds / 10:
        calls *= 4
    calls = max(1, int(calls * seconds / spent))
    return statistics.median(_spent(act, calls) / calls for _ in range(ROUNDS))


def _spent(act: Callable[[], object], calls: int) -> float:
    start = time.perf_counter()
    for _ in range(calls):
        act()
    return time.perf_counter() - start


def print_machine(*distributions: str) -> None:
    """Print what was measured where, and how fast the machine is just now.

    The same machine may be several times slower an hour later: absolute figures of two runs
    compare only as multiples of this line's. Ratios within one run need none of it.
    """
    versions = [f"{name} {importlib.metadata.version(name)}" for name in distributions]
    python = f"{platform.python_implementation()} {platform.python_version()}"
    print(", ".join([python, platform.machine(), *versions]))
    lock = threading.Lock()

    def take() -> None:
        with lock:
            pass

    nothing = per_call(lambda: None)
    taken = 1e9 * (per_call(take) - nothing)
    told = 1e9 * (per_call(time.monotonic) - nothing)
    print(
        f"calibration: `with lock: pass` {taken:.0f} ns, `time.monotonic()` {told:.0f} ns "
        f"over an empty call of {1e9 * nothing:.0f} ns\n"
    )


def print_row(label: str, *cells: str) -> None:
    """Print one line of a Markdown table."""
    print("| " + " | ".join([label, *cells]) + " |", flush=True)


def print_head(label: str, *cells: str) -> None:
    """Print the head of a Markdown table."""
    print_row(label, *cells)
    print_row("---", *["---:"] * len(cells))


def jain(shares: Iterable[float]) -> float:
    """Return Jain's fairness index: 1 = all have the same share, 1/n = one has it all."""
    each = list(shares)
    return sum(each) ** 2 / (len(each) * sum(share**2 for share in each))
