"""The arithmetic of turns: when a host's next request may start; pure.

One record a host. The clock starts when a response's headers are in, because only then is it
certain that the request has arrived: pacing from start to start breaks the promise as soon as
one connection is slower than the next.
"""

from dataclasses import dataclass

# After this long no delay within the default Policy.max_delay can reach back to a request.
REMEMBERED = 300.0


@dataclass(slots=True)
class Record:
    """What binds the next request to a host. Times are of the store's own clock, in seconds.

    last: when the last response's headers came.
    delay: what that request was bound to.
    floor: no turn starts before it (Retry-After, back-off, an attempt without an answer).
    strikes: overloaded responses (429, 503) in a row.
    """

    last: float = float("-inf")
    delay: float = 0.0
    floor: float = float("-inf")
    strikes: int = 0

    def start(self, delay: float) -> float:
        """Return the earliest start of a request that is bound to ``delay`` seconds itself.

        Of what the earlier and the later request are bound to, the larger counts.
        """
        return max(self.last + max(self.delay, delay), self.floor)

    def forgettable(self, now: float) -> bool:
        """Whether nothing that could still come would have to wait for this host."""
        return self.start(REMEMBERED) <= now


def unanswered_pause(delay: float) -> float:
    """Return the pause after an attempt that ended without headers, in seconds.

    A request that timed out or was cut off may still be on its way: it gets one delay to arrive,
    and the site its delay after that.
    """
    return 2 * delay
