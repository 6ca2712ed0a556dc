"""What processes write down together: the contract beneath ``SharedStore``, and its terms.

A ledger knows its visitors by tokens. A turn in it is a lease: it ends by itself, unless it is
renewed, so that a process that dies blocks nobody for long. All times that pass through here are
durations: no two machines have to agree on a clock.

Times in seconds.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol
from urllib.parse import quote

from polite_transport.stores.base import CopyKey, Turn

LEASE = 10.0  # how long a process that died or froze in mid-request holds its host up
CLAIM = 1.0  # how late one whose turn has come may say so, before the next one has it
# How long requests that are bound to nothing may go on without asking; also how late they learn of
# a pause that another process was asked for. Short beside any pause, long beside a round trip.
PASS = 0.25


def token(channel: str, number: int, delay: float) -> str:
    """Return what a ledger knows one request by.

    channel: where its process is woken; holds no colon.
    number: unique within the channel.
    delay: seconds it is bound to. It stands in the token, so that whoever gives it its turn knows.
    """
    return f"{channel}:{number}:{math.ceil(delay * 1e6)}"


def channel_of(token: str) -> str:
    """Return where a token's process is woken."""
    return token.partition(":")[0]


def delay_of(token: str) -> float:
    """Return the seconds that a token's request is bound to."""
    return int(token.rpartition(":")[2]) / 1e6


def ledger_key(key: CopyKey) -> str:
    """Return one printable word for a copy's key."""
    exact = key._replace(timeout=float(key.timeout), ttl=float(key.ttl))  # 10 and 10.0 are one
    return "~".join(quote(str(part), safe=":/[]") for part in exact)


class Packed(NamedTuple):
    """A copy of robots.txt as a ledger keeps it; see ``packing.py``.

    head: JSON. digest: SHA-256 of head and body. expires_at: wall clock, as the head has it too.
    """

    head: bytes
    body: bytes
    digest: bytes
    expires_at: float


@dataclass(frozen=True, slots=True)
class Kept:
    """A copy that counts: it is fresh, or was fetched while its asker waited."""

    packed: Packed


@dataclass(frozen=True, slots=True)
class Granted:
    """The copy is the asker's to fetch. last: the copy held before."""

    last: Packed | None


@dataclass(frozen=True, slots=True)
class Elsewhere:
    """Another process fetches it. ask_again: seconds, unless woken."""

    ask_again: float


@dataclass(frozen=True, slots=True)
class Failed:
    """Another process fetched it while the asker waited, and the site gave no answer."""

    error: str


@dataclass(frozen=True, slots=True)
class Leave:
    """How a turn ended; see ``Store.release``.

    delay: seconds that the request turned out to be bound to.
    """

    sent: bool
    delay: float
    arrived: bool = True
    push: float = 0.0
    overloaded: bool | None = None


class Mailbox(Protocol):
    """Where one process is woken. Only the thread that listens touches it."""

    @property
    def channel(self) -> str:
        """What tokens of this process begin with; holds no colon."""
        ...

    def listen(self, seconds: float) -> Sequence[str] | None:
        """Wait for wake-ups, for so many seconds at the most; return the tokens that are woken.

        None where some may have been missed, so that everyone had better ask again.
        """
        ...

    def close(self) -> None:
        """Listen no longer."""
        ...


class Ledger(Protocol):
    """One place that many processes write to. Every verb may raise StoreFault.

    Each is one atomic operation, idempotent by token, and safe to call from several threads.
    """

    def open_mailbox(self) -> Mailbox:
        """Begin to listen for wake-ups: none that is sent after the return is missed."""
        ...

    def close(self) -> None:
        """Let go of files and connections; the next call opens them again."""
        ...

    def forget_parent(self) -> None:
        """Start anew in a forked child, without touching what is the parent's."""
        ...

    def acquire(self, host: str, token: str, not_before: float) -> Turn:
        """Take a turn, or a place in the queue, or say where the token stands: ``Store.acquire``.

        not_before: seconds from now before which it may not start, for reasons of its own process.
        """
        ...

    def release(self, host: str, token: str, leave: Leave) -> float:
        """End a turn or leave the queue; return the push that it came to, in seconds.

        token: empty for a request that took no turn and brings news of its host.
        """
        ...

    def let_pass(self, host: str, channel: str) -> float:
        """Return for how many seconds requests that are bound to nothing need not ask.

        0.0 where someone is bound, so that all take turns.
        """
        ...

    def renew(self, turns: Sequence[tuple[str, str]], claims: Sequence[tuple[str, str]]) -> None:
        """Let leases run anew: pairs of host, or of copy's key, and token.

        A turn that the ledger has lost is taken again where nobody else has it.
        """
        ...

    def claim(
        self, key: str, token: str, waited: float, wall: float
    ) -> Kept | Granted | Elsewhere | Failed:
        """Return a copy that counts, or the right to fetch it, or that another does.

        waited: seconds since it first asked. wall: seconds since the epoch, now.
        """
        ...

    def publish(self, key: str, token: str, outcome: Packed | str | None) -> None:
        """End a claim, with a copy, with what went wrong, or with nothing."""
        ...

    def discard(self, key: str) -> None:
        """Throw a copy away that is not what was written."""
        ...
