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
from polite_transport.stores.tables import (
    claim_copy,
    discard_copy,
    prune_copies,
    prune_turns,
    publish_copy,
    read_turn,
    renew_claim,
    write_turn,
)
from polite_transport.stores.temporary import remove_at_exit

# A wake-up is a datagram, which another network namespace does not get; only there is it polled.
_UNREACHABLE_POLL = 0.25
_PRUNED_EVERY = 100  # verbs,
_PRUNED_AT_ONCE = 200  # and hosts looked at: two for each verb


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
        record = read_turn(db, host)
        if record.holder not in ("", token):
            self._end_ended(record, now)
        turn, woken = record.acquire(token, not_before, self._lease, now, self._database.epoch)
        write_turn(db, host, record)
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
        record = read_turn(db, host)
        if record.queue:
            self._end_ended(record, now)
        answer = record.release(token, leave, now, self._database.epoch)
        write_turn(db, host, record)
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
            record = read_turn(db, host)
            record.renew(token, self._lease, now)
            write_turn(db, host, record)
        for key, token in claims:
            renew_claim(db, key, token, now + self._lease)

    def _prune(self, db: sqlite3.Connection, now: float) -> None:
        """Forget the next few hosts that nobody has to wait for any more."""
        self._pruned_to = prune_turns(db, now, self._pruned_to, _PRUNED_AT_ONCE)
        if not self._pruned_to:
            prune_copies(db, now)

    # --- copies -----------------------------------------------------------------------------

    def claim(
        self, key: str, token: str, waited: float, wall: float
    ) -> Kept | Granted | Elsewhere | Failed:
        """See ``Ledger.claim``."""
        answer, holder = self._database.change(
            claim_copy, key, token, waited, wall, self._lease, self._has_ended
        )
        if isinstance(answer, Elsewhere) and not can_reach(holder, token):
            return Elsewhere(min(answer.ask_again, _UNREACHABLE_POLL))
        return answer

    def publish(self, key: str, token: str, outcome: Packed | str | None) -> None:
        """See ``Ledger.publish``."""
        self._wake(self._database.change(publish_copy, key, token, outcome))

    def discard(self, key: str) -> None:
        """See ``Ledger.discard``."""
        self._database.change(discard_copy, key)


def _let_pass(db: sqlite3.Connection, now: float, host: str, channel: str) -> float:
    record = read_turn(db, host)
    seconds = record.let_pass(channel, now)
    write_turn(db, host, record)
    return seconds
