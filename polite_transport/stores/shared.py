"""A store that processes share, over a ledger: SQLite's or Redis'.

Within the process stand the same queues and copies as in ``MemoryStore``: of all who want a host,
or a robots.txt, one at a time goes on to the ledger. That keeps first come first served within the
process, and the ledger's own queue as short as there are processes.

The turns stand here and the copies in ``shared_copies.py``; what goes on beside the requests in
``background.py``, and what is done while the ledger is away in ``outage.py``.
"""

import logging
import os
import time
import weakref
from collections.abc import Callable
from typing import Any, Self

from polite_transport.pacing.retry_after import backoff
from polite_transport.stores.background import Background
from polite_transport.stores.base import (
    NOW,
    Seat,
    StoreFault,
    Turn,
)
from polite_transport.stores.front import Front, is_for_all
from polite_transport.stores.ledger import Leave, Ledger
from polite_transport.stores.outage import OnError, Outage, Outages
from polite_transport.stores.shared_copies import SharedCopies

log = logging.getLogger("polite_transport")

_ASKED = 3  # times, for a turn whose lease may be over by the time that it is known


class SharedStore:
    """Turns and robots.txt copies that processes share.

    lease: seconds; see ``ledger.LEASE``. Turns of requests on their way are renewed three times
        as often.
    on_error, max_processes: see ``Outages``.
    """

    def __init__(
        self,
        ledger: Ledger,
        *,
        lease: float,
        copies_bytes: int,
        on_error: OnError = "raise",
        max_processes: int | None = None,
        clock: Callable[[], float] = time.monotonic,
        wall: Callable[[], float] = time.time,
    ) -> None:
        if not 0.0 < lease <= 3600.0:
            raise ValueError(f"lease={lease!r}: seconds, above 0 and up to an hour")
        self.front = Front(clock, wall, copies_bytes)
        self._outages = Outages(self.front.turns, clock, on_error, max_processes, repr(self))
        self._ledger = ledger
        self._lease = lease
        self._clock = clock
        self.now = wall
        self.at_hand = self.front.at_hand
        self.passes = self.front.passes
        self.renew = self.front.renew
        self.is_blocked_by = self.front.is_blocked_by
        self._background = Background(ledger, lease, clock)
        copies = SharedCopies(
            self.front.copies, ledger, self._background, self._outages, clock, wall
        )
        self.claim = copies.claim
        self.publish = copies.publish
        _alive.add(self)
        weakref.finalize(self, ledger.close)

    def acquire(self, seat: Seat) -> Turn:
        """See ``Store.acquire``."""
        alone = self._outages.alone
        if alone is None:
            try:
                self._outages.refuse(seat)
                return self._acquire_shared(seat)
            except StoreFault as fault:
                alone = self._outages.endure(fault, self._background)
                if alone is None:
                    self._outages.meet(fault)
                    raise
        return self._acquire_alone(seat, alone)

    def _acquire_shared(self, seat: Seat) -> Turn:
        turns = self.front.turns
        turn = turns.acquire(seat)
        if turn.granted and not seat.held:
            if self.front.may_pass(seat.host) or self._may_pass(seat.host):
                return NOW
            seat.alone = True  # where someone is bound, everybody takes turns
            turn = turns.acquire(seat)
        if not turn.granted:
            if seat.token:  # its turn in the process was over, so that the one in the ledger is too
                self._leave_ledger(seat, Leave(sent=False, delay=seat.delay))
            return turn
        took = 0.0
        for _ in range(_ASKED):
            asked = self._clock()
            shared = self._ask_turn(seat, turn.wait)
            now = self._clock()
            took = now - asked
            # Its turn in the process ends no earlier than this one.
            seat.until = now + shared.wait + shared.ask_again + seat.limit
            if not shared.granted or shared.wait or took < self._lease / 2:
                return shared
        raise StoreFault(
            f"its last answer took {took:.1f} s, and a turn that is not confirmed anew ends "
            f"after {self._lease:g} s: find out what slows it down, or choose a longer lease"
        )

    def _may_pass(self, host: str) -> bool:
        channel = self._background.channel()
        asked = self._clock()
        seconds = self._ledger.let_pass(host, channel)
        self._outages.answered()
        if not seconds:
            self.front.let_pass_no_longer(host)
            return False
        self.front.let_pass(host, asked + seconds)
        return True

    def _ask_turn(self, seat: Seat, not_before: float) -> Turn:
        background = self._background
        if not seat.token:
            seat.token = background.token(seat.delay)
        name = seat.token
        background.expect(name, seat)
        try:
            turn = self._ledger.acquire(seat.host, name, not_before)
        except BaseException:
            background.expect_no_longer(name)
            raise
        self._outages.answered()
        if turn.granted:
            background.expect_no_longer(name)
            if not turn.wait:
                background.sending[name] = seat
        return turn

    def _acquire_alone(self, seat: Seat, alone: Outage) -> Turn:
        """Acquire as in ``MemoryStore``, only that more lies between two requests to a host."""
        self.front.let_pass_no_longer(seat.host)
        if not seat.delay and alone.rest(seat):
            seat.alone = True  # it would pass
        turn = self.front.turns.acquire(seat)
        if not turn.granted:
            if seat.token:
                self._leave_ledger(seat, Leave(sent=False, delay=seat.delay))
            return turn
        if not seat.held:
            return NOW
        wait = max(turn.wait, alone.rest(seat))
        if wait:
            seat.until = self._clock() + wait + seat.limit
            alone.expect(seat)
            turn = Turn(False, wait, turn.pushed, wait)
        else:
            alone.waiting.discard(seat)
            # The ledger is to know of it, if it is back before the request has ended.
            if not seat.token:
                channel = self._background.last_channel or alone.channel
                seat.token = self._background.token(seat.delay, channel)
            self._background.sending[seat.token] = seat
            turn = NOW
        return self.acquire(seat) if alone.is_over else turn

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
        alone = self._outages.alone
        if alone is not None:
            alone.leave(seat, sent=sent)
        try:
            if is_for_all(seat, push, overloaded):
                leave = Leave(sent, seat.delay, arrived, push, overloaded)
                push = self._leave_ledger(seat, leave)
        finally:
            if alone is None and overloaded:
                overloaded = None  # the ledger counts them: it has those of all processes
            self.front.turns.release(
                seat, sent=sent, arrived=arrived, push=push, overloaded=overloaded
            )

    def _leave_ledger(self, seat: Seat, leave: Leave) -> float:
        """End a turn in the ledger, now or when it can be reached again; return the push."""
        name, seat.token = seat.token, ""
        self._background.end(name)
        if leave.push or leave.overloaded:
            self.front.let_pass_no_longer(seat.host)
        if self._outages.alone is not None:
            self._background.owe(seat.host, name, leave)
            return leave.push
        try:
            return self._ledger.release(seat.host, name, leave)
        except StoreFault as fault:
            log.warning("the end of a turn for %s waits for the store: %s", seat.host, fault)
            self._background.owe(seat.host, name, leave)
            return max(leave.push, backoff(1, leave.delay) if leave.overloaded else 0.0)

    def close(self) -> None:
        """Stop listening and let go of files and connections; the next request starts anew."""
        self._background.close()
        self._outages.end()
        self._ledger.close()

    def start_anew_after_fork(self) -> None:
        """In a forked child: turns, thread, locks and connections are the parent's."""
        self.front.start_anew_after_fork()
        self._ledger.forget_parent()
        self._background.start_anew()
        self._outages.forget()

    def made_of(self) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Return the arguments that make this store again in another process."""
        raise NotImplementedError

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        args, options = self.made_of()
        made_of = (type(self), args, tuple(sorted(options.items())))
        _pickled.setdefault(made_of, self)
        return _made_once, made_of


_alive: weakref.WeakSet[SharedStore] = weakref.WeakSet()
_pickled: weakref.WeakValueDictionary[Any, SharedStore] = weakref.WeakValueDictionary()


def _made_once(store_class: Any, args: tuple[Any, ...], options: Any) -> SharedStore:
    """Load a pickled store: all that is loaded in one process is one store."""
    made_of = (store_class, args, options)
    store = _pickled.get(made_of)
    if store is None:
        store = _pickled[made_of] = store_class(*args, **dict(options))
    return store


def _after_fork_in_child() -> None:
    for store in list(_alive):
        store.start_anew_after_fork()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork_in_child)
