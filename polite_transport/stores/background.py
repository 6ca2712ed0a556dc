"""What a process does for its share of a ledger beside its requests, in one thread of its own.

It hears wake-ups, renews the leases of requests on their way, and tells the ledger what it missed
while it was away. The thread starts with the first turn, and ends with the store.
"""

import itertools
import logging
import threading
import time
import weakref
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import replace

from polite_transport.pacing.turns import REMEMBERED
from polite_transport.stores.base import CopyWaiter, Seat, StoreFault, Waiter
from polite_transport.stores.copies import CLAIM_LIFE
from polite_transport.stores.ledger import Leave, Ledger, Mailbox, token

log = logging.getLogger("polite_transport")

_RECONNECT_PAUSE = 0.2  # seconds between attempts of the listener
_MOST_OWED = 10_000
_LOT = 16  # leases that are renewed at a time
_NO_HOST = "store.invalid"  # of a record that is written to see whether one can (RFC 2606)


class Background:
    """The tokens of one process: who waits, who is on its way, and what the ledger is owed.

    lease: seconds; leases are renewed three times as often.
    clock: monotonic, seconds.

    sending: turns on their way, by token. fetching: robots.txt on its way, with the ledger's key.
    """

    def __init__(self, ledger: Ledger, lease: float, clock: Callable[[], float]) -> None:
        self._ledger = ledger
        self._lease = lease
        self._clock = clock
        self.start_anew()

    def start_anew(self) -> None:
        """Forget everything; in a forked child all of it is the parent's."""
        self._lock = threading.Lock()
        self._renewing = threading.RLock()  # a signal may come, and end another, as one ends
        self._numbers = itertools.count()
        self._channel = ""
        self._closing: threading.Lock | None = None  # held while the listener is wanted
        self._waiting: dict[str, Waiter] = {}
        self.sending: dict[str, Seat] = {}
        self.fetching: dict[str, tuple[str, CopyWaiter]] = {}
        self._owed: deque[tuple[float, str, str, Leave]] = deque(maxlen=_MOST_OWED)
        self._telling = threading.Lock()

    # --- tokens -----------------------------------------------------------------------------

    def token(self, delay: float, channel: str | None = None) -> str:
        """Return a new token.

        delay: seconds that its request is bound to.
        channel: where it is woken; None = here, so that listening begins. Raises StoreFault then.
        """
        return token(channel or self.channel(), next(self._numbers), delay)

    def channel(self) -> str:
        """Return where this process is woken; the first call begins to listen.

        Raises StoreFault.
        """
        if self._closing is None:
            with self._lock:
                if self._closing is None:
                    mailbox = self._ledger.open_mailbox()
                    closing = threading.Lock()
                    closing.acquire()
                    thread = threading.Thread(
                        target=_listen,
                        args=(weakref.ref(self), mailbox, closing, self._lease / 3),
                        name="polite_transport store",
                        daemon=True,
                    )
                    try:
                        thread.start()
                    except RuntimeError as error:
                        mailbox.close()
                        raise StoreFault(f"no thread can be started to listen: {error}") from error
                    self._channel = mailbox.channel
                    self._closing = closing
        return self._channel

    @property
    def last_channel(self) -> str:
        """Where this process has been woken, empty if it has not begun to listen."""
        return self._channel

    def expect(self, name: str, waiter: Waiter) -> None:
        """Let a waiter be woken, before it is known whether it has to wait at all."""
        waiter.wake = None  # what an earlier wait has left there would be called in vain
        waiter.ready = False
        self._waiting[name] = waiter

    def expect_no_longer(self, name: str) -> None:
        """Take it that a waiter goes on by itself."""
        self._waiting.pop(name, None)

    def end(self, name: str) -> None:
        """Forget a token whose turn or fetch has come to its end: it is not renewed any more."""
        self._waiting.pop(name, None)
        with self._renewing:
            self.sending.pop(name, None)
            self.fetching.pop(name, None)

    def owe(self, host: str, name: str, leave: Leave) -> None:
        """Keep the end of a turn for when the ledger can be told."""
        self._owed.append((self._clock(), host, name, leave))

    # --- the thread -------------------------------------------------------------------------

    def hear(self, tokens: Sequence[str] | None) -> None:
        """Wake those who are meant; all where some may have been missed."""
        for name in list(self._waiting) if tokens is None else tokens:
            waiter = self._waiting.pop(name, None)
            if waiter is not None:
                waiter.ready = True
                # Where its event loop is closed, what it was given ends by itself, a claim soon.
                waiter.wake_up()

    def beat(self) -> None:
        """Renew the leases of requests on their way, and tell the ledger what it has missed."""
        now = self._clock()
        self._pay(now)
        turns = [
            (seat.host, name)
            for name, seat in list(self.sending.items())
            if now < seat.until and not seat.is_gone
        ]
        claims = [
            (key, name)
            for name, (key, waiter) in list(self.fetching.items())
            if now < waiter.since + CLAIM_LIFE and not waiter.is_gone
        ]
        # A ledger takes a turn for lost that it does not know, and gives it back to its token. One
        # that has ended must not be renewed after its end; in small lots, since the ends wait.
        while turns or claims:
            with self._renewing:
                self._ledger.renew(
                    [turn for turn in turns[:_LOT] if turn[1] in self.sending],
                    [claim for claim in claims[:_LOT] if claim[1] in self.fetching],
                )
            del turns[:_LOT], claims[:_LOT]

    def _pay(self, now: float) -> None:
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

    def try_again(self) -> None:
        """Ask the ledger whether it is back; where it is, tell it what it has missed.

        Raises StoreFault.
        """
        self.channel()
        self._ledger.release(_NO_HOST, "", Leave(sent=False, delay=0.0))
        self.beat()

    def close(self) -> None:
        """Stop listening; the next token begins anew."""
        with self._lock:
            closing, self._closing = self._closing, None
        if closing is not None:
            closing.release()
            self.hear(None)


def _listen(
    of: "weakref.ref[Background]", mailbox: Mailbox, closing: threading.Lock, tick: float
) -> None:
    """Listen for a store until it is closed or gone. No error ends it: leases depend on it."""
    beat_at = time.monotonic() + tick
    pause = 0.0
    while not closing.acquire(timeout=pause):
        try:
            tokens = mailbox.listen(max(beat_at - time.monotonic(), 0.001))
            pause = _RECONNECT_PAUSE if tokens is None else 0.0
            background = of()
            if background is None:
                break
            background.hear(tokens)
            if tokens is None or time.monotonic() >= beat_at:
                beat_at = time.monotonic() + tick
                background.beat()
        except StoreFault as fault:
            log.info("leases are not renewed for now: %s", fault)
        except Exception:
            log.exception("listening for a store")
            pause = _RECONNECT_PAUSE
        background = None  # or it would be kept alive by its own listener
    mailbox.close()
