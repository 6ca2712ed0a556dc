"""Real robots.txt files, end to end: ``python benchmarks/real_sites.py FOLDER CHECKS``.

FOLDER holds robots.txt files, each named for its site. CHECKS has one JSON object a line: ``file``
(a name in FOLDER), ``product_token``, ``url`` and ``allowed``, the verdict of another parser.

Each file is served from a loopback address of its own. Every URL is asked for there, its path and
query kept, through a PoliteSession. The site's log tells what was really sent.
"""

from __future__ import annotations

import argparse
import json
import pathlib
import random
import time
from collections import Counter
from dataclasses import dataclass
from urllib.parse import urlsplit

import requests
from measure import print_head, print_machine, print_row

from polite_transport import DisallowedByRobots, MemoryStore, Policy, PoliteSession
from polite_transport.testing import Answer, Site

GOAL = 99.0  # per cent
SHOWN = 20  # differences that are printed
PATIENCE = 2.0  # seconds for one page: the test site has some that answer late, or never


@dataclass(frozen=True)
class Check:
    """One URL to ask for, and what another parser says of it."""

    file: str
    product_token: str
    url: str
    allowed: bool

    @property
    def target(self) -> str:
        """Path and query, as they are written in the URL."""
        parts = urlsplit(self.url)
        start = self.url.index("//") + 2 + len(parts.netloc)
        return self.url[start:].partition("#")[0] or "/"


def read_checks(path: pathlib.Path, folder: pathlib.Path, sample: int | None) -> list[Check]:
    """Return the checks whose file is there; so many of them at random, always the same."""
    with path.open(encoding="utf-8") as lines:
        rows = [json.loads(line) for line in lines]
    checks = [
        Check(row["file"], row["product_token"], row["url"], row["allowed"])
        for row in rows
        if (folder / row["file"]).is_file()
    ]
    if sample is None or sample >= len(checks):
        return checks
    return random.Random(9309).sample(checks, sample)


def ask(session: PoliteSession, url: str) -> tuple[bool, str]:
    """Ask for one URL; return whether it was sent, and why, or why not."""
    try:
        response = session.get(url, allow_redirects=False, timeout=PATIENCE)
    except DisallowedByRobots as refusal:
        return False, str(refusal.decision)
    except requests.RequestException as error:
        return True, f"sent, and then {type(error).__name__}"
    return True, str(getattr(response, "polite", None))


def main() -> None:
    """Ask everything, and print how it went."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("checks", type=pathlib.Path)
    parser.add_argument("--sample", type=int, help="so many checks; all without it")
    options = parser.parse_args()
    checks = read_checks(options.checks, options.folder, options.sample)
    files = sorted({check.file for check in checks})
    address = {file: f"127.1.{at // 250}.{at % 250 + 1}" for at, file in enumerate(files)}
    robots = {address[file]: Answer(body=(options.folder / file).read_bytes()) for file in files}
    print_machine("requests", "urllib3")
    policy = Policy(obey_crawl_delay=False, max_wait=PATIENCE)
    store = MemoryStore()
    sessions = {
        token: PoliteSession(
            ua=f"{token}/1.0 (+https://example.org/bot)", policy=policy, store=store
        )
        for token in sorted({check.product_token for check in checks})
    }
    outcomes: Counter[tuple[bool, bool]] = Counter()
    different: list[str] = []
    rewritten = 0
    refused: set[tuple[str, str, str]] = set()
    sent: set[tuple[str, str, str]] = set()
    with Site(addresses=list(address.values()), robots_by_address=robots) as site:
        started = time.monotonic()
        for check in checks:
            host = address[check.file]
            was_sent, why = ask(sessions[check.product_token], site.url(check.target, host))
            outcomes[check.allowed, was_sent] += 1
            # As the session writes it: that is what the log would show.
            wire = requests.Request("GET", site.url(check.target, host)).prepare().path_url
            (sent if was_sent else refused).add((host, check.product_token, wire))
            if was_sent != check.allowed:
                rewritten += wire != check.target
                said = "sent" if was_sent else "refused"
                different.append(
                    f"{check.file} {check.product_token} {check.target}: {said}, {why}"
                )
        spent = time.monotonic() - started
        log = site.log
    arrived = Counter(
        (each.host, each.headers.get("user-agent", "").partition("/")[0], each.target)
        for each in log
    )
    fetches = sum(count for (_, _, target), count in arrived.items() if target == "/robots.txt")
    same = 100 * sum(count for (a, b), count in outcomes.items() if a == b) / len(checks)
    broken = [key for key in refused if key in arrived]
    print_head(f"{len(files)} real robots.txt files, {len(checks)} URLs", "")
    print_row(f"same verdict as the other parser (> {GOAL:g} %)", f"{same:.2f} %")
    print_row("both allow", str(outcomes[True, True]))
    print_row("both disallow", str(outcomes[False, False]))
    print_row("differences where requests sends another URL than was asked for", str(rewritten))
    print_row("only the other parser allows", str(outcomes[True, False]))
    print_row("only we allow", str(outcomes[False, True]))
    print_row("refused URLs in the site's log (0)", str(len(broken)))
    print_row("sent URLs missing in the site's log (0)", str(len(sent - set(arrived))))
    pairs = len({(check.file, check.product_token) for check in checks})
    print_row("robots.txt fetches, and pairs of file and product token", f"{fetches}, {pairs}")
    print_row("seconds", f"{spent:.1f}")
    for line in different[:SHOWN]:
        print(f"different: {line}")
    for session in sessions.values():
        session.close()
    if broken or same <= GOAL:
        raise SystemExit(1)


if __name__ == "__main__":
    main()
