"""A store that processes share, over a ledger: SQLite's or Redis'.

Within the process stand the same queues and copies as in ``MemoryStore``: of all who want a host,
or a robots.txt, one at a time goes on to the ledger. That keeps first come first served within the
process, and the ledger's own queue as short as there are processes.

A thread of the background listens for wake-ups and renews the leases of requests on their way. It
starts with the first turn, and ends with the store. What is done while the ledger is away stands in
``outage.py``.
"""

import itertools
import logging
import os
import threading
import time
import weakref
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any, Self

from polite_transport.pacing.retry_after import backoff
from polite_transport.pacing.turns import REMEMBERED
from polite_transport.robots.access import Copy, Reply
from polite_transport.stores.base import (
    NOW,
    Busy,
    Claimed,
    CopyKey,
    CopyWaiter,
    Seat,
    StoreFault,
    Turn,
    Waiter,
)
from polite_transport.stores.copies import CLAIM_LIFE
from polite_transport.stores.front import Front
from polite_transport.stores.ledger import (
    Elsewhere,
    Failed,
    Kept,
    Leave,
    Ledger,
    Mailbox,
    Packed,
    ledger_key,
    token,
)
from polite_transport.stores.outage import OnError, Outage, Outages
from polite_transport.stores.packing import NotACopy, pack, unpack

log = logging.getLogger("polite_transport")

_RECONNECT_PAUSE = 0.2  # seconds between attempts of the listener
_MOST_OWED = 10_000
_NO_HOST = "store.invalid"  # of a record that is written to see whether one can (RFC 2606)


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
        self._outages = Outages(self.front.turns, clock, on_error, max_processes)
        self._ledger = ledger
        self._lease = lease
        self._clock = clock
        self.now = wall
        self.at_hand = self.front.at_hand
        self.passes = self.front.passes
        self.renew = self.front.renew
        self.is_blocked_by = self.front.is_blocked_by
        self._start_anew()
        _alive.add(self)
        weakref.finalize(self, ledger.close)

    def _start_anew(self) -> None:
        self._lock = threading.Lock()
        self._numbers = itertools.count()
        self._channel = ""
        self._closing: threading.Lock | None = None  # held while the listener is wanted
        self._waiting: dict[str, Waiter] = {}
        self._sending: dict[str, Seat] = {}
        self._fetching: dict[str, tuple[str, CopyWaiter]] = {}  # with the ledger's key
        self._owed: deque[tuple[float, str, str, Leave]] = deque(maxlen=_MOST_OWED)
        self._telling = threading.Lock()
        self._outages.forget()

    # --- turns ------------------------------------------------------------------------------

    def acquire(self, seat: Seat) -> Turn:
        """See ``Store.acquire``."""
        alone = self._outages.alone
        if alone is None:
            try:
                return self._acquire_shared(seat)
            except StoreFault as fault:
                alone = self._outages.endure(fault, self)
                if alone is None:
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
        while True:
            asked = self._clock()
            shared = self._ask_turn(seat, turn.wait)
            now = self._clock()
            # Its turn in the process ends no earlier than this one.
            seat.until = now + shared.wait + shared.ask_again + seat.limit
            if not shared.granted or shared.wait or now - asked < self._lease / 2:
                return shared

    def _may_pass(self, host: str) -> bool:
        channel = self._listening()
        asked = self._clock()
        seconds = self._ledger.let_pass(host, channel)
        if not seconds:
            self.front.let_pass_no_longer(host)
            return False
        self.front.let_pass(host, asked + seconds)
        return True

    def _ask_turn(self, seat: Seat, not_before: float) -> Turn:
        if not seat.token:
            seat.token = token(self._listening(), next(self._numbers), seat.delay)
        name = seat.token
        self._expect(name, seat)
        try:
            turn = self._ledger.acquire(seat.host, name, not_before)
        except BaseException:
            self._waiting.pop(name, None)
            raise
        if turn.granted:
            self._waiting.pop(name, None)
            if not turn.wait:
                self._sending[name] = seat
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
                channel = self._channel or alone.channel
                seat.token = token(channel, next(self._numbers), seat.delay)
            self._sending[seat.token] = seat
            turn = NOW
        return self.acquire(seat) if alone.is_over else turn

    def _expect(self, name: str, waiter: Waiter) -> None:
        """Let a waiter be woken, before it is known whether it has to wait at all."""
        waiter.wake = None  # what an earlier wait has left there would be called in vain
        waiter.ready = False
        self._waiting[name] = waiter

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
            if seat.token or push or overloaded:
                leave = Leave(sent, seat.delay, arrived, push, overloaded)
                push = self._leave_ledger(seat, leave)
        finally:
            # While the ledger is there, it counts overloads in a row: it has all of them.
            self.front.turns.release(
                seat,
                sent=sent,
                arrived=arrived,
                push=push,
                overloaded=None if alone is None else overloaded,
            )

    def _leave_ledger(self, seat: Seat, leave: Leave) -> float:
        """End a turn in the ledger, now or when it can be reached again; return the push."""
        name, seat.token = seat.token, ""
        self._waiting.pop(name, None)
        self._sending.pop(name, None)
        if leave.push or leave.overloaded:
            self.front.let_pass_no_longer(seat.host)
        if self._outages.alone is not None:
            self._owed.append((self._clock(), seat.host, name, leave))
            return leave.push
        try:
            return self._ledger.release(seat.host, name, leave)
        except StoreFault as fault:
            log.warning("the end of a turn for %s waits for the store: %s", seat.host, fault)
            self._owed.append((self._clock(), seat.host, name, leave))
            return max(leave.push, backoff(1, leave.delay) if leave.overloaded else 0.0)

    # --- copies -----------------------------------------------------------------------------

    def claim(self, key: CopyKey, waiter: CopyWaiter) -> Copy | Reply | Claimed | Busy:
        """See ``Store.claim``."""
        found = self.front.copies.claim(key, waiter)
        if not isinstance(found, Claimed):
            return found
        if self._outages.alone is None:
            try:
                return self._claim_shared(key, waiter, found)
            except StoreFault as fault:
                if self._outages.endure(fault, self) is None:
                    raise
        return found

    def _claim_shared(
        self, key: CopyKey, waiter: CopyWaiter, found: Claimed
    ) -> Copy | Reply | Claimed | Busy:
        if not waiter.token:
            waiter.token = token(self._listening(), next(self._numbers), 0.0)
            waiter.since = self._clock()
        name, shared_key = waiter.token, ledger_key(key)
        self._expect(name, waiter)
        answer = self._ask_copy(shared_key, name, waiter.since)
        if isinstance(answer, Elsewhere):
            return Busy(answer.ask_again)
        self._waiting.pop(name, None)
        if isinstance(answer, Claimed):
            self._fetching[name] = (shared_key, waiter)
            return answer if answer.last is not None else found
        waiter.token = ""
        self.front.copies.publish(key, waiter, answer)
        return answer

    def _ask_copy(self, key: str, name: str, since: float) -> Copy | Reply | Claimed | Elsewhere:
        while True:
            waited = self._clock() - since
            answer = self._ledger.claim(key, name, waited, self.now())
            if isinstance(answer, Elsewhere):
                return answer
            if isinstance(answer, Failed):
                return Reply(None, error=OSError(answer.error))
            packed = answer.packed if isinstance(answer, Kept) else answer.last
            try:
                copy = None if packed is None else unpack(packed)
            except NotACopy as error:
                log.warning("the store's copy for %s is fetched anew: %s", key, error)
                self._ledger.discard(key)
            else:
                return copy if isinstance(answer, Kept) and copy is not None else Claimed(copy)

    def publish(self, key: CopyKey, waiter: CopyWaiter, outcome: Copy | Reply | None) -> None:
        """See ``Store.publish``."""
        name, waiter.token = waiter.token, ""
        try:
            if name:
                self._waiting.pop(name, None)
                self._fetching.pop(name, None)
            if name and self._outages.alone is None:
                self._ledger.publish(ledger_key(key), name, _shareable(outcome))
        except StoreFault as fault:
            log.warning("the robots.txt of %s is not shared: %s", key.origin, fault)
        finally:
            self.front.copies.publish(key, waiter, outcome)

    # --- the thread in the background -------------------------------------------------------

    def _listening(self) -> str:
        """Return the channel on which this process is woken; the first call begins to listen."""
        if self._closing is None:
            tick = self._lease / 3
            with self._lock:
                if self._closing is None:
                    mailbox = self._ledger.open_mailbox()
                    self._channel = mailbox.channel
                    closing = threading.Lock()
                    closing.acquire()
                    self._closing = closing
                    threading.Thread(
                        target=_listen,
                        args=(weakref.ref(self), mailbox, closing, tick),
                        name="polite_transport store",
                        daemon=True,
                    ).start()
        return self._channel

    def hear(self, tokens: Sequence[str] | None) -> None:
        """Wake those who are meant; all where some may have been missed."""
        for name in list(self._waiting) if tokens is None else tokens:
            waiter = self._waiting.pop(name, None)
            if waiter is None:
                continue
            waiter.ready = True
            if waiter.wake is not None:
                # Its event loop is closed: what it was given ends by itself, a claim soon.
                with suppress(RuntimeError):
                    waiter.wake()

    def beat(self) -> None:
        """Renew the leases of requests on their way, and tell the ledger what it has missed."""
        now = self._clock()
        with self._telling:
            while self._owed:
                owed = since, host, name, leave = self._owed.popleft()
                left = replace(leave, push=max(leave.push - (now - since), 0.0))
                if not left.push and now - since > max(REMEMBERED, 2 * leave.delay):
                    continue  # nobody has to wait for it any more
                try:
                    self._ledger.release(host, name, left)
                except BaseException:
                    self._owed.appendleft(owed)
                    raise
        turns = [
            (seat.host, name)
            for name, seat in list(self._sending.items())
            if now < seat.until and not seat.is_gone
        ]
        claims = [
            (key, name)
            for name, (key, waiter) in list(self._fetching.items())
            if now < waiter.since + CLAIM_LIFE and not waiter.is_gone
        ]
        if turns or claims:
            self._ledger.renew(turns, claims)

    def try_again(self) -> None:
        """Ask the ledger whether it is back; where it is, tell it what it has missed.

        Raises StoreFault.
        """
        self._listening()
        self._ledger.release(_NO_HOST, "", Leave(sent=False, delay=0.0))
        self.beat()

    def close(self) -> None:
        """Stop listening and let go of files and connections; the next request starts anew."""
        with self._lock:
            closing, self._closing = self._closing, None
        if closing is not None:
            closing.release()
            self.hear(None)
        self._outages.end()
        self._ledger.close()

    def start_anew_after_fork(self) -> None:
        """In a forked child: turns, thread, locks and connections are the parent's."""
        self.front.start_anew_after_fork()
        self._ledger.forget_parent()
        self._start_anew()

    # --- copies of the store itself ---------------------------------------------------------

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


def _listen(
    of: "weakref.ref[SharedStore]", mailbox: Mailbox, closing: threading.Lock, tick: float
) -> None:
    """Listen for a store until it is closed or gone. No error ends it: leases depend on it."""
    beat_at = time.monotonic() + tick
    pause = 0.0
    while not closing.acquire(timeout=pause):
        try:
            tokens = mailbox.listen(max(beat_at - time.monotonic(), 0.001))
            pause = _RECONNECT_PAUSE if tokens is None else 0.0
            store = of()
            if store is None:
                break
            store.hear(tokens)
            if tokens is None or time.monotonic() >= beat_at:
                beat_at = time.monotonic() + tick
                store.beat()
        except StoreFault as fault:
            log.info("leases are not renewed for now: %s", fault)
        except Exception:
            log.exception("listening for a store")
            pause = _RECONNECT_PAUSE
        store = None  # or it would be kept alive by its own listener
    mailbox.close()


def _shareable(outcome: Copy | Reply | None) -> Packed | str | None:
    if isinstance(outcome, Copy):
        return pack(outcome)
    if outcome is None:
        return None
    return f"{type(outcome.error).__name__}: {outcome.error}" if outcome.error else "no answer"


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
