"""What the tables of a SQLite store hold on to, and what they let go."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing

import pytest

from polite_transport.stores.ledger import Granted
from polite_transport.stores.tables import SCHEMA, claim_copy, prune_copies, publish_copy

NOW = 1_000_000.0
LEASE = 10.0


@pytest.fixture
def db() -> Iterator[sqlite3.Connection]:
    with closing(sqlite3.connect(":memory:")) as db:
        db.executescript(SCHEMA)
        yield db


def claim(db: sqlite3.Connection, key: str) -> None:
    found, _ = claim_copy(db, NOW, key, "a:1:0", 0.0, NOW, LEASE, lambda token: False)  # noqa: ARG005
    assert found == Granted(None)


def keys(db: sqlite3.Connection) -> list[str]:
    return [key for (key,) in db.execute("SELECT key FROM copy ORDER BY key")]


def test_a_host_that_never_answered_is_forgotten_once_nobody_waits(db: sqlite3.Connection) -> None:
    for key in ("failed", "given up", "under way"):
        claim(db, key)
    publish_copy(db, NOW, "failed", "a:1:0", "ConnectionError: no such host")
    publish_copy(db, NOW, "given up", "a:1:0", None)
    prune_copies(db, NOW + LEASE / 2)
    assert keys(db) == ["failed", "under way"]
    prune_copies(db, NOW + 3_600)
    assert keys(db) == []
