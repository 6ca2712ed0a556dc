"""What a process does by itself while the ledger that it shares cannot be used.

It never sends unpaced: it keeps a site's delay as many times over as there are processes at the
most, so that all of them together keep it in the mean.
"""

import logging
import random
import secrets
import threading
import weakref
from collections.abc import Callable, Sequence
from typing import Literal, NamedTuple, Protocol

from polite_transport.stores.base import Seat, StoreFault, Waiter
from polite_transport.stores.turns import Turns

log = logging.getLogger("polite_transport")

OnError = Literal["raise", "local"]

_TRIED_EVERY = 1.0  # seconds; the ledger is tried no more often, and by one thread
_SAME_OUTAGE = 60.0  # seconds; one that is back sooner is not told again
_MOST_HOSTS = 10_000  # looked through for those that are over when there are more


class Outage:
    """One outage: of a ledger, from its first fault to its first answer.

    turns: this process's own.
    clock: monotonic, seconds.
    processes: how many share the ledger at the most.
    since: when it failed first, by that clock.

    is_over: whether the ledger is back.
    waiting: seats whose time has not come yet, to be woken when it is.
    """

    def __init__(
        self, turns: Turns, clock: Callable[[], float], processes: int, since: float
    ) -> None:
        self.since = since
        self.is_over = False
        self.channel = f"alone.{secrets.token_hex(8)}"  # where there is none to be woken on
        self.waiting: set[Seat] = set()
        self._turns = turns
        self._clock = clock
        self._processes = processes
        self._began = since
        # Processes that are cut off together do not go on together: each at its place in a row.
        self._place = 1.0 + random.random() * (processes - 1)  # noqa: S311
        self._ended: dict[str, tuple[float, float]] = {}  # when, and bound to what, by host
        self._over = threading.Lock()
        self._over.acquire()

    def begin(self) -> None:
        """From now on this process is on its own."""
        self._began = self._clock()

    def rest(self, seat: Seat) -> float:
        """Return the seconds that a request has to wait for, whatever its turn says."""
        ended, delay = self._ended.get(seat.host, (float("-inf"), 0.0))
        start = ended + self._processes * max(delay, seat.delay)
        if seat.delay:
            last = self._turns.last(seat.host)
            if max(last, ended) < self._began:  # others may have sent something just before
                start = max(start, self._began + self._place * seat.delay)
            else:
                start = max(start, last + self._processes * seat.delay)
        return max(start - self._clock(), 0.0)

    def expect(self, seat: Seat) -> None:
        """Let a seat be woken when the ledger is back."""
        seat.wake = None  # what an earlier wait has left there would be called in vain
        seat.ready = False
        self.waiting.add(seat)

    def leave(self, seat: Seat, *, sent: bool) -> None:
        """Let a request that has been sent hold off those after it."""
        self.waiting.discard(seat)
        if not sent or not seat.delay:
            return
        now = self._clock()
        if len(self._ended) >= _MOST_HOSTS:
            self._ended = {
                host: (ended, delay)
                for host, (ended, delay) in list(self._ended.items())
                if ended + self._processes * delay > now
            }
        self._ended[seat.host] = now, seat.delay

    def wait(self, seconds: float) -> bool:
        """Wait until it is over, for so many seconds at the most; return whether it is."""
        return self._over.acquire(timeout=seconds)

    def end(self) -> None:
        """Let those who wait ask the ledger, and nobody try it any more."""
        self.is_over = True
        self._over.release()
        for seat in list(self.waiting):
            seat.ready = True
            seat.wake_up()


class _Away(NamedTuple):
    """A ledger that may be back soon. since, met_at: when the first and the last fault was met."""

    since: float
    met_at: float
    cause: str
    is_over_long: bool


class Recoverable(Protocol):
    """What an outage has to know of a store that may be away."""

    def try_again(self) -> None:
        """Raise StoreFault where it still cannot be used; else tell it what it has missed."""
        ...

    def hear(self, tokens: Sequence[str] | None) -> None:
        """Wake those who wait; None for all of them."""
        ...


class Outages:
    """What one process does about a ledger that cannot be used, at once or for too long.

    on_error: "raise": the fault, each time. "local": this process goes on by itself, at
        ``max_processes`` times each delay, until the ledger answers again; it begins to at once,
        or where the fault may pass, once it has lasted for the ledger's patience.
    max_processes: how many processes share the ledger at the most.
    name: of the store, for messages.

    alone: the outage in which this process is on its own; None while the ledger is to be asked.
    Raises ValueError.
    """

    def __init__(
        self,
        turns: Turns,
        clock: Callable[[], float],
        on_error: OnError,
        max_processes: int | None,
        name: str,
    ) -> None:
        if on_error not in ("raise", "local"):
            raise ValueError(f'on_error={on_error!r}: it is "raise" or "local"')
        if max_processes is None:
            if on_error == "local":
                raise ValueError('on_error="local" takes max_processes: how many share the store')
        elif isinstance(max_processes, bool) or max_processes < 1 or max_processes % 1:
            raise ValueError(f"max_processes={max_processes!r}: a whole number, 1 or more")
        self._turns = turns
        self._clock = clock
        self.name = name
        self._processes = max_processes if on_error == "local" else None
        self.forget()

    def forget(self) -> None:
        """Start anew: as if there had been none, and in a forked child."""
        self._lock = threading.Lock()
        self._current: Outage | None = None
        self.alone: Outage | None = None
        self._last_end = float("-inf")
        self._away: _Away | None = None

    def refuse(self, waiter: Waiter) -> None:
        """Raise the StoreFault that another has met while this one waited, if it lasts too long."""
        away = self._away
        if away is not None and away.is_over_long and waiter.came_at < away.met_at:
            raise StoreFault(away.cause)

    def meet(self, fault: StoreFault) -> None:
        """Leave a fault that may pass the patience that is left of it.

        Of those who wait for one host one at a time asks the ledger. They wait for it together,
        and not for as long as they like one after the other.
        """
        if not fault.passing or self._processes is not None:
            return
        now = self._clock()
        asked, away = now - fault.spent, self._away
        # What was met long before is over: nobody has asked since.
        is_new = away is None or asked - away.met_at > fault.patience
        since = asked if away is None or is_new else away.since
        self._away = _Away(since, now, str(fault), now - since >= fault.patience)
        fault.patience = max(fault.patience - (asked - since), 0.0)

    def answered(self) -> None:
        """Take it that the ledger can be used."""
        self._away = None

    def endure(self, fault: StoreFault, store: Recoverable) -> Outage | None:
        """Return the outage in which this process goes on alone; None where it does not."""
        if self._processes is None:
            return None
        now = self._clock()
        with self._lock:
            outage = self._current
            if outage is None:
                since = now - fault.spent
                outage = Outage(self._turns, self._clock, self._processes, since)
                # No request has to wait for these attempts, which may take seconds each.
                thread = threading.Thread(
                    target=_try_again,
                    args=(self, weakref.ref(store), outage),
                    name="polite_transport store outage",
                    daemon=True,
                )
                try:
                    thread.start()
                except RuntimeError:  # none is to be had; without it there would be no way back
                    return None
                self._current = outage
            if self.alone is not None:
                return self.alone
            if fault.passing and now - outage.since < fault.patience:
                return None
            outage.begin()
            self.alone = outage
        log.log(
            logging.INFO if now - self._last_end < _SAME_OUTAGE else logging.WARNING,
            "%s cannot be used: %s. Until it can, this process takes turns and reads robots.txt by "
            "itself, and %d times each site's delay lie between its requests (max_processes)",
            self.name,
            fault,
            self._processes,
        )
        store.hear(None)
        return outage

    def end(self) -> bool:
        """End the outage, if there is one; return whether this process was on its own."""
        with self._lock:
            outage, alone = self._current, self.alone
            self._current = self.alone = None
            if alone is not None:
                self._last_end = self._clock()
        if outage is not None:
            outage.end()
        return alone is not None


def _try_again(outages: Outages, of: "weakref.ref[Recoverable]", outage: Outage) -> None:
    """Try a store until it is back."""
    while not outage.wait(_TRIED_EVERY):
        store = of()
        if store is None:
            break
        try:
            store.try_again()
            if not outage.is_over and outages.end():
                log.info("%s can be used again: turns go through it", outages.name)
                store.try_again()  # tells of what has begun or ended just before
        except StoreFault as fault:
            log.debug("still away: %s", fault)
        except Exception:
            log.exception("trying a store again")
        store = None  # or it would be kept alive by this thread
