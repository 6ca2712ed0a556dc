"""Compare robots.txt engines in one run: ``python benchmarks/robots.py [folder of files]``.

Every engine gets the same bytes, URLs and product token, in turns, so that a slow moment of the
machine hits all of them. Without a folder the files are generated. An engine that is not installed
is left out.
"""

from __future__ import annotations

import argparse
import importlib
import importlib.metadata
import pathlib
import platform
import random
import subprocess
import sys
import time
import tracemalloc
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from polite_transport.robots import parse_robots

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

# The folder of this script is importable, and "robots" there would be this file, not robotspy.
sys.path[:] = [entry for entry in sys.path if entry != str(pathlib.Path(__file__).parent)]

TOKEN = "examplebot"
ORIGIN = "https://www.example.com"
ROUNDS = 5
HOSTILE_LIMIT = 5  # seconds that a peer may take on a hostile file before it is stopped
URLS_PER_FILE = 1_000
FEWEST_CHECKS = 2_000  # fewer, over one engine and size, would measure the clock


@dataclass(frozen=True)
class Engine:
    """A parser under test; ``check`` says whether a URL is allowed for ``TOKEN``."""

    name: str
    distribution: str
    parse: Callable[[bytes], Any]
    check: Callable[[Any, str], bool]
    native: bool = False  # its memory is not Python's to count


def _ours() -> Engine:
    return Engine(
        "polite_transport",
        "polite-transport",
        parse_robots,
        lambda robots, url: robots.check(url, TOKEN).allowed,
    )


def _protego() -> Engine:
    parse = importlib.import_module("protego").Protego.parse
    return Engine(
        "Protego",
        "Protego",
        lambda body: parse(body.decode("utf-8", "replace")),
        lambda robots, url: robots.can_fetch(url, TOKEN),
    )


def _robotspy() -> Engine:
    parser = importlib.import_module("robots").RobotsParser
    return Engine(
        "robotspy",
        "robotspy",
        lambda body: parser.from_string(body.decode("utf-8", "replace")),
        lambda robots, url: robots.can_fetch(TOKEN, url),
    )


def _stdlib() -> Engine:
    parser = importlib.import_module("urllib.robotparser").RobotFileParser

    def parse(body: bytes) -> Any:
        robots = parser()
        robots.parse(body.decode("utf-8", "replace").splitlines())
        return robots

    return Engine("standard library", "", parse, lambda robots, url: robots.can_fetch(TOKEN, url))


def _fast_robotstxt() -> Engine:
    matcher = importlib.import_module("robotstxt").RobotsMatcher()
    return Engine(
        "fast-robotstxt (C++)",
        "fast-robotstxt",
        lambda body: body.decode("utf-8", "replace"),  # no parsed form: every check parses
        lambda body, url: matcher.is_allowed(body, TOKEN, url),
        native=True,
    )


def _fastrobots() -> Engine:
    module = importlib.import_module("fastrobots")
    parse, path_of = module.Robots.parse, module.url_path  # it takes a whole URL for a path
    return Engine(
        "fastrobots (Rust)",
        "fastrobots",
        lambda body: parse(body.decode("utf-8", "replace")),
        lambda robots, url: robots.allowed(path_of(url), TOKEN),
        native=True,
    )


ENGINES = (_ours, _protego, _robotspy, _stdlib, _fast_robotstxt, _fastrobots)


def installed() -> list[Engine]:
    """Return the engines that can be imported here."""
    engines: list[Engine] = []
    for make in ENGINES:
        try:
            engines.append(make())
        except ImportError:
            print(f"not installed: {make.__name__.strip('_')}", file=sys.stderr)
    return engines


# Files and URLs


def rules_in(body: bytes) -> list[str]:
    """Return the path patterns of all rules in ``body``."""
    found: list[str] = []
    for line in body.decode("utf-8", "replace").splitlines():
        key, _, value = line.partition("#")[0].partition(":")
        if key.strip().lower() in {"allow", "disallow"} and value.strip():
            found.append(value.strip())
    return found


def urls_for(body: bytes, count: int, chance: random.Random) -> list[str]:
    """Return ``count`` distinct URLs, half of them made from the patterns of ``body``."""
    patterns = rules_in(body) or ["/"]
    words = [
        "news",
        "2024",
        "product",
        "img",
        "a-long-page-title",
        "search",
        "en",
        "index.html",
        "x",
    ]
    urls: list[str] = []
    for number in range(count):
        if number % 2:
            path = chance.choice(patterns).replace("*", chance.choice(words)).removesuffix("$")
            path = f"/{path.lstrip('/')}{number}"
        else:
            path = "/" + "/".join(chance.choices(words, k=chance.randint(1, 5))) + f"/{number}"
            if number % 3 == 0:
                path += f"?id={number}&page={chance.choice(words)}"
        urls.append(ORIGIN + path)
    return urls


def generated(rules: int, chance: random.Random) -> bytes:
    """Return a file of ``rules`` rules, one in eight of them with a wildcard."""
    lines = ["User-agent: *"]
    for number in range(rules):
        stem = f"/{chance.choice(['shop', 'docket', 'user', 'tag'])}/{number * 7919 % 1_000_003}"
        tail = chance.choice(["*/print", "/*?sort=", "*.pdf$"]) if number % 8 == 0 else "/"
        lines.append(f"{'Allow' if number % 10 == 0 else 'Disallow'}: {stem}{tail}")
    return "\n".join(lines).encode()


@dataclass(frozen=True)
class Corpus:
    """Files of one size class, and the URLs to ask each about."""

    name: str
    bodies: list[bytes]
    urls: list[list[str]]


def corpora(folder: pathlib.Path | None) -> list[Corpus]:
    """Return small, medium and huge files, from ``folder`` where it has some."""
    chance = random.Random(9309)
    sizes: dict[str, list[bytes]] = {"small": [], "medium": [], "huge": []}
    if folder:
        for path in sorted(folder.iterdir()):
            body = path.read_bytes()[:500_000] if path.is_file() else b""
            rules = len(rules_in(body))
            if rules:
                size = "small" if rules <= 20 else "medium" if rules <= 500 else "huge"
                sizes[size].append(body)
    sizes["small"] = sizes["small"] or [
        generated(chance.randint(1, 20), chance) for _ in range(100)
    ]
    sizes["medium"] = sizes["medium"] or [
        generated(chance.randint(21, 500), chance) for _ in range(50)
    ]
    sizes["huge"] += [generated(rules, chance) for rules in (2_000, 6_000, 18_000)]
    return [
        Corpus(name, bodies, [urls_for(body, URLS_PER_FILE, chance) for body in bodies])
        for name, bodies in sizes.items()
    ]


# Measurements


def seconds(work: Callable[[], object]) -> float:
    """Return the seconds that ``work`` takes."""
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def best(engines: Sequence[Engine], work: Callable[[Engine], float]) -> list[float]:
    """Return the best of some rounds for each engine, the engines taking turns."""
    times = [[work(engine) for engine in engines] for _ in range(ROUNDS)]
    return [min(column) for column in zip(*times, strict=True)]


def parse_speed(engines: Sequence[Engine], corpus: Corpus) -> tuple[list[str], list[str]]:
    """Return MB/s of parsing alone, and of parsing and a first check."""
    size = sum(map(len, corpus.bodies)) / 1e6

    def parsing(engine: Engine) -> float:
        return seconds(lambda: [engine.parse(body) for body in corpus.bodies])

    def first_check(engine: Engine) -> float:
        pairs = list(zip(corpus.bodies, corpus.urls, strict=True))
        return seconds(lambda: [engine.check(engine.parse(body), urls[0]) for body, urls in pairs])

    alone = [f"{size / time_:,.1f}" for time_ in best(engines, parsing)]
    both = [f"{size / time_:,.1f}" for time_ in best(engines, first_check)]
    for at, engine in enumerate(engines):
        if engine.distribution == "fast-robotstxt":
            alone[at] = "-"
    return alone, both


def check_speed(engines: Sequence[Engine], corpus: Corpus) -> list[str]:
    """Return checks per second on parsed files that have answered before, each URL new to them."""

    def checking(engine: Engine) -> float:
        spent, done = 0.0, 0
        for body, urls in zip(corpus.bodies, corpus.urls, strict=True):
            robots = engine.parse(body)
            engine.check(robots, urls[0])
            fresh = urls[1:]
            check = engine.check
            if engine.native and engine.distribution == "fast-robotstxt" and len(body) > 100_000:
                fresh = fresh[:20]
            start = time.perf_counter()
            for url in fresh:
                check(robots, url)
            spent += time.perf_counter() - start
            done += len(fresh)
            if spent > 4 and done > FEWEST_CHECKS:
                break
        return spent / done

    return [f"{1 / time_:,.0f}" for time_ in best(engines, checking)]


def memory(engines: Sequence[Engine], all_corpora: Iterable[Corpus]) -> list[str]:
    """Return bytes of memory for each byte of file, parsed and asked once."""
    bodies = [body for corpus in all_corpora for body in corpus.bodies]
    found: list[str] = []
    for engine in engines:
        if engine.native:
            found.append("-")
            continue
        engine.check(engine.parse(bodies[0]), ORIGIN + "/")
        tracemalloc.start()
        kept = [engine.parse(body) for body in bodies]
        for robots in kept:
            engine.check(robots, ORIGIN + "/x/y")
        used, _ = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        del kept
        found.append(f"{used / sum(map(len, bodies)):.1f}x")
    return found


# Hostile files


def _fill(line: Callable[[int], str], size: int = 500_000) -> bytes:
    lines, length, number = ["User-agent: *"], 0, 0
    while length < size:
        lines.append(line(number))
        length += len(lines[-1]) + 1
        number += 1
    return "\n".join(lines).encode()


def hostile() -> dict[str, tuple[bytes, str]]:
    """Return hostile files, each with a URL path that makes it hurt."""
    chance = random.Random(9309)
    noise = "".join(chance.choices("ab", k=8_000))
    long_a = "/" + "a" * 8_000
    return {
        "one rule (*a){30} b": (b"User-agent: *\nDisallow: /" + b"*a" * 30 + b"b", long_a),
        "500 KB of (*a){30} b": (_fill(lambda n: f"Disallow: /{'*a' * 30}b{n}"), long_a),
        "500 KB of (*a){30} *b*a": (
            _fill(lambda n: f"Disallow: /{'*a' * 30}*b*a{n}"),
            "/b" + long_a,
        ),
        "500 KB of /*word": (_fill(lambda n: f"Disallow: /*word{n}"), long_a),
        "500 KB of /*[ab]{14}": (
            _fill(lambda _: "Disallow: /*" + "".join(chance.choices("ab", k=14))),
            "/" + noise,
        ),
        "500 KB of /*a{50}ba{50}": (
            _fill(lambda n: f"Disallow: /*{'a' * 50}b{'a' * 50}{n}$"),
            "/aab" + long_a,
        ),
        "500 KB of *x?*y?": (
            _fill(lambda n: f"Disallow: /*{noise[n % 7900 : n % 7900 + 6]}*{n % 97}z"),
            "/" + noise + "0123456789z",
        ),
        "500 KB of /aaa…": (_fill(lambda n: "Disallow: /" + "a" * (n + 1)), "/" + "a" * 500 + "b"),
        "500 KB of /aaa…*b": (_fill(lambda n: f"Disallow: /{'a' * n}*b"), long_a),
        "one pattern of 500 KB": (b"User-agent: *\nDisallow: /" + b"a*" * 250_000 + b"b", long_a),
        "30,000 agents, one rule": (
            b"User-agent: *\n"
            + b"".join(b"User-agent: bot%d\n" % number for number in range(30_000))
            + b"\nDisallow: /x",
            "/x",
        ),
        "12,000 agents, garbled delays": (
            b"".join(b"User-agent: bot%d\nCrawl-delay: x\n" % n for n in range(12_000))
            + b"Disallow: /x",
            "/x",
        ),
        "17,000 groups": (
            b"\n".join(b"User-agent: b%d\nDisallow: /x" % n for n in range(17_000))
            + b"\nUser-agent: *\nDisallow: /x",
            "/x",
        ),
        "19,000 groups of *": (b"User-agent: *\nDisallow: /x\n" * 19_000, "/x"),
        "10 MB of rules": (_fill(lambda n: f"Disallow: /{n}/*x", 10_000_000), "/5/y"),
        "10 MB in one line": (b"User-agent: *\nDisallow: /" + b"x" * 10_000_000, "/x"),
        "junk bytes": (chance.randbytes(500_000), "/x"),
        "8 KB of %61 in the URL": (_fill(lambda n: f"Disallow: /{n}%61/"), "/" + "%61" * 2_700),
        "8 KB of ../ in the URL": (_fill(lambda n: f"Disallow: /{n}/"), "/a" + "/b/.." * 1_600),
    }


def hostile_once(engine_name: str, case: str) -> str:
    """Return milliseconds of parse and first check, and of a later check."""
    engine = next(engine for engine in installed() if engine.name == engine_name)
    body, path = hostile()[case]
    start = time.perf_counter()
    robots = engine.parse(body)
    engine.check(robots, ORIGIN + path)
    first = time.perf_counter() - start
    fresh = [f"{ORIGIN}{path}{number}" for number in range(3)]
    later = min(seconds(partial(engine.check, robots, url)) for url in fresh)
    return f"{1e3 * first:,.0f} / {1e3 * later:,.2f}"


def hostile_row(engines: Sequence[Engine], case: str) -> list[str]:
    """Return the times of each engine, each in a process of its own that may be stopped."""
    found: list[str] = []
    for engine in engines:
        command = [sys.executable, __file__, "--hostile-once", engine.name, case]
        try:
            run = subprocess.run(
                command, capture_output=True, text=True, timeout=HOSTILE_LIMIT, check=False
            )
            lines = run.stdout.strip().splitlines()
            found.append(lines[-1] if run.returncode == 0 and lines else "fails")
        except subprocess.TimeoutExpired:
            found.append(f"> {HOSTILE_LIMIT} s")
    return found


def print_row(label: str, cells: Iterable[str]) -> None:
    """Print one line of a Markdown table."""
    print("| " + " | ".join([label, *cells]) + " |", flush=True)


def main() -> None:
    """Print everything."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", nargs="?", type=pathlib.Path)
    parser.add_argument("--hostile-once", nargs=2, metavar=("ENGINE", "CASE"))
    parser.add_argument("--no-hostile", action="store_true")
    parser.add_argument("--only-ours", action="store_true")
    options = parser.parse_args()
    if options.hostile_once:
        print(hostile_once(*options.hostile_once))
        return
    engines = installed()[: 1 if options.only_ours else None]
    print(f"{platform.python_implementation()} {platform.python_version()}, {platform.machine()}\n")
    versions = [
        f"{engine.name} {importlib.metadata.version(engine.distribution)}"
        if engine.distribution
        else engine.name
        for engine in engines
    ]
    sets = corpora(options.folder)
    print_row("", versions)
    print_row("---", ["---:"] * len(engines))
    for corpus in sets:
        alone, both = parse_speed(engines, corpus)
        count = f"{len(corpus.bodies)} {corpus.name} files"
        print_row(f"parse, MB/s, {count}", alone)
        print_row(f"parse + first check, MB/s, {count}", both)
    for corpus in sets:
        print_row(f"checks/s, {corpus.name}", check_speed(engines, corpus))
    print_row("memory / file size", memory(engines, sets))
    if not options.no_hostile:
        for case in hostile():
            print_row(f"ms, {case}", hostile_row(engines, case))


if __name__ == "__main__":
    main()
