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

    last: when the last request had arrived at the latest.
    delay: how long after ``last`` those before let nothing start, whatever it is bound to.
    floor: no turn starts before it (Retry-After, back-off).
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

    def count(self, end: float, delay: float, *, arrived: bool = True) -> None:
        """Let a request that was bound to ``delay`` seconds hold off those after it.

        end: when its headers came, or it failed.
        arrived: whether it had arrived by then. One that timed out or was cut off may still be on
            its way: it counts as if it arrived one of its delays later.

        Requests may end in any order, since a turn can be over before its answer is there. None
        takes anything away from another.
        """
        due = self.last + self.delay
        arrival = end if arrived else end + delay
        if arrival >= self.last:
            self.last = arrival
        else:
            delay -= self.last - arrival
        self.delay = max(due - self.last, delay)

    def forgettable(self, now: float) -> bool:
        """Whether nothing that could still come would have to wait for this host."""
        return self.start(REMEMBERED) <= now
