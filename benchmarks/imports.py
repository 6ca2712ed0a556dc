"""What importing the library adds to a script's start: ``python benchmarks/imports.py``.

Each figure is the median of fresh interpreters that take turns; what the script imports anyway is
imported before the clock starts.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
from collections import Counter

from measure import print_head, print_machine, print_row

BUDGET = 15.0  # ms, for PoliteSession
CASES = {
    "requests itself, to compare": ("sys", "import requests"),
    "PoliteSession beyond requests": ("requests", "from polite_transport import PoliteSession"),
    "PoliteTransport beyond httpx": (
        "httpx, httpcore",  # httpx imports it with the first client
        "from polite_transport import PoliteTransport",
    ),
    "PolitePoolManager beyond urllib3": (
        "urllib3",
        "from polite_transport import PolitePoolManager",
    ),
    "polite_transport alone": ("sys", "import polite_transport"),
}
_TIMED = """
import time, {before}
start = time.perf_counter()
{statement}
print(1e3 * (time.perf_counter() - start))
"""


def interpreter(cache: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a fresh interpreter to its end.

    cache: a folder for compiled modules, as every installed package has them.
    """
    environment = {**os.environ, "PYTHONPYCACHEPREFIX": cache}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    return subprocess.run(
        [sys.executable, *arguments],
        capture_output=True,
        text=True,
        check=True,
        cwd=cache,
        env=environment,
    )


def once(cache: str, before: str, statement: str) -> float:
    """Return the milliseconds of one statement in a fresh interpreter."""
    return float(interpreter(cache, "-c", _TIMED.format(before=before, statement=statement)).stdout)


def costliest(cache: str, before: str, statement: str, count: int) -> list[str]:
    """Return the modules of other projects or of ours that take longest, with milliseconds."""
    code = f"import {before}\nprint('-', file=__import__('sys').stderr)\n{statement}"
    run = interpreter(cache, "-X", "importtime", "-c", code)
    own: Counter[str] = Counter()
    for line in run.stderr.partition("\n-\n")[2].splitlines():
        itself, _, name = line.removeprefix("import time:").split("|")
        own[name.strip()] = int(itself)
    return [f"{name} {spent / 1e3:.1f}" for name, spent in own.most_common(count)]


def main() -> None:
    """Print everything."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--modules", action="store_true", help="name the costliest modules too")
    options = parser.parse_args()
    print_machine("polite-transport", "requests", "httpx")
    print_head(f"ms (PoliteSession: ≤ {BUDGET:g})", "median", "best")
    times: dict[str, list[float]] = {name: [] for name in CASES}
    with tempfile.TemporaryDirectory() as cache:
        for case in CASES.values():
            once(cache, *case)  # compiles
        for _ in range(options.rounds):
            for name, case in CASES.items():
                times[name].append(once(cache, *case))
        for name, spent in times.items():
            print_row(name, f"{statistics.median(spent):.1f}", f"{min(spent):.1f}")
        if options.modules:
            for name, case in CASES.items():
                print(f"\n{name}, by module alone: {', '.join(costliest(cache, *case, 12))}")


if __name__ == "__main__":
    main()
