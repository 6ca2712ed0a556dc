"""What a shared store keeps for one host, and how its verbs change it; pure.

``turns.lua`` says the same to Redis. One suite of tests runs against both.
"""

from dataclasses import dataclass, field

from polite_transport.pacing.retry_after import backoff
from polite_transport.pacing.turns import REMEMBERED, Record
from polite_transport.stores.base import NOW, Turn
from polite_transport.stores.ledger import CLAIM, PASS, Leave, channel_of, delay_of

NEVER = float("-inf")
SEVERAL = "*"


@dataclass(slots=True)
class HostRecord(Record):
    """A record that several processes share. Times are of the ledger's own clock, in seconds.

    holder: the token whose turn it is; empty for none.
    is_sending: whether it has confirmed, so that its request may be on its way.
    until: when its lease, or its claim to a turn that it has not confirmed, ends.
    pass_until: until when requests that are bound to nothing may be sent without asking.
    passing: the channel of the process that may send them, or SEVERAL. A process knows of its
        own, to the moment; of others only that they may have sent until then.
    queue: tokens, in order.
    """

    holder: str = ""
    is_sending: bool = False
    until: float = 0.0
    pass_until: float = NEVER
    passing: str = ""
    queue: list[str] = field(default_factory=list[str])

    def starts(self, token: str, epoch: float) -> float:
        """Return the earliest start of a token's request.

        epoch: when the ledger was made or last lost its memory. A host that nothing was sent to
            since may have been sent something just before.
        """
        delay = delay_of(token)
        start = self.start(delay)
        if self.last < epoch:
            start = max(start, epoch + delay)
        if self.passing not in ("", channel_of(token)):
            start = max(start, self.pass_until + delay)
        return start

    def acquire(
        self, token: str, not_before: float, lease: float, now: float, epoch: float
    ) -> tuple[Turn, str]:
        """See ``Ledger.acquire``; return also the token to be woken, empty for none."""
        self._end_overdue(now)
        woken = "" if self.holder else self._promote(now, epoch)
        if not self.holder:
            self.holder = token
        if self.holder == token:
            start = max(self.starts(token, epoch), now + not_before)
            if start <= now:
                self.is_sending = True
                self.until = now + lease
                return NOW, ""
            self.is_sending = False
            self.until = start + CLAIM
            return Turn(True, start - now, max(self.floor - now, 0.0)), ""
        if token not in self.queue:
            self.queue.append(token)
        # At the least: the holder starts when it may, and everyone before us keeps a delay.
        wait = max(self.starts(self.holder, epoch) - now, 0.0) + delay_of(self.holder)
        wait += sum(map(delay_of, self.queue[: self.queue.index(token)]))
        return Turn(False, wait, max(self.floor - now, 0.0), max(self.until - now, 0.0)), woken

    def _end_overdue(self, now: float) -> None:
        """Take the turn from a holder whose lease is over.

        One that had confirmed may have sent until then, and nobody knows what became of it.
        """
        if not self.holder or now < self.until:
            return
        if self.is_sending:
            self.count(self.until, delay_of(self.holder), arrived=False)
        self.holder = ""
        self.is_sending = False

    def _promote(self, now: float, epoch: float) -> str:
        """Give the turn to the next in the queue, who has to confirm it."""
        if not self.queue:
            return ""
        self.holder = self.queue.pop(0)
        self.is_sending = False
        self.until = max(now, self.starts(self.holder, epoch)) + CLAIM
        return self.holder

    def release(self, token: str, leave: Leave, now: float, epoch: float) -> tuple[float, str]:
        """See ``Ledger.release``; return the push, and the token to be woken."""
        push = leave.push
        if leave.overloaded and now >= self.floor:
            # Once for each pause: requests that were on their way together met one overload.
            self.strikes += 1
            push = max(push, backoff(self.strikes, leave.delay))
        elif leave.overloaded is False:
            self.strikes = 0
        if push:
            self.floor = max(self.floor, now + push)
        if token and self.holder == token:
            if leave.sent:
                self.count(now, leave.delay, arrived=leave.arrived)
            self.holder = ""
            self.is_sending = False
            return push, self._promote(now, epoch)
        if token in self.queue:
            self.queue.remove(token)
        elif leave.sent:
            # Bound to nothing; or its lease had ended, and an answer came after all.
            self.count(now, leave.delay, arrived=leave.arrived)
        return push, ""

    def let_pass(self, channel: str, now: float) -> float:
        """See ``Ledger.let_pass``."""
        self._end_overdue(now)
        # A host in trouble goes one by one until it has answered well.
        if self.holder or self.queue or self.strikes or self.start(0.0) > now:
            return 0.0
        others = self.passing not in ("", channel) and now < self.pass_until + REMEMBERED
        self.passing = SEVERAL if others else channel
        self.pass_until = now + PASS
        return PASS

    def renew(self, token: str, lease: float, now: float) -> None:
        """See ``Ledger.renew``."""
        if self.holder in ("", token):
            self.holder = token
            self.is_sending = True
            self.until = now + lease

    @property
    def needed_until(self) -> float:
        """When nothing that could still come would have to wait for this host."""
        holding = NEVER
        if self.holder:  # what becomes of it is not known yet, so that the worst counts
            delay = delay_of(self.holder)
            holding = self.until + delay + max(delay, REMEMBERED)
        return max(self.start(REMEMBERED), self.pass_until + REMEMBERED, holding)
