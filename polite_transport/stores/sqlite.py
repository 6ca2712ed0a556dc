"""``SQLiteStore``: turns and robots.txt copies for the processes of one machine, in one file."""

import itertools
import os
import socket
import sqlite3
import tempfile
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from polite_transport.stores.base import Turn
from polite_transport.stores.database import Database
from polite_transport.stores.datagrams import Datagrams, can_reach
from polite_transport.stores.ledger import (
    LEASE,
    Elsewhere,
    Failed,
    Granted,
    Kept,
    Leave,
    Packed,
    channel_of,
)
from polite_transport.stores.outage import OnError
from polite_transport.stores.peers import Peers
from polite_transport.stores.records import HostRecord
from polite_transport.stores.shared import SharedStore
from polite_transport.stores.temporary import remove_at_exit

# A wake-up is a datagram, which another network namespace does not get; only there is it polled.
_UNREACHABLE_POLL = 0.25
_PRUNED_EVERY = 100  # verbs,
_PRUNED_AT_ONCE = 200  # and hosts looked at: two for each verb
_LONGEST_STALE = 30 * 86_400.0  # an older copy speaks for no site (``Copy.speaks_for_outage``)

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


class SQLiteStore(SharedStore):
    """Turns and robots.txt copies in one SQLite file, for all processes of one machine.

    path: of the file, which is made where there is none; not on a network file system. None = a
        new one in a private temporary folder, for this process and those that it starts. It goes
        when this process ends, once the children that multiprocessing waits for have; a process
        that outlives it meets StoreUnavailable. One that a signal kills leaves it behind.
    timeout: seconds that a request waits for a file that is locked, before StoreUnavailable.
    lease: seconds that a process which dies in mid-request holds its host up; the same in all.
    copies_bytes: what robots.txt copies may take in this process's memory, see ``MemoryStore``.
    on_error: "raise" StoreUnavailable where the file cannot be used, or go on "local": each process
        by itself, at ``max_processes`` times each site's delay, until it can; never unpaced.
    max_processes: how many processes share the file at the most; "local" needs it.
    assume_cold: that nothing was sent before. Otherwise each host waits a delay after the file was
        made or the machine started, if this process is the first to find it so.

    Pickled, it opens the same file where it is loaded; a deep copy is the store itself.
    Raises ValueError for a path that is none, such as a URL or ``:memory:``, and for options that
    make no sense. The file is opened by the first request: what is wrong with it raises
    StoreUnavailable there.
    """

    def __init__(
        self,
        path: str | os.PathLike[str] | None = None,
        *,
        timeout: float = 5.0,
        lease: float = LEASE,
        copies_bytes: int = 128 * 2**20,
        on_error: OnError = "raise",
        max_processes: int | None = None,
        assume_cold: bool = False,
    ) -> None:
        folder = ""
        if path is None:
            folder = tempfile.mkdtemp(prefix="polite-")
            path = Path(folder) / "store.sqlite"
        self.path = os.path.abspath(path)  # noqa: PTH100 - the working folder may change, links stay
        if str(path) in ("", ":memory:") or str(path).startswith("file:"):
            raise ValueError(f"SQLiteStore({path!r}): it takes the path of a file")
        self._options = {
            "timeout": timeout,
            "lease": lease,
            "copies_bytes": copies_bytes,
            "on_error": on_error,
            "max_processes": max_processes,
            "assume_cold": assume_cold,
        }
        ledger = SQLiteLedger(self.path, timeout, lease, assume_cold=assume_cold)
        if folder:
            remove_at_exit(folder, ledger.close)
        super().__init__(
            ledger,
            lease=lease,
            copies_bytes=copies_bytes,
            on_error=on_error,
            max_processes=max_processes,
        )

    def made_of(self) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """See ``SharedStore.made_of``."""
        return (self.path,), self._options

    def __repr__(self) -> str:
        return f"SQLiteStore({self.path!r})"


class SQLiteLedger:
    """The ledger in a SQLite file; its clock is the machine's monotonic one."""

    def __init__(self, path: str, timeout: float, lease: float, *, assume_cold: bool) -> None:
        self._database = Database(path, timeout, time.monotonic, assume_cold=assume_cold)
        self._lease = lease
        self._post: socket.socket | None = None
        self._peers: Peers | None = None
        self._verbs = itertools.count(1)
        self._pruned_to = ""

    def open_mailbox(self) -> "Datagrams":
        """See ``Ledger.open_mailbox``."""
        mailbox = Datagrams()
        self._peers = mailbox.peers
        return mailbox

    def _wake(self, tokens: Sequence[str]) -> None:
        for token in tokens:
            port = token.partition(".")[0]
            # Full, forbidden or out of reach: the woken one asks again by itself, only later.
            with suppress(OSError):
                if self._post is None:
                    self._post = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
                self._post.sendto(token.encode("ascii"), ("127.0.0.1", int(port)))

    def close(self) -> None:
        """See ``Ledger.close``."""
        post, self._post = self._post, None
        if post is not None:
            post.close()
        self._database.close()

    def forget_parent(self) -> None:
        """See ``Ledger.forget_parent``."""
        self._post = None
        if self._peers is not None:
            self._peers.forget_parent()
            self._peers = None
        self._database.forget_parent()

    # --- turns ------------------------------------------------------------------------------

    def acquire(self, host: str, token: str, not_before: float) -> Turn:
        """See ``Ledger.acquire``."""
        turn, woken, ahead = self._database.change(self._acquire, host, token, not_before)
        if woken:
            self._wake((woken,))
        if not turn.granted and any(not can_reach(other, token) for other in ahead):
            return turn._replace(ask_again=min(turn.ask_again, _UNREACHABLE_POLL))
        return turn

    def _acquire(
        self, db: sqlite3.Connection, now: float, host: str, token: str, not_before: float
    ) -> tuple[Turn, str, tuple[str, ...]]:
        record = _read(db, host)
        if record.holder not in ("", token):
            self._end_ended(record, now)
        turn, woken = record.acquire(token, not_before, self._lease, now, self._database.epoch)
        _write(db, host, record)
        if next(self._verbs) % _PRUNED_EVERY == 0:
            self._prune(db, now)
        return turn, woken, (record.holder, *record.queue)

    def release(self, host: str, token: str, leave: Leave) -> float:
        """See ``Ledger.release``."""
        push, woken = self._database.change(self._release, host, token, leave)
        if woken:
            self._wake((woken,))
        return push

    def _release(
        self, db: sqlite3.Connection, now: float, host: str, token: str, leave: Leave
    ) -> tuple[float, str]:
        record = _read(db, host)
        if record.queue:
            self._end_ended(record, now)
        answer = record.release(token, leave, now, self._database.epoch)
        _write(db, host, record)
        return answer

    def _end_ended(self, record: HostRecord, now: float) -> None:
        """End the turn of a process that has ended as if its lease were over, and its places."""
        if self._has_ended(record.holder):
            record.until = min(record.until, now)
        if any(map(self._has_ended, record.queue)):
            record.queue = [each for each in record.queue if not self._has_ended(each)]

    def _has_ended(self, token: str) -> bool:
        return self._peers is not None and self._peers.has_ended(channel_of(token))

    def let_pass(self, host: str, channel: str) -> float:
        """See ``Ledger.let_pass``."""
        return self._database.change(_let_pass, host, channel)

    def renew(self, turns: Sequence[tuple[str, str]], claims: Sequence[tuple[str, str]]) -> None:
        """See ``Ledger.renew``."""
        self._database.change(self._renew, turns, claims)

    def _renew(
        self,
        db: sqlite3.Connection,
        now: float,
        turns: Sequence[tuple[str, str]],
        claims: Sequence[tuple[str, str]],
    ) -> None:
        for host, token in turns:
            record = _read(db, host)
            record.renew(token, self._lease, now)
            _write(db, host, record)
        for key, token in claims:
            db.execute(
                "UPDATE copy SET until=? WHERE key=? AND holder=?", (now + self._lease, key, token)
            )

    def _prune(self, db: sqlite3.Connection, now: float) -> None:
        """Forget the next few hosts that nobody has to wait for any more."""
        look = "SELECT max(host) FROM (SELECT host FROM turn WHERE host > ? ORDER BY host LIMIT ?)"
        (last,) = db.execute(look, (self._pruned_to, _PRUNED_AT_ONCE)).fetchone()
        db.execute(_PRUNE, (self._pruned_to, _PRUNED_AT_ONCE, now))
        self._pruned_to = last or ""
        if last is None:
            oldest = time.time() - _LONGEST_STALE
            db.execute("DELETE FROM copy WHERE expires_at < ? AND until < ?", (oldest, now))

    # --- copies -----------------------------------------------------------------------------

    def claim(
        self, key: str, token: str, waited: float, wall: float
    ) -> Kept | Granted | Elsewhere | Failed:
        """See ``Ledger.claim``."""
        answer, holder = self._database.change(self._claim, key, token, waited, wall)
        if isinstance(answer, Elsewhere) and not can_reach(holder, token):
            return Elsewhere(min(answer.ask_again, _UNREACHABLE_POLL))
        return answer

    def _claim(
        self, db: sqlite3.Connection, now: float, key: str, token: str, waited: float, wall: float
    ) -> tuple[Kept | Granted | Elsewhere | Failed, str]:
        row = db.execute(
            "SELECT head, body, digest, expires_at, kept_at, holder, until, waiting, failure, "
            "failed_at FROM copy WHERE key=?",
            (key,),
        ).fetchone()
        if row is None:
            db.execute(
                "INSERT INTO copy (key, holder, until) VALUES (?,?,?)",
                (key, token, now + self._lease),
            )
            return Granted(None), token
        head, body, digest, expires_at, kept_at, holder, until, waiting, failure, failed_at = row
        packed = None if head is None else Packed(head, body, digest, expires_at)
        if packed is not None and (expires_at > wall or kept_at > now - waited):
            return Kept(packed), ""
        if failure is not None and failed_at > now - waited:
            return Failed(failure), ""
        if holder not in ("", token) and until > now and not self._has_ended(holder):
            if token not in waiting.split():
                db.execute(
                    "UPDATE copy SET waiting=? WHERE key=?", (f"{waiting} {token}".strip(), key)
                )
            return Elsewhere(until - now), holder
        db.execute("UPDATE copy SET holder=?, until=? WHERE key=?", (token, now + self._lease, key))
        return Granted(packed), token

    def publish(self, key: str, token: str, outcome: Packed | str | None) -> None:
        """See ``Ledger.publish``."""
        self._wake(self._database.change(_publish, key, token, outcome))

    def discard(self, key: str) -> None:
        """See ``Ledger.discard``."""
        self._database.change(_discard, key)


def _read(db: sqlite3.Connection, host: str) -> HostRecord:
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


def _write(db: sqlite3.Connection, host: str, record: HostRecord) -> None:
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


def _let_pass(db: sqlite3.Connection, now: float, host: str, channel: str) -> float:
    record = _read(db, host)
    seconds = record.let_pass(channel, now)
    _write(db, host, record)
    return seconds


def _publish(
    db: sqlite3.Connection, now: float, key: str, token: str, outcome: Packed | str | None
) -> list[str]:
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


def _discard(db: sqlite3.Connection, now: float, key: str) -> None:  # noqa: ARG001
    db.execute("UPDATE copy SET head=NULL, body=NULL, digest=NULL WHERE key=?", (key,))
