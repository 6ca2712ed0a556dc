"""Copies of robots.txt that processes share: one fetch for all of them.

Of all who want a copy in this process one goes on to the ledger, and asks there as often as it is
woken.
"""

import logging
from collections.abc import Callable

from polite_transport.robots.access import Copy, Reply
from polite_transport.stores.background import Background
from polite_transport.stores.base import Busy, Claimed, CopyKey, CopyWaiter, StoreFault
from polite_transport.stores.copies import Copies
from polite_transport.stores.ledger import Elsewhere, Failed, Kept, Ledger, Packed, ledger_key
from polite_transport.stores.outage import Outages
from polite_transport.stores.packing import NotACopy, pack, unpack

log = logging.getLogger("polite_transport")


class SharedCopies:
    """The process's own copies, and behind them those of the ledger.

    clock: monotonic, seconds.
    wall: seconds since 1970.
    """

    def __init__(
        self,
        own: Copies,
        ledger: Ledger,
        background: Background,
        outages: Outages,
        clock: Callable[[], float],
        wall: Callable[[], float],
    ) -> None:
        self._own = own
        self._ledger = ledger
        self._background = background
        self._outages = outages
        self._clock = clock
        self._wall = wall

    def claim(self, key: CopyKey, waiter: CopyWaiter) -> Copy | Reply | Claimed | Busy:
        """See ``Store.claim``."""
        found = self._own.claim(key, waiter)
        if not isinstance(found, Claimed):
            return found
        if self._outages.alone is None:
            try:
                self._outages.refuse(waiter)
                return self._claim_shared(key, waiter, found)
            except StoreFault as fault:
                if self._outages.endure(fault, self._background) is None:
                    self._outages.meet(fault)
                    raise
        return found

    def _claim_shared(
        self, key: CopyKey, waiter: CopyWaiter, found: Claimed
    ) -> Copy | Reply | Claimed | Busy:
        if not waiter.token:
            waiter.token = self._background.token(0.0)
            waiter.since = self._clock()
        name, shared_key = waiter.token, ledger_key(key)
        self._background.expect(name, waiter)
        answer = self._ask(shared_key, name, waiter.since)
        if isinstance(answer, Elsewhere):
            return Busy(answer.ask_again)
        self._background.expect_no_longer(name)
        if isinstance(answer, Claimed):
            self._background.fetching[name] = (shared_key, waiter)
            return answer if answer.last is not None else found
        waiter.token = ""
        self._own.publish(key, waiter, answer)
        return answer

    def _ask(self, key: str, name: str, since: float) -> Copy | Reply | Claimed | Elsewhere:
        while True:
            waited = self._clock() - since
            answer = self._ledger.claim(key, name, waited, self._wall())
            self._outages.answered()
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
                self._background.end(name)
            if name and self._outages.alone is None:
                self._ledger.publish(ledger_key(key), name, _shareable(outcome))
        except StoreFault as fault:
            if outcome is not None:  # else nothing was fetched; a claim given up ends by itself
                log.warning("the robots.txt of %s is not shared: %s", key.origin, fault)
        finally:
            self._own.publish(key, waiter, outcome)


def _shareable(outcome: Copy | Reply | None) -> Packed | str | None:
    if isinstance(outcome, Copy):
        return pack(outcome)
    if outcome is None:
        return None
    return f"{type(outcome.error).__name__}: {outcome.error}" if outcome.error else "no answer"
