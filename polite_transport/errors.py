"""What can be refused, and why.

::

    PoliteError
    ├── DisallowedByRobots    the site's robots.txt says no: for good
    ├── RobotsUnreachable     robots.txt answered 429 or 5xx: for now
    ├── WaitTooLong           the turn is further away than the policy allows: for now
    └── StoreUnavailable      the shared store cannot be used, nothing was sent: for now

Each client raises a subclass of its own that is also that client's base error, so that both
``except requests.RequestException`` and ``except DisallowedByRobots`` work.
"""

from typing import Any

from polite_transport.decision import LONGEST_SHOWN, Decision
from polite_transport.robots.verdict import printable


class PoliteError(Exception):
    """A request that was not sent.

    decision: what was decided about it, and on what grounds.
    """

    def __init__(self, decision: Decision) -> None:
        # Not BaseException.__init__ alone: the client's own base error sets attributes in its.
        super().__init__(decision)
        self.decision = decision

    def __str__(self) -> str:  # who, what, which line of robots.txt, and what to do next
        return str(self.decision)

    @property
    def _url(self) -> str:
        return printable(self.decision.url, LONGEST_SHOWN)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({str(self)!r})"

    def made_of(self) -> tuple[Any, ...]:
        """Return the arguments that make this error again, in this or in a client's own class."""
        return (self.decision,)

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle and copy by those; a client's base error would lose them."""
        notes = getattr(self, "__notes__", None)
        return type(self), self.made_of(), {"__notes__": notes} if notes else {}


class DisallowedByRobots(PoliteError):
    """The site's robots.txt disallows this request, for good. It was not sent."""

    def __str__(self) -> str:
        return f"{self.decision}. It was not sent: skip it, or ask the site's owner."


class RobotsUnreachable(PoliteError):
    """The site's robots.txt answers 429 or 5xx, so that nothing may be sent for now.

    retry_in: seconds until it is asked for again.
    Source: RFC 9309 section 2.3.1.4.
    """

    def __init__(self, decision: Decision, retry_in: float) -> None:
        super().__init__(decision)
        self.retry_in = retry_in

    def __str__(self) -> str:
        return (
            f"{self.decision}. It was not sent: try it again later; "
            f"robots.txt is asked for again in {self.retry_in:.0f} s."
        )

    def made_of(self) -> tuple[Any, ...]:
        """See ``PoliteError.made_of``."""
        return (self.decision, self.retry_in)


class WaitTooLong(PoliteError):
    """The request's turn is further away than the policy allows.

    wait: seconds until it could be sent, at the least.
    limit: the setting of the policy that it exceeds, with its value.
    """

    def __init__(self, decision: Decision, wait: float, limit: str) -> None:
        super().__init__(decision)
        self.wait = wait
        self.limit = limit

    def __str__(self) -> str:
        return (
            f"{self._url} would have to wait {self.wait:.1f} s or more for its "
            f"turn, above {self.limit} of the policy. It was not sent: try it again later, or "
            "allow the wait."
        )

    def made_of(self) -> tuple[Any, ...]:
        """See ``PoliteError.made_of``."""
        return (self.decision, self.wait, self.limit)


class StoreUnavailable(PoliteError):
    """The store that holds turns and robots.txt copies cannot be used. Nothing was sent.

    cause: what the store said.
    """

    def __init__(self, decision: Decision, cause: str) -> None:
        super().__init__(decision)
        self.cause = cause

    def __str__(self) -> str:
        return (
            f"{self._url} was not sent, because the store of turns cannot be "
            f"used: {self.cause}. Nothing goes out unpaced: mend the store, or name another."
        )

    def made_of(self) -> tuple[Any, ...]:
        """See ``PoliteError.made_of``."""
        return (self.decision, self.cause)
