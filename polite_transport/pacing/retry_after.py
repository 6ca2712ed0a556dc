"""How long a site asks us to stay away: Retry-After, and back-off where it names no time; pure."""

import math
import random
from datetime import UTC
from email.utils import parsedate_to_datetime

OVERLOADED = frozenset({429, 503})
FIRST_BACKOFF = 1.0  # seconds; nothing shorter would be noticed by a site in trouble
LONGEST_BACKOFF = 60.0
# Far beyond any max_delay, so that it is refused and never slept through; still a date that
# arithmetic survives, which 400 digits of a hostile header are not.
LONGEST_RETRY_AFTER = 10 * 365 * 86_400.0


def retry_after(value: str | None, date: str | None, now: float) -> float | None:
    """Return the seconds that a Retry-After header asks for.

    value: the header, delay-seconds or an HTTP-date.
    date: the response's own Date header. A date is read against it where there is one, since the
        site's clock and ours may differ.
    now: our wall clock, seconds since the epoch.

    Returns None where the header is absent or garbled. Zero, and a date in the past, are 0.0.
    Source: RFC 9110 section 10.2.3.
    """
    if value is None:
        return None
    value = value.strip()
    if value.isascii() and value.isdigit():
        return min(float(value), LONGEST_RETRY_AFTER)
    wanted = http_seconds(value)
    if wanted is None:
        return None
    sent = http_seconds(date) if date is not None else None
    return min(max(wanted - (now if sent is None else sent), 0.0), LONGEST_RETRY_AFTER)


def http_seconds(text: str) -> float | None:
    """Return an HTTP-date as seconds since the epoch, or None where it is none."""
    try:
        parsed = parsedate_to_datetime(text)
        # A date without a zone is read as UTC: HTTP-date has no other (RFC 9110 section 5.6.7).
        return (parsed if parsed.tzinfo else parsed.replace(tzinfo=UTC)).timestamp()
    except (ValueError, TypeError, IndexError, OverflowError):
        return None


def asked_pause(status: int, seconds: float | None) -> float:
    """Return the seconds that this response moves its host's next turn by, as the site asked.

    seconds: what its Retry-After says. It counts on 429 and 503, and on redirects, where it is
    the least time before the next request (RFC 9110 section 10.2.3).
    """
    if seconds and (status in OVERLOADED or 300 <= status < 400):
        return seconds
    return 0.0


def backoff(strikes: int, delay: float) -> float:
    """Return our own pause after the ``strikes``-th overloaded response in a row, in seconds.

    Doubles from max(delay, 1 s) up to 60 s, with up to a quarter more at random, so that robots
    that were turned away together do not come back together. Never below the site's delay.
    """
    base = max(delay, FIRST_BACKOFF)
    doubled = base * 2.0 ** min(strikes - 1, math.ceil(math.log2(LONGEST_BACKOFF)))
    pause = min(doubled * random.uniform(1.0, 1.25), LONGEST_BACKOFF)  # noqa: S311
    return max(pause, delay)
