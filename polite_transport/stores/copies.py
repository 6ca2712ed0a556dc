"""Copies of robots.txt within one process: one fetch for all who ask, bounded by bytes."""

from collections import OrderedDict, deque
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from functools import partial

from polite_transport.robots.access import Copy, Reply
from polite_transport.stores.base import Busy, Claimed, CopyKey, CopyWaiter, Waiter
from polite_transport.stores.guard import Guard

# A fetch waits for its turn (Policy.max_delay) and then takes Policy.robots_timeout a hop, twice.
CLAIM_LIFE = 480.0
# What a copy takes beside its bytes, and how often those again once they are parsed; measured.
COPY_OVERHEAD = 5_000
PARSED_FACTOR = 6


@dataclass(slots=True)
class Claim:
    """A fetch that is under way, and who waits for it."""

    owner: CopyWaiter
    until: float
    waiters: deque[CopyWaiter] = field(default_factory=deque[CopyWaiter])


class Copies:
    """All copies, the least recently used dropped first.

    clock: monotonic, for the life of claims. wall: seconds since the epoch, for that of copies.
    max_bytes: what the copies may take, about; the last one stays whatever its size.
    """

    def __init__(
        self, clock: Callable[[], float], wall: Callable[[], float], max_bytes: int
    ) -> None:
        self._clock = clock
        self._wall = wall
        self._max_bytes = max_bytes
        self._bytes = 0
        self._guard = Guard()
        self._copies: OrderedDict[CopyKey, Copy] = OrderedDict()
        self._claims: dict[CopyKey, Claim] = {}

    def at_hand(self, key: CopyKey) -> Copy | None:
        """See ``Store.at_hand``."""
        copy = self._copies.get(key)
        if copy is None or self._wall() >= copy.expires_at:
            return None
        try:  # noqa: SIM105 - suppress() takes longer, and every request comes here
            self._copies.move_to_end(key)
        except KeyError:
            pass  # dropped by another thread just now
        return copy

    def claim(self, key: CopyKey, waiter: CopyWaiter) -> Copy | Reply | Claimed | Busy:
        """See ``Store.claim``."""
        copy = self.at_hand(key)
        if copy is not None:
            return copy
        if waiter.outcome is not None:
            return waiter.outcome  # fetched while we waited: it counts however short its life
        self._guard.refuse_within()
        found = self._claim(key, waiter)
        self._guard.catch_up()
        return found

    def _claim(self, key: CopyKey, waiter: CopyWaiter) -> Claimed | Busy:
        with self._guard.lock:
            claim = self._claims.get(key)
            now = self._clock()
            if claim is None or now >= claim.until or claim.owner.is_gone:
                waiting = deque[CopyWaiter]() if claim is None else claim.waiters
                claim = self._claims[key] = Claim(waiter, now + CLAIM_LIFE, waiting)
                if waiter in waiting:
                    waiting.remove(waiter)
            if claim.owner is waiter:
                return Claimed(self._copies.get(key))
            if waiter not in claim.waiters:
                waiter.ready = False
                waiter.wake = None  # what an earlier wait has left there would be called in vain
                claim.waiters.append(waiter)
            return Busy(claim.until - now)

    def publish(self, key: CopyKey, waiter: CopyWaiter, outcome: Copy | Reply | None) -> None:
        """See ``Store.publish``."""
        if self._guard.is_ours:
            self._guard.put_off(partial(self.publish, key, waiter, outcome))
            return
        woken = self._end(key, waiter, outcome)
        gone = [each for each in woken if not each.wake_up()]
        while gone and outcome is None:  # the claim was given to one that is gone: on to the next
            woken = self._end(key, gone[0], None)
            gone = [each for each in woken if not each.wake_up()]
        self._guard.catch_up()

    def _end(
        self, key: CopyKey, waiter: CopyWaiter, outcome: Copy | Reply | None
    ) -> Collection[CopyWaiter]:
        """End a claim, or a wait for it; return who is to be woken outside the lock."""
        with self._guard.lock:
            claim = self._claims.get(key)
            if claim is None or claim.owner is not waiter:
                if claim is not None and waiter in claim.waiters:
                    claim.waiters.remove(waiter)
                return ()
            if isinstance(outcome, Copy):
                self._keep(key, outcome)
            woken = claim.waiters
            if outcome is None and woken:
                claim.owner = woken.popleft()
                claim.until = self._clock() + CLAIM_LIFE
                woken = deque((claim.owner,))
            else:
                del self._claims[key]
            for each in woken:
                each.outcome = outcome
                each.ready = True
        return woken

    def _keep(self, key: CopyKey, copy: Copy) -> None:
        old = self._copies.pop(key, None)
        if old is not None:
            self._bytes -= _size(old)
        self._copies[key] = copy
        self._bytes += _size(copy)
        while self._bytes > self._max_bytes and len(self._copies) > 1:
            self._bytes -= _size(self._copies.popitem(last=False)[1])

    def is_blocked_by(self, thread: int, waiter: Waiter, key: CopyKey) -> bool:
        """Whether the fetch of a copy can only go on in that very thread."""
        with self._guard.lock:
            claim = self._claims.get(key)
            # The owner itself may wait too, for another process.
            blocked = (
                claim is not None and claim.owner is not waiter and claim.owner.thread == thread
            )
        self._guard.catch_up()
        return blocked

    def forget_claims(self) -> None:
        """Start anew in a forked child: fetches and lock are the parent's, copies are facts."""
        self._guard = Guard()
        self._claims = {}


def _size(copy: Copy) -> int:
    return COPY_OVERHEAD + PARSED_FACTOR * len(copy.body)
