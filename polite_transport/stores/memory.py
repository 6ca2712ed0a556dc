"""The store of one process, and the one that all clients share by default."""

import logging
import os
import time
import weakref
from collections.abc import Callable
from typing import Any

from polite_transport.stores.base import CopyKey, Seat, Turn, Waiter
from polite_transport.stores.copies import Copies
from polite_transport.stores.turns import Turns

log = logging.getLogger("polite_transport")


class MemoryStore:
    """Turns and robots.txt copies in this process's memory, for all its threads and event loops.

    copies_bytes: what robots.txt copies may take, about, parsed rules included; the least
        recently used are dropped first, and fetched again when needed.
    clock, wall: monotonic and wall time in seconds; for tests on a virtual clock.
    name: what pickles know it by; made up where none is given.

    A deep copy is the store itself. So is a pickle where it is loaded in the same process; in
    another process it is one new store for all that was pickled with it.
    """

    def __init__(
        self,
        *,
        copies_bytes: int = 128 * 2**20,
        clock: Callable[[], float] = time.monotonic,
        wall: Callable[[], float] = time.time,
        name: str | None = None,
    ) -> None:
        self._copies_bytes = copies_bytes
        self._turns = turns = Turns(clock)
        self._copies = copies = Copies(clock, wall, copies_bytes)
        # The verbs of ``Store``, bound once: they are on the way of every request.
        self.now = wall
        self.at_hand = copies.at_hand
        self.passes = turns.passes
        self.claim = copies.claim
        self.publish = copies.publish
        self.acquire = turns.acquire
        self.renew = turns.renew
        self.release = turns.release
        self._name = name or os.urandom(16).hex()
        _alive[self._name] = self

    @property
    def front(self) -> "MemoryStore":
        """See ``Store.front``: all of it answers at once."""
        return self

    def is_blocked_by(self, thread: int, waiter: Waiter, key: CopyKey | None) -> bool:
        """See ``Store.is_blocked_by``."""
        if key is not None:
            return self._copies.is_blocked_by(thread, waiter, key)
        return isinstance(waiter, Seat) and self._turns.is_blocked_by(thread, waiter)

    def __deepcopy__(self, memo: dict[int, Any]) -> "MemoryStore":
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return _named_store, (self._name, self._copies_bytes)

    def start_anew_after_fork(self) -> None:
        """In a forked child: the seats, claims and locks are the parent's."""
        self._turns.forget_seats()
        self._copies.forget_claims()
        self.acquire = self._acquire_and_warn

    def _acquire_and_warn(self, seat: Seat) -> Turn:
        """Take the first turn of a forked child, which does not see its parent's."""
        if seat.delay or seat.alone:
            self.acquire = self._turns.acquire
            log.warning(
                "process %d was forked and keeps turns of its own: a site sees more requests than "
                "it asked for. Processes share turns through SQLiteStore(path).",
                os.getpid(),
            )
        return self._turns.acquire(seat)


_alive: weakref.WeakValueDictionary[str, MemoryStore] = weakref.WeakValueDictionary()


def _named_store(name: str, copies_bytes: int) -> MemoryStore:
    """Load a pickled store: the one of that name where it lives, else a new one."""
    store = _alive.get(name)
    if store is None:
        store = MemoryStore(copies_bytes=copies_bytes, name=name)
    return store


def _after_fork_in_child() -> None:
    for store in list(_alive.values()):
        store.start_anew_after_fork()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork_in_child)

# What all clients of this process share unless they are given another store.
PROCESS_STORE = MemoryStore()
