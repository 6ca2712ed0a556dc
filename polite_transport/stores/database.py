"""One SQLite file that processes share: opened, checked, changed, and its troubles named.

One connection a process. Writers take turns within the process on a lock, and between processes
on SQLite's own; both waits have an end.
"""

import math
import os
import sqlite3
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Concatenate, NoReturn, ParamSpec, TypeVar

from polite_transport.stores.base import StoreFault
from polite_transport.stores.tables import SCHEMA

VERSION = 1  # of the schema, in PRAGMA user_version
APPLICATION_ID = 0x706F6C74  # "polt"; says whose file it is
# A transaction takes 20 µs, so that another attempt or two mostly does. SQLite's own wait, which
# sleeps longer and longer, is only to give a long one time; begun anew it stays short.
_SPINS = 50
_NAP = 2  # milliseconds

# Each turn writes a page or two, and only checkpoints wait for the disk: together, half the time.
_PAGE = 1024  # bytes
_CHECKPOINT_PAGES = 4096

P = ParamSpec("P")
T = TypeVar("T")

_MEND = {
    sqlite3.SQLITE_FULL: "the disk is full: free some space",
    sqlite3.SQLITE_READONLY: "the file or its folder is read-only: let this user write to both",
    sqlite3.SQLITE_PERM: "this user may not open it",
    sqlite3.SQLITE_CANTOPEN: "it cannot be opened: its folder has to exist, and to be writable",
    sqlite3.SQLITE_NOTADB: "it is not a SQLite file: name another, or move it away",
    sqlite3.SQLITE_CORRUPT: "it is damaged: move it away, and a new one will be made",
    sqlite3.SQLITE_IOERR: "its disk cannot be read or written, or it was moved away "
    "without its -wal and -shm: mend that, or name another file",
}


class Database:
    """The file, and this process's connection to it.

    clock: monotonic, the same for all processes of the machine.
    patience: seconds to wait for other writers, at the most.
    assume_cold: whether a file that is new when it is opened first, or was last used before the
        machine was started, has no past that anyone has to wait for.
    """

    def __init__(
        self, path: str, patience: float, clock: Callable[[], float], *, assume_cold: bool = False
    ) -> None:
        self.path = path
        self.epoch = 0.0
        self._assume_cold = assume_cold
        self._patience = patience
        self._clock = clock
        self._lock = threading.Lock()
        self._connection: sqlite3.Connection | None = None
        self._identity = (0, 0)

    def change(
        self,
        act: Callable[Concatenate[sqlite3.Connection, float, P], T],
        *args: P.args,
        **kwargs: P.kwargs,
    ) -> T:
        """Do something in one transaction; return what it returns.

        act: takes the connection and the clock's time within the transaction first.
        Raises StoreFault.
        """
        started = time.monotonic()
        deadline = started + self._patience
        if not self._lock.acquire(timeout=self._patience):
            self._busy(started)
        try:
            connection = self._opened(deadline)
            _begin(connection, deadline)
            try:
                answer = act(connection, self._clock(), *args, **kwargs)
                connection.execute("COMMIT")
            except BaseException:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
                raise
            else:
                return answer
        except sqlite3.Error as error:
            self._fail(error, started)
        finally:
            self._lock.release()

    def _opened(self, deadline: float) -> sqlite3.Connection:
        """Return the connection, anew where the file is not the one that it was opened on."""
        connection = self._connection
        if connection is not None:
            # Its handle would go on working on a deleted file, in a world of its own.
            if self._identity == _identity(self.path):
                return connection
            self._drop()
        connection = sqlite3.connect(
            self.path, timeout=0.0, isolation_level=None, check_same_thread=False
        )
        try:
            self._prepare(connection, deadline)
        except BaseException:
            connection.close()
            raise
        self._connection = connection
        return connection

    def _prepare(self, connection: sqlite3.Connection, deadline: float) -> None:
        _begin(connection, deadline)  # what is asked about the file is asked of one state of it
        try:
            is_empty = self._refuse_others(connection)
        finally:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
        if is_empty:
            connection.execute(f"PRAGMA page_size={_PAGE}")
        _use_wal(connection, deadline)
        connection.execute("PRAGMA synchronous=NORMAL")  # a crash of the machine may lose the last
        connection.execute(f"PRAGMA wal_autocheckpoint={_CHECKPOINT_PAGES}")
        _begin(connection, deadline)
        try:
            if self._refuse_others(connection):
                for statement in SCHEMA.split(";"):
                    connection.execute(statement)
                connection.execute(f"PRAGMA application_id={APPLICATION_ID}")
                connection.execute(f"PRAGMA user_version={VERSION}")
            self.epoch = self._clock_of(connection)
            connection.execute("COMMIT")
        except BaseException:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            raise
        self._identity = _identity(self.path)
        self._assume_cold = False  # what is lost from now on was sent while we were there

    def _refuse_others(self, connection: sqlite3.Connection) -> bool:
        """Refuse a file that is not ours to write to; return whether it is empty."""
        version, owner, tables = (
            connection.execute(statement).fetchone()[0]
            for statement in (
                "PRAGMA user_version",
                "PRAGMA application_id",
                "SELECT count(*) FROM sqlite_master",
            )
        )
        if not (version or owner or tables):
            return True
        if owner != APPLICATION_ID:
            raise StoreFault(f"{self.path} is another program's database: name another file")
        if version != VERSION:
            raise StoreFault(
                f"{self.path} was made by another version of polite_transport (its format is "
                f"{version}, this one's {VERSION}): use one version in all processes, or name "
                "another file"
            )
        return False

    def _clock_of(self, connection: sqlite3.Connection) -> float:
        """Return the file's epoch, and forget what was timed by the clock of an earlier boot."""
        now, boot = self._clock(), _boot()
        known = connection.execute("SELECT boot, epoch FROM clock").fetchone()
        if known is not None and known[0] == boot and known[1] <= now:
            return float(known[1])
        connection.execute("DELETE FROM clock")
        connection.execute("DELETE FROM turn")
        connection.execute(
            "UPDATE copy SET kept_at=0, holder='', until=0, waiting='', failure=NULL, failed_at=0"
        )
        epoch = -math.inf if self._assume_cold else now
        connection.execute("INSERT INTO clock VALUES (?, ?)", (boot, epoch))
        return epoch

    def _fail(self, error: sqlite3.Error, started: float) -> NoReturn:
        code = getattr(error, "sqlite_errorcode", 0) & 0xFF  # the rest of it says where in SQLite
        if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
            self._busy(started)
        if code != sqlite3.SQLITE_FULL:
            self._drop()  # opened anew the next time: by then it may be mended, or another
        mend = _MEND.get(code, "SQLite cannot use it")
        if code == sqlite3.SQLITE_CANTOPEN and Path(self.path).is_dir():
            mend = "it is a folder: name a file in it"
        raise StoreFault(f"{self.path}: {mend} ({error})") from error

    def _busy(self, started: float) -> NoReturn:
        spent = time.monotonic() - started
        raise StoreFault(
            f"{self.path} has been locked by another process for {spent:.1f} s: look for one that "
            "is stopped, or for a program that has the file open in a transaction",
            passing=True,
            spent=spent,
            patience=self._patience,
        )

    def _drop(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    def close(self) -> None:
        """Close the connection."""
        with self._lock:
            self._drop()

    def forget_parent(self) -> None:
        """In a forked child: the connection is the parent's, and closing it here would harm it."""
        self._lock = threading.Lock()
        if self._connection is not None:
            _of_parents.append(self._connection)
            self._connection = None


_of_parents: list[sqlite3.Connection] = []


def _begin(connection: sqlite3.Connection, deadline: float) -> None:
    """Begin to write, once the others have written."""
    while not any(_begins(connection, deadline) for _ in range(_SPINS)):
        connection.execute(f"PRAGMA busy_timeout={_NAP}")
        try:
            if _begins(connection, deadline):
                return
        finally:
            connection.execute("PRAGMA busy_timeout=0")


def _begins(connection: sqlite3.Connection, deadline: float) -> bool:
    try:
        connection.execute("BEGIN IMMEDIATE")
    except sqlite3.OperationalError as error:
        if not _is_busy(error) or time.monotonic() >= deadline:
            raise
        _yield()
        return False
    return True


_yield: Callable[[], None] = getattr(os, "sched_yield", lambda: None)


def _use_wal(connection: sqlite3.Connection, deadline: float) -> None:
    """Switch to the write-ahead log, which SQLite refuses at once where another process writes."""
    while True:
        try:
            connection.execute("PRAGMA journal_mode=WAL").fetchone()
        except sqlite3.OperationalError as error:
            if not _is_busy(error) or time.monotonic() >= deadline:
                raise
            _begin(connection, deadline)  # waits for the other one
            connection.execute("ROLLBACK")
        else:
            return


def _is_busy(error: sqlite3.Error) -> bool:
    return error.sqlite_errorcode & 0xFF in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)


def _identity(path: str) -> tuple[int, int]:
    """Return what tells this file from another of the same name; (0, 0) where there is none."""
    try:
        found = os.stat(path)  # noqa: PTH116 - on the way of every turn, and Path costs five times as much
    except OSError:
        return 0, 0
    return found.st_dev, found.st_ino


def _boot() -> str:
    """Return what tells this run of the machine from earlier ones.

    Empty where the system does not say; then a clock that went backwards has to do.
    """
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    except OSError:
        return ""
