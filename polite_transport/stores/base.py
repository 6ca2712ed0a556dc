"""The contract between the politeness logic and the place where turns and copies live.

What every store keeps:

- Each call is one short atomic operation. None of them waits for a turn.
- The store owns the clock of turns. It hands out durations, never points in time.
- Calls are idempotent by seat or waiter: asking twice changes nothing.
- ``acquire`` and ``claim`` raise StoreFault where the store cannot be used. Nothing else does:
  ``release`` and ``publish`` make up for it later, or let the turn or claim end by itself.
- What lies on a disk or across a network may take its time over that. ``front`` never does: it
  answers from this process's memory, or raises AskShared, so that an event loop is never blocked.
"""

import threading
import time
from collections.abc import Callable
from typing import Literal, NamedTuple, Protocol

from polite_transport.robots.access import Copy, Reply


class StoreFault(Exception):
    """A shared store cannot be used; the politeness logic makes a StoreUnavailable of it.

    cause: one clause for people, what to do included; never a password.
    passing: whether it may be over in a moment, so that it is worth asking again.
    spent: seconds that it took to find out.
    patience: seconds in all, for which the store wants to be asked again.
    """

    def __init__(
        self, cause: str, *, passing: bool = False, spent: float = 0.0, patience: float = 0.0
    ) -> None:
        super().__init__(cause)
        self.cause = cause
        self.passing = passing
        self.spent = spent
        self.patience = patience


class AskShared(Exception):
    """What this process knows by itself does not answer: the shared store has to be asked."""


class Waiter:
    """Someone who may have to wait for another: in a host's queue, or for a robots.txt copy.

    wake: called, from whichever thread, when the wait is over. Set by the driver just before it
        waits; a driver whose event loop is closed raises RuntimeError there.
    ready: whether the wait is over. A waker sets it before it reads ``wake``, a driver reads it
        after it has set ``wake``, so that no wake-up is lost.
    token: what a shared store knows it by; empty where it has not been asked.
    thread: the thread that has to run for this one to go on.
    ended: whether the event loop that it lives in is closed, so that it will never go on; None
        for one that lives in a thread.
    came_at: when it began to ask, by the machine's monotonic clock.
    """

    __slots__ = ("came_at", "ended", "ready", "thread", "token", "wake")

    def __init__(self) -> None:
        self.wake: Callable[[], object] | None = None
        self.ready = False
        self.token = ""
        self.came_at = time.monotonic()
        self.thread = threading.get_ident()
        self.ended: Callable[[], bool] | None = None

    @property
    def is_gone(self) -> bool:
        """Whether it will never go on."""
        return self.ended is not None and self.ended()

    def wake_up(self) -> bool:
        """Wake it, where it waits already; return False where its event loop is closed."""
        try:
            if self.wake is not None:
                self.wake()
        except RuntimeError:
            return False
        return True


class Seat(Waiter):
    """One request's place in its host's queue.

    host: ASCII name without port.
    delay: seconds that this request is bound to.
    limit: seconds that it may hold the turn once it is sending.
    alone: whether it takes a turn even where its delay is 0, because what the site asks for is
        not known yet: the fetch of robots.txt.

    The rest is the store's: where the seat stands, and when its turn ends at the latest.
    """

    __slots__ = ("alone", "delay", "held", "host", "limit", "queued", "until")

    def __init__(self, host: str, delay: float, limit: float, *, alone: bool = False) -> None:
        super().__init__()
        self.host = host
        self.delay = delay
        self.limit = limit
        self.alone = alone
        self.held = False
        self.queued = False
        self.until = 0.0


class CopyWaiter(Waiter):
    """One request that needs a copy of robots.txt.

    outcome: what the fetch that it waits for came to.
    since: when it first asked, by the store's own clock.
    """

    __slots__ = ("outcome", "since")

    def __init__(self) -> None:
        super().__init__()
        self.outcome: Copy | Reply | None = None
        self.since = 0.0


class Turn(NamedTuple):
    """Where a seat stands.

    granted: whether the turn is ours; with no wait left it starts now, and its limit runs.
    wait: seconds until it may start; while others are before us, at the least.
    pushed: the part of it that the site asked for (Retry-After) or that back-off added.
    ask_again: seconds after which to ask again unless woken, because the turn of the one before
        us ends then at the latest; 0.0 where granted.
    """

    granted: bool
    wait: float
    pushed: float = 0.0
    ask_again: float = 0.0


NOW = Turn(granted=True, wait=0.0)


class CopyKey(NamedTuple):
    """Which requests share a copy of robots.txt.

    A site may answer another robot differently; a policy that stays on one host, wants fewer bytes,
    waits less or asks more often would read something else.

    max_bytes: Policy.robots_max_bytes. timeout, ttl: Policy.robots_timeout and robots_ttl, seconds.
    via: how it was reached where not everyone should rely on that, see ``Call.via``.
    """

    origin: str
    product_token: str
    redirects: Literal["follow", "same-host"]
    max_bytes: int
    timeout: float
    ttl: float
    via: str = ""


class Claimed(NamedTuple):
    """The copy is ours to fetch. last: the copy held before, to refresh or to fall back on."""

    last: Copy | None


class Busy(NamedTuple):
    """Another fetches the copy. ask_again: seconds after which to ask again unless woken."""

    ask_again: float


class Store(Protocol):
    """Where turns and robots.txt copies live. One interface, synchronous, for every store."""

    @property
    def front(self) -> "Store":
        """What answers at once, from memory; its verbs raise AskShared where that is not enough."""
        ...

    def now(self) -> float:
        """Return the wall clock, seconds since the epoch: copies have dates, turns do not."""
        ...

    def at_hand(self, key: CopyKey) -> Copy | None:
        """Return a copy that counts, where this process has one; nothing is claimed."""
        ...

    def passes(self, host: str) -> bool:
        """Let a request that is bound to no delay come or go without a seat, if that will do.

        Its time is kept for one that is bound. False: it takes a seat, to wait for others, or
        since what its answer says of the host counts.
        """
        ...

    def claim(self, key: CopyKey, waiter: CopyWaiter) -> Copy | Reply | Claimed | Busy:
        """Return a copy that counts, or the right to fetch it, or that another does.

        A Reply is what the fetch that the waiter has waited for came to where the site gave no
        answer at all: all who waited share it.
        """
        ...

    def publish(self, key: CopyKey, waiter: CopyWaiter, outcome: Copy | Reply | None) -> None:
        """End the waiter's claim.

        outcome: the copy, from now on everyone's; a Reply without status, for those who wait now;
            None gives the claim to the next of them.
        """
        ...

    def acquire(self, seat: Seat) -> Turn:
        """Take the host's turn, or a place in its queue, or say where the seat stands.

        Asked again after its wait, it confirms: nothing was pushed meanwhile, the turn is still
        the seat's, and its limit runs from now.
        """
        ...

    def renew(self, seat: Seat) -> None:
        """Let the seat's limit run anew: its response is still coming in."""
        ...

    def release(
        self,
        seat: Seat,
        *,
        sent: bool,
        arrived: bool = True,
        push: float = 0.0,
        overloaded: bool | None = None,
    ) -> None:
        """Give the turn, or the place in the queue, back; the next one's turn begins.

        sent: whether the request may have reached the site; the seat's delay runs from now then.
        arrived: whether nothing of it is still under way. If it may be, it counts as arriving one
            of its delays from now, and what lies between two requests runs from there.
        push: seconds from now before which no turn starts.
        overloaded: True for a 429 or 503 that names no time: the store backs off, longer each
            time in a row. False for any other response: the row is over. None for no response.
        """
        ...

    def is_blocked_by(self, thread: int, waiter: Waiter, key: CopyKey | None) -> bool:
        """Whether one whom the waiter waits for can only go on in that very thread.

        key: of the copy that it waits for; None for a turn.
        """
        ...
