"""How long a copy of robots.txt counts; pure. Source: RFC 9309 section 2.4, RFC 9111."""

import re
from collections.abc import Mapping

from polite_transport.pacing.retry_after import http_seconds

SHORTEST_LIFE = 1_800.0  # a site that forbids caching still is not asked for it before every page
FIRST_RETRY = 60.0
LONGEST_RETRY = 3_600.0
LONGEST_STALE = 30 * 86_400.0  # a copy older than this no longer speaks for an unreachable site

_MAX_AGE = re.compile(r'max-age\s*=\s*"?(\d{1,12})"?\s*(?:,|$)', re.IGNORECASE)
_NOT_STORED = re.compile(r"(?:^|,)\s*(?:no-store|no-cache)\s*(?:,|=|$)", re.IGNORECASE)


def lifetime(headers: Mapping[str, str], longest: float, now: float) -> float:
    """Return the seconds that a file just fetched counts.

    headers: of the response, lower-case names.
    longest: the policy's robots_ttl. HTTP caching may shorten it to half an hour, never more, and
        never stretches it.
    now: wall clock, for an Expires without a Date beside it.
    """
    asked = _asked_lifetime(headers, now)
    if asked is None:
        return longest
    age = headers.get("age", "").strip()
    if age.isascii() and age.isdigit():
        asked -= float(age[:12])
    return min(longest, max(asked, SHORTEST_LIFE))


def _asked_lifetime(headers: Mapping[str, str], now: float) -> float | None:
    """Cache-Control first, Expires only without it (RFC 9111 section 4.2.1)."""
    cache_control = headers.get("cache-control", "")
    if _NOT_STORED.search(cache_control):
        return 0.0
    ages = [float(each) for each in _MAX_AGE.findall(cache_control)]
    if ages:
        return min(ages)
    expires = headers.get("expires")
    if expires is None:
        return None
    end = http_seconds(expires)
    if end is None:
        return 0.0  # "Expires: 0" and the like mean: already stale (RFC 9111 section 5.3)
    sent = http_seconds(headers.get("date", ""))
    return end - (now if sent is None else sent)


def retry_in(failures: int, asked: float | None) -> float:
    """Return the seconds until an unreachable robots.txt is asked for again.

    failures: how often in a row it was unreachable, 1 the first time.
    asked: what Retry-After said, up to 30 days; else a minute, doubling to an hour.
    """
    if asked:
        return min(asked, LONGEST_STALE)  # a header that says years may well be a mistake
    return min(FIRST_RETRY * 2.0 ** min(failures - 1, 16), LONGEST_RETRY)
