"""What can be refused, and why.

::

    PoliteError
    ├── DisallowedByRobots    the site's robots.txt says no: for good
    ├── RobotsUnreachable     robots.txt answered 429 or 5xx, or is broken: for now
    ├── WaitTooLong           the turn is further away than the policy allows: for now, or until
    │                         the policy allows it
    ├── StoreUnavailable      the shared store cannot be used, nothing was sent: for now
    └── InvalidURL            it cannot be told whose page it is: for good

Each client raises a subclass of its own that is also that client's base error, so that both
``except requests.RequestException`` and ``except DisallowedByRobots`` work.
"""

import enum
from typing import Any

from polite_transport.decision import LONGEST_SHOWN, Decision, Reason
from polite_transport.robots.verdict import printable
from polite_transport.url import InvalidURL as UnreadableURL

_DAY = 86_400.0
_CENTURY = 36_525  # days


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
    def _shown_url(self) -> str:
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
    """The site's robots.txt answers 429 or 5xx, or is broken, so that nothing may be sent for now.

    retry_in: seconds until it is asked for again; 0.0 where the next request does it.
    Source: RFC 9309 section 2.3.1.4.
    """

    def __init__(self, decision: Decision, retry_in: float) -> None:
        super().__init__(decision)
        self.retry_in = retry_in

    def __str__(self) -> str:
        seconds = f"in {self.retry_in:.0f} s" if self.retry_in else "by the next request"
        return (
            f"{self.decision}. It was not sent: try it again later; "
            f"robots.txt is asked for again {seconds}."
        )

    def made_of(self) -> tuple[Any, ...]:
        """See ``PoliteError.made_of``."""
        return (self.decision, self.retry_in)


class WaitReason(enum.Enum):
    """What a request would have to wait for."""

    SITE_DELAY = "the site asks for more seconds between any two requests"
    LAST_REQUEST = "the distance to the request before"
    QUEUE = "other requests to its host are before it"
    RETRY_AFTER = "its host asked for a pause (Retry-After)"
    PAUSE = "its host asked for a pause (Retry-After), or is left alone after a 429 or 503"
    VISIT_TIME = "the site's Visit-time begins then"


class WaitTooLong(PoliteError):
    """The request's turn is further away than the policy allows.

    wait: seconds until it could be sent, at the least. Where the site asks for more between any two
        requests than the policy allows, how much that is.
    limit: the setting of the policy that it exceeds, with its value.
    why: what it would have to wait for.
    """

    def __init__(self, decision: Decision, wait: float, limit: str, why: WaitReason) -> None:
        super().__init__(decision)
        self.wait = wait
        self.limit = limit
        self.why = why

    @property
    def retry_in(self) -> float | None:
        """Seconds after which trying again may help; None where only another policy does."""
        return None if self.why is WaitReason.SITE_DELAY else self.wait

    def __str__(self) -> str:
        setting = self.limit.partition("=")[0]
        if self.retry_in is None:
            return (
                f"{self._shown_url} was not sent: {self.decision.delay_grounds}, and that is above "
                f"{self.limit} of the policy. Trying again does not help while it is so: allow it "
                f"with a larger {setting}, for this host alone in Policy(overrides=…), or skip the "
                "site."
            )
        robots_txt = self.decision.reason is Reason.NOT_YET
        turn = "the turn of its robots.txt, which is read first," if robots_txt else "its turn"
        return (
            f"{self._shown_url} was not sent: {turn} is {_span(self.wait)} or more away, above "
            f"{self.limit} of the policy, because {self._because()}. Try it again in "
            f"{_span(self.wait)}, or allow the wait with a larger {setting}."
        )

    def _because(self) -> str:
        delay = self.decision.delay
        if self.why is WaitReason.LAST_REQUEST:
            if self.wait <= delay:
                return self.decision.delay_grounds
            return "an earlier request keeps a longer distance, or may still be under way"
        if self.why is WaitReason.QUEUE and delay:
            return f"{self.why.value}, and {self.decision.delay_grounds}"
        return str(self.why.value)

    def made_of(self) -> tuple[Any, ...]:
        """See ``PoliteError.made_of``."""
        return (self.decision, self.wait, self.limit, self.why)


def _span(seconds: float) -> str:
    """Return a time as people say it: a site may ask for a number of 400 digits."""
    if seconds < 2 * _DAY:
        return f"{seconds:.1f} s"
    days = seconds / _DAY
    return f"{days:.0f} days" if days < _CENTURY else "more than 100 years"


class StoreUnavailable(PoliteError):
    """The store that holds turns and robots.txt copies cannot be used. Nothing was sent.

    cause: what the store said.
    """

    def __init__(self, decision: Decision, cause: str) -> None:
        super().__init__(decision)
        self.cause = cause

    def __str__(self) -> str:
        return (
            f"{self._shown_url} was not sent, because the store of turns cannot be "
            f"used: {self.cause}. Nothing goes out unpaced: mend the store, or name another."
        )

    def made_of(self) -> tuple[Any, ...]:
        """See ``PoliteError.made_of``."""
        return (self.decision, self.cause)


class InvalidURL(PoliteError, UnreadableURL):
    """It cannot be told whose page a request is for, so that nothing can be checked.

    The URL's host or port cannot be read, or a Host header names another. It was not sent.

    cause: what is wrong with it.
    """

    def __init__(self, decision: Decision, cause: str) -> None:
        super().__init__(decision)
        self.cause = cause

    def __str__(self) -> str:
        cause = printable(self.cause, LONGEST_SHOWN)
        return f"{self._shown_url} was not sent: {cause}. Correct the URL, or skip it."

    def made_of(self) -> tuple[Any, ...]:
        """See ``PoliteError.made_of``."""
        return (self.decision, self.cause)
