"""The effects that the politeness logic asks for, as values.

``flow/`` yields them, ``drive.py`` performs them. ``answer = yield from step`` is exactly typed.
"""

from collections.abc import Generator, Mapping
from typing import Any, Generic, TypeVar

from polite_transport.robots.access import Copy, Reply
from polite_transport.stores.base import (
    Busy,
    Claimed,
    CopyKey,
    CopyWaiter,
    Seat,
    Store,
    Turn,
    Waiter,
)
from polite_transport.url import Target

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)


class Step(Generic[T]):
    """One effect; its answer has type T."""

    __slots__ = ()

    def __iter__(self) -> Generator["Step[Any]", T, T]:
        return (yield self)


Flow = Generator[Step[Any], Any, T_co]


class StoreStep(Step[T]):
    """An effect on the store: short, atomic, never waiting."""

    __slots__ = ()

    def perform(self, store: Store) -> T:
        """Do it."""
        raise NotImplementedError


class Now(StoreStep[float]):
    """The wall clock, seconds since the epoch."""

    __slots__ = ()

    def perform(self, store: Store) -> float:
        """Do it."""
        return store.now()


class Claim(StoreStep["Copy | Reply | Claimed | Busy"]):
    """Ask for a copy of robots.txt, or for the right to fetch it."""

    __slots__ = ("key", "waiter")

    def __init__(self, key: CopyKey, waiter: CopyWaiter) -> None:
        self.key = key
        self.waiter = waiter

    def perform(self, store: Store) -> Copy | Reply | Claimed | Busy:
        """Do it."""
        return store.claim(self.key, self.waiter)


class Publish(StoreStep[None]):
    """End a claim, with or without a copy."""

    __slots__ = ("key", "outcome", "waiter")

    def __init__(self, key: CopyKey, waiter: CopyWaiter, outcome: Copy | Reply | None) -> None:
        self.key = key
        self.waiter = waiter
        self.outcome = outcome

    def perform(self, store: Store) -> None:
        """Do it."""
        store.publish(self.key, self.waiter, self.outcome)


class Acquire(StoreStep[Turn]):
    """Take the host's turn or a place in its queue; after a wait, ask whether it is still ours."""

    __slots__ = ("waiter",)

    def __init__(self, seat: Seat) -> None:
        self.waiter = seat

    def perform(self, store: Store) -> Turn:
        """Do it."""
        return store.acquire(self.waiter)


class Release(StoreStep[None]):
    """Give a turn or a place in the queue back."""

    __slots__ = ("arrived", "overloaded", "push", "seat", "sent")

    def __init__(
        self,
        seat: Seat,
        *,
        sent: bool,
        arrived: bool = True,
        push: float = 0.0,
        overloaded: bool | None = None,
    ) -> None:
        self.seat = seat
        self.sent = sent
        self.arrived = arrived
        self.push = push
        self.overloaded = overloaded

    def perform(self, store: Store) -> None:
        """Do it."""
        store.release(
            self.seat,
            sent=self.sent,
            arrived=self.arrived,
            push=self.push,
            overloaded=self.overloaded,
        )


class Sleep(Step[float]):
    """Let time pass; the answer is how much did, in seconds."""

    __slots__ = ("seconds",)

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds


class Wait(Step[float]):
    """Wait until woken, or for so many seconds at the most; the answer is how many it were.

    key: of the copy that the waiter waits for; None for a turn.
    """

    __slots__ = ("key", "seconds", "waiter")

    def __init__(self, waiter: Waiter, seconds: float, key: CopyKey | None = None) -> None:
        self.waiter = waiter
        self.seconds = seconds
        self.key = key


class Fetch(Step[Reply]):
    """GET one robots.txt URL, one hop, without following redirects.

    headers: beside the client's own User-Agent handling, all that is sent.
    max_bytes: of the decoded body; the connection is closed after them.
    timeout: seconds for the whole hop.
    """

    __slots__ = ("headers", "max_bytes", "target", "timeout")

    def __init__(
        self, target: Target, headers: Mapping[str, str], max_bytes: int, timeout: float
    ) -> None:
        self.target = target
        self.headers = headers
        self.max_bytes = max_bytes
        self.timeout = timeout
