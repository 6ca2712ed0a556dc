"""Turns within one process: a queue for each host, handed on directly, first in, first out.

No lock is held over a wait, and none is taken where a host's requests are bound to no delay.
"""

from collections import deque
from collections.abc import Callable, Collection
from dataclasses import dataclass
from functools import partial
from itertools import takewhile

from polite_transport.pacing.retry_after import backoff
from polite_transport.pacing.turns import Record
from polite_transport.stores.base import NOW, Seat, Turn
from polite_transport.stores.guard import Guard


class Queue(deque[Seat]):
    """Seats waiting for a host, in order.

    backlog: the sum of their delays, which the last of them has to wait for at the least.
    """

    __slots__ = ("backlog",)

    def __init__(self) -> None:
        super().__init__()
        self.backlog = 0.0


@dataclass(slots=True)
class Host(Record):
    """A record with the seat whose turn it is, and a queue once someone has to wait.

    passed: when a request that is bound to nothing last came or went. It is written without the
        lock, perhaps late, so that it takes nothing away from what those that are bound have left.
    """

    holder: Seat | None = None
    queue: Queue | None = None
    passed: float = float("-inf")

    def start(self, delay: float) -> float:
        """Return the earliest start of a request that is bound to ``delay`` seconds itself."""
        return max(self.last + max(self.delay, delay), self.passed + delay, self.floor)


class Turns:
    """The turns of all hosts.

    clock: monotonic, seconds.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._guard = Guard()
        self._hosts: dict[str, Host] = {}
        self._ring: deque[str] = deque()  # every host once: whom to look at for forgetting

    def acquire(self, seat: Seat) -> Turn:
        """See ``Store.acquire``."""
        host = self._hosts.get(seat.host)
        now = self._clock()
        if host is not None and self._passes(host, seat, now):
            return NOW
        self._guard.refuse_within()
        with self._guard.lock:
            host = self._hosts.get(seat.host) or self._add(seat.host, now)
            woken = self._end_overdue(host, now)
            if self._passes(host, seat, now):
                turn = NOW
            else:
                if host.holder is None:
                    host.holder = seat
                    seat.held = True
                if host.holder is seat:
                    turn = self._granted(host, seat, now)
                else:
                    turn = self._queued(host, host.holder, seat, now)
        if woken:
            self._wake([each for each in woken if each is not seat])
        self._guard.catch_up()
        return turn

    def passes(self, host: str) -> bool:
        """See ``Store.passes``."""
        known = self._hosts.get(host)
        return known is not None and not known.strikes and _let_pass(known, self._clock())

    def _passes(self, host: Host, seat: Seat, now: float) -> bool:
        """Whether a request is bound to nothing, so that it needs no turn and no lock."""
        return not (seat.delay or seat.alone) and _let_pass(host, now)

    def _add(self, name: str, now: float) -> Host:
        """Take a host in, and look at two others, whether they can be forgotten."""
        for _ in range(min(2, len(self._ring))):
            oldest = self._ring.popleft()
            known = self._hosts[oldest]
            if known.holder is None and known.forgettable(now):
                del self._hosts[oldest]
            else:
                self._ring.append(oldest)
        host = self._hosts[name] = Host()
        self._ring.append(name)
        return host

    def _granted(self, host: Host, seat: Seat, now: float) -> Turn:
        wait = host.start(seat.delay) - now
        if wait <= 0:
            seat.until = now + seat.limit
            return NOW
        seat.until = now + wait + seat.limit
        return Turn(True, wait, max(host.floor - now, 0.0))

    def _queued(self, host: Host, holder: Seat, seat: Seat, now: float) -> Turn:
        queue = host.queue
        if queue is None:
            queue = host.queue = Queue()
        if not seat.queued:
            queue.append(seat)
            queue.backlog += seat.delay
            seat.queued = True
            seat.ready = False
            seat.wake = None  # what an earlier wait has left there would be called in vain
        # At the least: the holder starts when it may, and everyone before us keeps a delay. (Asked
        # again from the middle of the queue this would count those behind; the flow does not.)
        ahead = holder.delay + queue.backlog - seat.delay
        wait = max(host.start(holder.delay) - now, 0.0) + ahead
        return Turn(False, wait, max(host.floor - now, 0.0), max(holder.until - now, 0.0))

    def _end_overdue(self, host: Host, now: float) -> Collection[Seat]:
        """Take the turn from a holder that has had it for too long, or whose loop is closed."""
        holder = host.holder
        if holder is None or (now < holder.until and not holder.is_gone):
            return ()
        host.count(now, holder.delay, arrived=False)
        return self._hand_on(host, now)

    def _hand_on(self, host: Host, now: float) -> Collection[Seat]:
        """Give the turn to the next in the queue; return who is to be woken outside the lock."""
        if host.holder is not None:
            host.holder.held = False
            host.holder = None
        queue = host.queue
        if not queue:
            host.queue = None
            return ()
        if host.start(0.0) <= now and not any(each.delay or each.alone for each in queue):
            # They are bound to nothing and stood behind someone who was, or behind a pause. That
            # is over: one after the other they would never again go side by side.
            host.queue = None
            for each in queue:
                each.queued = False
                each.ready = True
            return queue
        seat = queue.popleft()
        queue.backlog -= seat.delay
        host.holder = seat
        seat.queued = False
        seat.held = True
        seat.until = max(now, host.start(seat.delay)) + seat.limit
        seat.ready = True
        return (seat,)

    def _wake(self, woken: Collection[Seat]) -> None:
        while woken:
            gone = [seat for seat in woken if not seat.wake_up()]
            woken = ()
            for seat in gone:  # their event loops are closed: the one behind them is next
                with self._guard.lock:
                    host = self._hosts[seat.host]
                    if host.holder is seat:
                        woken = self._hand_on(host, self._clock())

    def renew(self, seat: Seat) -> None:
        """See ``Store.renew``."""
        if seat.held:
            seat.until = self._clock() + seat.limit

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
        host = self._hosts.get(seat.host)
        if host is None:
            return
        now = self._clock()
        news = push or overloaded or host.strikes
        if not (seat.held or seat.queued or seat.delay or news):
            if sent:
                host.passed = now
            return
        if self._guard.is_ours:
            again = partial(
                self.release, seat, sent=sent, arrived=arrived, push=push, overloaded=overloaded
            )
            self._guard.put_off(again)
            return
        with self._guard.lock:
            self._push(host, seat, now, push, overloaded)
            woken: Collection[Seat] = ()
            if host.holder is seat:
                if sent:
                    host.count(now, seat.delay, arrived=arrived)
                woken = self._hand_on(host, now)
            elif seat.queued and host.queue is not None:
                host.queue.remove(seat)
                host.queue.backlog -= seat.delay
                seat.queued = False
            elif sent:
                # It brings news; or its turn ended by the limit, and an answer came after all.
                host.count(now, seat.delay, arrived=arrived)
        self._wake(woken)
        self._guard.catch_up()

    def _push(
        self, host: Host, seat: Seat, now: float, push: float, overloaded: bool | None
    ) -> None:
        """Move the host's next turn, as the site asked or as our own back-off has it."""
        if overloaded and now >= host.floor:
            # Once for each pause: requests that were on their way together met one overload.
            host.strikes += 1
            push = max(push, backoff(host.strikes, seat.delay))
        elif overloaded is False:
            host.strikes = 0
        if push:
            host.floor = max(host.floor, now + push)

    def last(self, name: str) -> float:
        """Return when the last request to a host had arrived, by the clock; -inf for none known."""
        host = self._hosts.get(name)
        return float("-inf") if host is None else max(host.last, host.passed)

    def is_blocked_by(self, thread: int, seat: Seat) -> bool:
        """Whether the holder of the turn, or one before us in the queue, needs that thread."""
        with self._guard.lock:
            host = self._hosts.get(seat.host)
            before = [] if host is None else _before(host, seat)
            blocked = any(each.thread == thread for each in before)
        self._guard.catch_up()
        return blocked

    def forget_seats(self) -> None:
        """Start anew in a forked child: the seats and the lock are the parent's.

        What the hosts were last sent still counts, and those that are held count as sent now.
        """
        self._guard = Guard()
        now = self._clock()
        for host in self._hosts.values():
            if host.holder is not None:
                host.count(now, host.holder.delay)
            host.holder = host.queue = None


def _before(host: Host, seat: Seat) -> list[Seat]:
    """Return whom a seat waits for: the holder, and those before it in the queue."""
    if host.holder is None or host.holder is seat:
        return []
    return [host.holder, *takewhile(lambda each: each is not seat, host.queue or ())]


def _let_pass(host: Host, now: float) -> bool:
    """Let a request that is bound to nothing go, unless there is someone, or a pause, to wait for.

    It leaves its time behind for a later request that is bound.
    """
    if not _is_free(host, now):
        return False
    host.passed = now
    # One that is bound takes the host first and reads that time then, and so one of the two sees
    # the other, though there is no lock.
    return _is_free(host, now)


def _is_free(host: Host, now: float) -> bool:
    return host.holder is None and host.last + host.delay <= now and host.floor <= now
