"""What one process knows by itself about a store that processes share: ``Store.front``."""

from collections.abc import Callable

from polite_transport.robots.access import Copy, Reply
from polite_transport.stores.base import (
    AskShared,
    Busy,
    Claimed,
    CopyKey,
    CopyWaiter,
    Seat,
    Turn,
    Waiter,
)
from polite_transport.stores.copies import Copies
from polite_transport.stores.turns import Turns

_MOST_PASSES = 10_000  # hosts; looked through for those that are over when there are more


def is_for_all(seat: Seat, push: float, overloaded: bool | None) -> bool:
    """Whether the end of a turn is something that the other processes have to know of.

    An answer that ends a row of overloads is: while there is one, all seats take turns.
    """
    ends_row = overloaded is False and (seat.delay > 0.0 or seat.alone)
    return bool(seat.token or push or overloaded or ends_row)


class Front:
    """Queues and copies of one process, and its passes for hosts that ask for nothing.

    clock, wall, copies_bytes: as of ``MemoryStore``.
    """

    def __init__(
        self,
        clock: Callable[[], float],
        wall: Callable[[], float],
        copies_bytes: int,
    ) -> None:
        self.turns = Turns(clock)
        self.copies = Copies(clock, wall, copies_bytes)
        self._clock = clock
        self._passes: dict[str, float] = {}  # until when, by host
        self.now = wall
        self.at_hand = self.copies.at_hand
        self.renew = self.turns.renew

    @property
    def front(self) -> "Front":
        """See ``Store.front``."""
        return self

    def acquire(self, seat: Seat) -> Turn:
        """See ``Store.acquire``."""
        turn = self.turns.acquire(seat)
        if turn.granted and (seat.held or not self.may_pass(seat.host)):
            raise AskShared
        if seat.token and not turn.granted:
            raise AskShared
        return turn

    def release(
        self,
        seat: Seat,
        *,
        sent: bool,
        arrived: bool = True,
        push: float = 0.0,
        overloaded: bool | None = None,
    ) -> None:
        """See ``Store.release``."""
        if is_for_all(seat, push, overloaded):
            raise AskShared
        self.turns.release(seat, sent=sent, arrived=arrived)

    def claim(self, key: CopyKey, waiter: CopyWaiter) -> Copy | Reply | Claimed | Busy:
        """See ``Store.claim``."""
        found = self.copies.claim(key, waiter)
        if isinstance(found, Claimed):
            raise AskShared
        return found

    def publish(self, key: CopyKey, waiter: CopyWaiter, outcome: Copy | Reply | None) -> None:
        """See ``Store.publish``."""
        if waiter.token:
            raise AskShared
        self.copies.publish(key, waiter, outcome)

    def is_blocked_by(self, thread: int, waiter: Waiter, key: CopyKey | None) -> bool:
        """See ``Store.is_blocked_by``."""
        if key is not None:
            return self.copies.is_blocked_by(thread, waiter, key)
        return isinstance(waiter, Seat) and self.turns.is_blocked_by(thread, waiter)

    def passes(self, host: str) -> bool:
        """See ``Store.passes``."""
        return self.may_pass(host) and self.turns.passes(host)

    def may_pass(self, host: str) -> bool:
        """Whether requests to a host that are bound to nothing need not ask at the moment."""
        until = self._passes.get(host)
        return until is not None and self._clock() < until

    def let_pass(self, host: str, until: float) -> None:
        """Let them pass until then, by this process's clock."""
        if len(self._passes) >= _MOST_PASSES:
            now = self._clock()
            self._passes = {host: end for host, end in self._passes.items() if end > now}
        self._passes[host] = until

    def let_pass_no_longer(self, host: str) -> None:
        """From now on they ask."""
        self._passes.pop(host, None)

    def start_anew_after_fork(self) -> None:
        """In a forked child: seats, claims and locks are the parent's, copies are facts."""
        self.turns.forget_seats()
        self.copies.forget_claims()
        self._passes = {}
