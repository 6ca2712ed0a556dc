"""The package is built in floors: a file imports only lower floors, or its own part.

Imports under ``TYPE_CHECKING`` and inside functions count like any other: what a file names, it
depends on.
"""

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[2] / "polite_transport"

# A part is a file or a folder directly in the package. Parts of one floor do not know each other.
FLOORS: tuple[tuple[str, ...], ...] = (
    # Values and their checks; when we may send; what a test takes for granted.
    ("url", "options", "pacing", "assumption"),
    ("policy", "robots"),  # what the program wants; what the site asks
    ("decision", "stores", "page"),  # both together; where state lives; a page's own rules
    ("errors", "steps"),  # why not; the effects that the logic asks for
    ("flow",),  # the politeness logic
    ("drive", "visitor"),  # the only home of sleep; who we are to a site
    ("sending",),  # what every client does around one request
    ("clients",),  # how HTTP clients plug in
    ("retrofit", "testing"),
    ("cli",),
)
FLOOR = {part: floor for floor, parts in enumerate(FLOORS) for part in parts}
# The test site must not lean on the code that it judges.
HIGHEST_IMPORT = {part: floor - 1 for part, floor in FLOOR.items()} | {"testing": 1}

# Each client module costs its users one HTTP client, so none imports another; a second file of the
# same client is named after it.
CLIENT_MAY_IMPORT = {("requests", "urllib3"), ("httpx", "httpx_routes")}

PURE = {part for floor in FLOORS[: FLOOR["flow"] + 1] for part in floor} - {"stores"}
CLIENT_PACKAGES = {"requests", "httpx", "urllib3", "urllib.request", "aiohttp", "scrapy"}
IMPURE = CLIENT_PACKAGES | {
    *("socket", "ssl", "select", "selectors", "http", "subprocess", "sqlite3", "redis"),
    *("anyio", "asyncio", "trio", "sniffio", "threading", "concurrent"),
}

BELOW_CLIENTS = {part for part, floor in FLOOR.items() if floor < FLOOR["clients"]}

WAITS = {
    *("time.sleep", "asyncio.sleep", "threading.Event", "threading.Condition", "asyncio.Event"),
    *(f"{loop}.{name}" for loop in ("anyio", "trio") for name in ("sleep", "sleep_until", "Event")),
}
MAY_WAIT = {"drive", "testing"}


@dataclass(frozen=True)
class Module:
    name: str  # dotted, without the package: "robots.parse"; "" for the package itself
    place: Path
    tree: ast.Module

    @property
    def part(self) -> str:
        return self.name.partition(".")[0]

    @property
    def is_folder(self) -> bool:
        return self.place.name == "__init__.py"


@dataclass(frozen=True)
class Import:
    line: int
    target: str  # dotted and absolute: "time.sleep", "polite_transport.robots.parse.Robots"


def modules_of(package: Path) -> list[Module]:
    found: list[Module] = []
    for place in sorted(package.rglob("*.py")):
        parts = place.relative_to(package).with_suffix("").parts
        name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        found.append(Module(name, place, ast.parse(place.read_bytes())))
    return found


def imports_of(module: Module, package: str) -> Iterator[Import]:
    for node in ast.walk(module.tree):
        match node:
            case ast.Import(names=names):
                for alias in names:
                    yield Import(node.lineno, alias.name)
            case ast.ImportFrom(module=source, names=names, level=level):
                for alias in names:
                    pieces = [*_base(module, package, level), *filter(None, [source]), alias.name]
                    yield Import(node.lineno, ".".join(pieces))
            case ast.Call(
                func=ast.Name(id=called) | ast.Attribute(attr=called),
                args=[ast.Constant(value=str(target)), *_],
            ) if called in {"import_module", "__import__"}:
                yield Import(node.lineno, target)


def _base(module: Module, package: str, level: int) -> list[str]:
    """The package that ``level`` leading dots stand for in ``module``."""
    if level == 0:
        return []
    here = [package, *filter(None, module.name.split("."))]
    return here[: len(here) - (level - 1 if module.is_folder else level)]


def references_of(module: Module, package: str) -> Iterator[Import]:
    """Every imported name that the module uses, as the dotted name it stands for."""
    stands_for: dict[str, str] = {}
    for node in ast.walk(module.tree):
        match node:
            case ast.Import(names=names):
                for alias in names:
                    bound = alias.asname or alias.name.partition(".")[0]
                    stands_for[bound] = alias.name if alias.asname else bound
            case ast.ImportFrom(module=source, names=names, level=0):
                for alias in names:
                    stands_for[alias.asname or alias.name] = f"{source}.{alias.name}"
    yield from imports_of(module, package)
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Attribute) and (dotted := _dotted(node)):
            first, _, rest = dotted.partition(".")
            yield Import(node.lineno, f"{stands_for.get(first, first)}.{rest}")


def _dotted(node: ast.expr) -> str | None:
    match node:
        case ast.Name(id=name):
            return name
        case ast.Attribute(value=value, attr=name) if base := _dotted(value):
            return f"{base}.{name}"
    return None


def within(target: str, names: Iterable[str]) -> bool:
    return any(target == name or target.startswith(f"{name}.") for name in names)


def violations(package: Path) -> list[str]:
    """Return what in ``package`` breaks the rules above, one line for each, file and line first."""
    modules = modules_of(package)
    names = {module.name for module in modules}
    found: list[str] = []
    for module in modules:
        if module.part and module.part not in FLOOR:
            found.append(
                f"{module.place}:1: add {module.part!r} to FLOORS in {Path(__file__).name}"
            )
            continue
        for step in imports_of(module, package.name):
            target = _own(step.target, package.name, names)
            broken = (
                _breaks_purity(module, step.target) if target is None else _climbs(module, target)
            )
            if broken:
                found.append(f"{module.place}:{step.line}: {broken}")
        found += [
            f"{module.place}:{use.line}: {use.target} waits, and only drive.py may"
            for use in references_of(module, package.name)
            if use.target in WAITS and module.part not in MAY_WAIT
        ]
    return sorted(set(found))


def _own(target: str, package: str, names: set[str]) -> str | None:
    """The module of ours that an import of ``target`` loads; None = somebody else's."""
    if not within(target, [package]):
        return None
    name = target[len(package) + 1 :]
    while name and name not in names:
        name = name.rpartition(".")[0]
    return name


def _climbs(module: Module, target: str) -> str | None:
    part = target.partition(".")[0]
    if not module.part:
        return None  # the package's own __init__ names everything; that it is lazy, others test
    if not part:
        return "import the module that has it, not the package, which names every floor"
    floor = FLOOR.get(part, len(FLOORS))
    if part == module.part == "clients":
        ours, theirs = module.name.split(".")[1:2], target.split(".")[1:2]
        if ours != theirs and (*ours, *theirs) not in CLIENT_MAY_IMPORT:
            return f"{module.name} imports {target}: clients do not import each other"
    elif part != module.part and floor > HIGHEST_IMPORT[module.part]:
        return f"{module.part} (floor {FLOOR[module.part]}) imports {part} (floor {floor})"
    return None


def _breaks_purity(module: Module, target: str) -> str | None:
    if not module.part:
        return None
    if module.part in PURE and within(target, IMPURE):
        return f"{module.part} decides and does no I/O, so it cannot import {target}"
    if module.part in BELOW_CLIENTS and within(target, CLIENT_PACKAGES):
        return f"{target} is a client, and clients are plugged in above {module.part}"
    return None


def test_the_package_keeps_its_floors() -> None:
    modules = modules_of(PACKAGE)
    assert {"errors", "robots", "flow", "drive", "clients"} <= {module.part for module in modules}
    assert violations(PACKAGE) == []


GOOD = {
    "__init__.py": (
        "from typing import TYPE_CHECKING\n"
        "if TYPE_CHECKING:\n    from polite_transport.clients.requests import PoliteSession\n"
    ),
    "url.py": "import re",
    "pacing/turns.py": "import math",
    "robots/__init__.py": "from polite_transport.robots.parse import parse_robots",
    "robots/parse.py": "from urllib.parse import urlsplit\nfrom .. import url",
    "decision.py": "import enum\nfrom .robots.parse import Rule",
    "errors.py": "from polite_transport.decision import Decision",
    "flow.py": "from polite_transport import errors, robots",
    "stores/__init__.py": "",
    "stores/memory.py": "import threading\nlock = threading.Lock()",
    "visitor.py": "from polite_transport.flow import Call",
    "drive.py": "import time\nfrom polite_transport import flow, stores\ntime.sleep(0)",
    "clients/__init__.py": "",
    "clients/urllib3.py": "import urllib3\nfrom polite_transport import drive",
    "clients/requests.py": "import requests\nfrom .urllib3 import PolitePool",
    "clients/httpx.py": "import httpx\nfrom polite_transport.errors import PoliteError",
    "testing/site.py": "import asyncio\nasyncio.Event()\nfrom polite_transport.robots import parse",
    "cli.py": "from polite_transport.testing import site",
}


def grow(root: Path, files: dict[str, str]) -> Path:
    package = root / "polite_transport"
    for name, text in files.items():
        place = package / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text, encoding="utf-8")
    return package


def test_a_tree_that_keeps_every_rule_has_no_violations(tmp_path: Path) -> None:
    assert violations(grow(tmp_path, GOOD)) == []


@pytest.mark.parametrize(
    ("file", "text", "said"),
    [
        (
            "robots/parse.py",
            "from polite_transport.flow import load",
            "robots (floor 1) imports flow (floor 4)",
        ),
        ("robots/parse.py", "from polite_transport import flow", "robots (floor 1)"),
        ("robots/parse.py", "from .. import flow", "robots (floor 1)"),
        ("robots/parse.py", "import polite_transport.flow", "robots (floor 1)"),
        ("robots/__init__.py", "from ..flow import load", "robots (floor 1)"),
        ("pacing/turns.py", "from polite_transport.robots import parse", "imports robots"),
        ("robots/parse.py", "def late():\n    from polite_transport import flow", "imports flow"),
        ("decision.py", "if TYPE_CHECKING:\n    from .flow import load", "imports flow (floor 4)"),
        ("decision.py", "import_module('polite_transport.flow')", "imports flow (floor 4)"),
        ("decision.py", "importlib.import_module('polite_transport.flow')", "imports flow"),
        ("stores/memory.py", "from polite_transport.decision import Decision", "imports decision"),
        ("flow.py", "from polite_transport.drive import run", "imports drive"),
        ("drive.py", "from polite_transport.clients import urllib3", "imports clients"),
        ("drive.py", "import polite_transport", "import the module that has it"),
        ("drive.py", "from polite_transport import PoliteSession", "import the module that has it"),
        ("clients/httpx.py", "from .requests import PoliteSession", "do not import each other"),
        ("clients/httpx.py", "from polite_transport.clients import urllib3", "each other"),
        ("clients/urllib3.py", "from . import requests", "do not import each other"),
        ("clients/__init__.py", "from .httpx import PoliteTransport", "do not import each other"),
        ("testing/site.py", "from polite_transport.flow import load", "imports flow (floor 4)"),
        ("testing/site.py", "from polite_transport.clients import httpx", "imports clients"),
        ("clients/httpx.py", "from polite_transport.testing import site", "imports testing"),
        ("robots/parse.py", "import threading", "does no I/O"),
        ("robots/parse.py", "from urllib import request", "cannot import urllib.request"),
        ("decision.py", "import socket", "does no I/O"),
        ("flow.py", "import anyio.lowlevel", "does no I/O"),
        ("flow.py", "from http.client import HTTPConnection", "does no I/O"),
        ("stores/memory.py", "import httpx", "httpx is a client"),
        ("drive.py", "import urllib.request", "urllib.request is a client"),
        ("flow.py", "import time\ntime.sleep(1)", "flow.py:2: time.sleep waits"),
        ("stores/memory.py", "import time as t\nnap = t.sleep", "memory.py:2: time.sleep waits"),
        ("stores/memory.py", "from time import sleep as nap", "memory.py:1: time.sleep waits"),
        ("clients/httpx.py", "import anyio\nasync def f(): await anyio.sleep(1)", "anyio.sleep"),
        ("clients/httpx.py", "import asyncio\nf = asyncio.sleep", "asyncio.sleep waits"),
        ("clients/httpx.py", "import trio\nf = trio.sleep", "trio.sleep waits"),
        ("stores/memory.py", "import threading\nthreading.Event().wait(1)", "threading.Event"),
        ("stores/memory.py", "from threading import Condition", "threading.Condition waits"),
        ("telemetry.py", "", "add 'telemetry' to FLOORS in test_floors.py"),
        ("telemetry/spans.py", "", "add 'telemetry' to FLOORS in test_floors.py"),
    ],
)
def test_each_broken_rule_is_found(tmp_path: Path, file: str, text: str, said: str) -> None:
    found = violations(grow(tmp_path, GOOD | {file: text}))
    assert len(found) == 1, found
    assert said in found[0]
