"""The two tables of a SQLite store: turns by host, copies of robots.txt by key.

Each function stands within one transaction, which is the caller's. now: by the store's clock.
"""

import sqlite3
import time
from collections.abc import Callable

from polite_transport.stores.copies import CLAIM_LIFE
from polite_transport.stores.ledger import Elsewhere, Failed, Granted, Kept, Packed
from polite_transport.stores.records import HostRecord

_LONGEST_STALE = 30 * 86_400.0  # an older copy speaks for no site (``Copy.speaks_for_outage``)

SCHEMA = """
CREATE TABLE turn (
    host TEXT PRIMARY KEY, last REAL, delay REAL, floor REAL, strikes INTEGER, holder TEXT,
    is_sending INTEGER, until REAL, pass_until REAL, passing TEXT, queue TEXT, needed_until REAL
) WITHOUT ROWID;
CREATE TABLE copy (
    key TEXT PRIMARY KEY, head BLOB, body BLOB, digest BLOB, expires_at REAL, kept_at REAL,
    holder TEXT NOT NULL DEFAULT '', until REAL NOT NULL DEFAULT 0,
    waiting TEXT NOT NULL DEFAULT '', failure TEXT, failed_at REAL
);
CREATE TABLE clock (boot TEXT, epoch REAL);
"""

_COLUMNS = (
    "host, last, delay, floor, strikes, holder, is_sending, until, pass_until, passing, queue, "
    "needed_until"
)
_READ = (
    "SELECT last, delay, floor, strikes, holder, is_sending, until, pass_until, passing, queue "
    "FROM turn WHERE host=?"
)
_WRITE = f"INSERT OR REPLACE INTO turn ({_COLUMNS}) VALUES (?,?,?,?,?,?,?,?,?,?,?,?)"  # noqa: S608
_PRUNE = """
DELETE FROM turn WHERE host IN
(SELECT host FROM turn WHERE host > ? ORDER BY host LIMIT ?) AND needed_until < ?
"""


def read_turn(db: sqlite3.Connection, host: str) -> HostRecord:
    """Return what is kept for a host, or what holds for one that was never visited."""
    row = db.execute(_READ, (host,)).fetchone()
    if row is None:
        return HostRecord()
    last, delay, floor, strikes, holder, is_sending, until, pass_until, passing, queue = row
    return HostRecord(
        last,
        delay,
        floor,
        strikes,
        holder,
        is_sending != 0,
        until,
        pass_until,
        passing,
        queue.split() if queue else [],
    )


def write_turn(db: sqlite3.Connection, host: str, record: HostRecord) -> None:
    """Keep what holds for a host from now on."""
    values = (
        host,
        record.last,
        record.delay,
        record.floor,
        record.strikes,
        record.holder,
        record.is_sending,
        record.until,
        record.pass_until,
        record.passing,
        " ".join(record.queue),
        record.needed_until,
    )
    db.execute(_WRITE, values)


def prune_turns(db: sqlite3.Connection, now: float, after: str, count: int) -> str:
    """Forget hosts that nobody has to wait for any more, of the next few in order.

    after: the last host that was looked at; "" for none. Returns the last one now, "" at the end.
    """
    look = "SELECT max(host) FROM (SELECT host FROM turn WHERE host > ? ORDER BY host LIMIT ?)"
    (last,) = db.execute(look, (after, count)).fetchone()
    db.execute(_PRUNE, (after, count, now))
    return last or ""


def claim_copy(
    db: sqlite3.Connection,
    now: float,
    key: str,
    token: str,
    waited: float,
    wall: float,
    lease: float,
    has_ended: Callable[[str], bool],
) -> tuple[Kept | Granted | Elsewhere | Failed, str]:
    """See ``Ledger.claim``; return also the token that has the claim.

    has_ended: whether the process of a token is no more.
    """
    row = db.execute(
        "SELECT head, body, digest, expires_at, kept_at, holder, until, waiting, failure, "
        "failed_at FROM copy WHERE key=?",
        (key,),
    ).fetchone()
    if row is None:
        db.execute(
            "INSERT INTO copy (key, holder, until) VALUES (?,?,?)",
            (key, token, now + lease),
        )
        return Granted(None), token
    head, body, digest, expires_at, kept_at, holder, until, waiting, failure, failed_at = row
    packed = None if head is None else Packed(head, body, digest, expires_at)
    if packed is not None and (expires_at > wall or kept_at > now - waited):
        return Kept(packed), ""
    if failure is not None and failed_at > now - waited:
        return Failed(failure), ""
    if holder not in ("", token) and until > now and not has_ended(holder):
        if token not in waiting.split():
            db.execute("UPDATE copy SET waiting=? WHERE key=?", (f"{waiting} {token}".strip(), key))
        return Elsewhere(until - now), holder
    db.execute("UPDATE copy SET holder=?, until=? WHERE key=?", (token, now + lease, key))
    return Granted(packed), token


def publish_copy(
    db: sqlite3.Connection, now: float, key: str, token: str, outcome: Packed | str | None
) -> list[str]:
    """See ``Ledger.publish``; return the tokens to be woken."""
    row = db.execute("SELECT holder, waiting FROM copy WHERE key=?", (key,)).fetchone()
    if row is None:
        db.execute("INSERT INTO copy (key) VALUES (?)", (key,))
        row = "", ""
    if isinstance(outcome, Packed):  # a fact, even from one whose claim had ended
        db.execute(
            "UPDATE copy SET head=?, body=?, digest=?, expires_at=?, kept_at=? WHERE key=?",
            (*outcome, now, key),
        )
    holder, waiting = row
    if holder != token:
        others = [each for each in waiting.split() if each != token]
        db.execute("UPDATE copy SET waiting=? WHERE key=?", (" ".join(others), key))
        return []
    if isinstance(outcome, str):
        db.execute("UPDATE copy SET failure=?, failed_at=? WHERE key=?", (outcome, now, key))
    db.execute("UPDATE copy SET holder='', until=0, waiting='' WHERE key=?", (key,))
    return list(waiting.split())


def renew_claim(db: sqlite3.Connection, key: str, token: str, until: float) -> None:
    """Let a claim end later, if it is still the token's."""
    db.execute("UPDATE copy SET until=? WHERE key=? AND holder=?", (until, key, token))


def discard_copy(db: sqlite3.Connection, now: float, key: str) -> None:  # noqa: ARG001
    """See ``Ledger.discard``."""
    db.execute("UPDATE copy SET head=NULL, body=NULL, digest=NULL WHERE key=?", (key,))


def prune_copies(db: sqlite3.Connection, now: float) -> None:
    """Forget copies that are too old to stand in for anything, and failures that nobody shares."""
    db.execute(
        "DELETE FROM copy WHERE until < ? AND (expires_at < ? "
        "OR (expires_at IS NULL AND coalesce(failed_at, 0) < ?))",
        (now, time.time() - _LONGEST_STALE, now - CLAIM_LIFE),
    )
