"""The public names load when they are asked for, and bring no client that is not used."""

import subprocess
import sys

import pytest

import polite_transport

CLIENTS = ("requests", "httpx", "urllib3", "aiohttp", "scrapy", "redis", "anyio", "sqlite3")


def imported_by(code: str) -> set[str]:
    """Return which clients a fresh Python has imported after some code."""
    # -I: neither this directory nor a user's own sitecustomize may bring them in.
    asked = f"import sys\n{code}\nprint(*(name for name in {CLIENTS!r} if name in sys.modules))"
    told = subprocess.run(
        [sys.executable, "-I", "-c", asked], check=True, capture_output=True, text=True, timeout=60
    )
    return set(told.stdout.split())


def test_the_package_alone_imports_no_client() -> None:
    assert imported_by("import polite_transport") == set()


@pytest.mark.parametrize(
    ("name", "wanted", "unwanted"),
    [
        ("PoliteSession", {"requests", "urllib3"}, {"httpx", "redis", "anyio", "sqlite3"}),
        ("PoliteAdapter", {"requests", "urllib3"}, {"httpx", "redis", "anyio", "sqlite3"}),
        ("PolitePoolManager", {"urllib3"}, {"httpx", "requests", "redis", "anyio", "sqlite3"}),
        ("PoliteTransport", {"httpx"}, {"requests", "urllib3", "redis", "sqlite3"}),
        ("AsyncPoliteTransport", {"httpx"}, {"requests", "urllib3", "redis", "sqlite3"}),
        ("Policy, Decision, parse_robots", set(), set(CLIENTS)),
        ("PoliteError, DisallowedByRobots, WaitTooLong, StoreUnavailable", set(), set(CLIENTS)),
        ("MemoryStore", set(), set(CLIENTS)),
        ("SQLiteStore", {"sqlite3"}, {"requests", "httpx", "urllib3", "redis", "anyio"}),
    ],
)
def test_a_name_imports_its_own_client_and_no_other(
    name: str, wanted: set[str], unwanted: set[str]
) -> None:
    imported = imported_by(f"from polite_transport import {name}")
    assert wanted <= imported
    assert not imported & unwanted


def test_every_public_name_is_there_and_listed() -> None:
    for name in polite_transport.__all__:
        assert getattr(polite_transport, name).__name__ == name
        assert name in dir(polite_transport)
    assert sorted(polite_transport.__all__) == polite_transport.__all__
    assert set(polite_transport._HOMES) == set(polite_transport.__all__)


def test_a_name_is_looked_up_once() -> None:
    first = polite_transport.Policy
    assert vars(polite_transport)["Policy"] is first


def test_a_name_that_is_not_there_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="PoliteSocket"):
        _ = polite_transport.PoliteSocket
    with pytest.raises(ImportError):
        exec("from polite_transport import PoliteSocket")
