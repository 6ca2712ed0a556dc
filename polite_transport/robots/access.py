"""From the HTTP outcome of asking for robots.txt to rules; pure.

Source: RFC 9309 section 2.3.1. A ``Copy`` records facts. What a policy makes of them is decided
for each request (``decision.py``), so that programs whose policies would read the same file share
its copy (``stores.base.CopyKey``).
"""

import enum
import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

from polite_transport.pacing.retry_after import retry_after
from polite_transport.robots.freshness import LONGEST_STALE, lifetime, retry_in
from polite_transport.robots.oddity import oddity
from polite_transport.robots.parse import Robots, parse_robots
from polite_transport.robots.records import Record
from polite_transport.robots.redirects import MOST_HOPS

_EMPTY_FILE = parse_robots(b"")
_PARTS = frozenset({206, 226})  # answers to requests for a part (RFC 9110 15.3.7, RFC 3229 10.4.1)
# A tag that stands in no comment of a robots.txt.
_HTML = re.compile(
    rb"^[^#\r\n]*<(?:!doctype\s+html|html|head|body|script|title|meta|div|p|h[1-6])\b",
    re.IGNORECASE | re.MULTILINE,
)
_HTML_BEGINS_WITHIN = 1_024


class Access(enum.Enum):
    """What the answer to robots.txt means, in the words of RFC 9309 section 2.3.1."""

    FILE = "a file"  # 2.3.1.1: its rules count
    UNAVAILABLE = "unavailable"  # 2.3.1.3: 4xx, no rules
    UNREACHABLE = "unreachable"  # 2.3.1.4: 5xx, 429, a broken answer: stay out


@dataclass(frozen=True, slots=True)
class Reply:
    """What the network said to one GET of robots.txt.

    status: None where there was no HTTP answer at all; then ``error`` is the client's exception.
    headers: lower-case names.
    broken: why the body cannot be used, where it ended early or cannot be decoded.
    late: whether our own time was over before the body was there: the policy's, or a shorter one
        of the client's.
    elapsed: seconds it took.
    """

    status: int | None
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    body: bytes = b""
    broken: str | None = None
    late: bool = False
    error: Exception | None = None
    elapsed: float = 0.0

    @property
    def failed(self) -> bool:
        """Whether asking again soon may help: no answer, 5xx, or a body that cannot be used."""
        return self.status is None or self.status >= 500 or self.unusable is not None

    @property
    def unusable(self) -> str | None:
        """Why its body cannot be used, for people, or None.

        What lies outside a part that was not asked for could say anything. And a 407 comes from no
        site, so that it says nothing of one (RFC 9110 section 15.5.8).
        """
        if self.late:
            return "its body takes too long"
        if self.broken is None and self.status in _PARTS:
            return "it is a part of a file, which was not asked for"
        if self.status == 407:
            return "it is the answer of a proxy, which wants credentials of its own"
        return self.broken

    def pause(self, now: float) -> float | None:
        """Return the seconds its Retry-After asks for, or None."""
        return retry_after(self.headers.get("retry-after"), self.headers.get("date"), now)


@dataclass(frozen=True, kw_only=True)
class Copy:
    """What one origin answered to one product token.

    redirected_to: the URL that gave this answer, where it is not robots_url.
    fetched_at, expires_at: wall clock, seconds since the epoch; ages outlive a reboot.
    note: what is odd about the answer beside its status, for people; None where nothing is.
    failures: how often in a row it was unreachable since.
    """

    robots_url: str
    redirected_to: str | None = None
    product_token: str
    status: int
    access: Access
    body: bytes
    max_bytes: int
    fetched_at: float
    expires_at: float
    etag: str | None = None
    last_modified: str | None = None
    note: str | None = None
    failures: int = 0

    @cached_property
    def robots(self) -> Robots:
        """The rules, parsed when first asked for."""
        return parse_robots(self.body, max_bytes=self.max_bytes) if self.body else _EMPTY_FILE

    @cached_property
    def digest(self) -> str | None:
        """SHA-256 of the file obeyed, hexadecimal; None where there is no file."""
        if self.access is not Access.FILE:
            return None
        return hashlib.sha256(self.body[: self.max_bytes]).hexdigest()

    @cached_property
    def asked_delay(self) -> float:
        """The larger of Crawl-delay and Request-rate for our product token, in seconds."""
        return max(
            self.robots.crawl_delay(self.product_token) or 0.0,
            self.robots.request_rate(self.product_token) or 0.0,
        )

    @cached_property
    def delay_record(self) -> Record | None:
        """The line that ``asked_delay`` comes from, value as written."""
        return self.robots.delay_record(self.product_token)

    @cached_property
    def oddity(self) -> str | None:
        """What is odd about a file without a User-agent line, for people, or None."""
        if self.access is not Access.FILE or self.is_html or not self.robots.names_nobody:
            return None
        return oddity(self.body, self.max_bytes)

    @cached_property
    def is_html(self) -> bool:
        """Whether a web page was served where a robots.txt should be, without one rule."""
        return (
            self.access is Access.FILE
            and _HTML.search(self.body[:_HTML_BEGINS_WITHIN]) is not None
            and not self.robots.has_rules
        )

    @property
    def conditional_headers(self) -> dict[str, str]:
        """Headers that ask whether the file has changed since (RFC 9110 section 13.1)."""
        headers: dict[str, str] = {}
        if self.etag:
            headers["If-None-Match"] = self.etag
        if self.last_modified:
            headers["If-Modified-Since"] = self.last_modified
        return headers

    def speaks_for_outage(self, now: float) -> bool:
        """Whether this copy may stand in while its site is unreachable.

        Only a real file may, for 30 days: an earlier 404 says nothing about the file that a site
        in trouble cannot serve now.
        """
        return self.access is Access.FILE and now - self.fetched_at <= LONGEST_STALE


def read_copy(
    reply: Reply,
    *,
    robots_url: str,
    redirected_to: str | None,
    product_token: str,
    endless: bool,
    max_bytes: int,
    ttl: float,
    now: float,
    last: Copy | None,
) -> Copy:
    """Return what an answer to robots.txt means.

    reply: the last hop's, with a status (no answer at all is no copy: see ``flow.load``).
    redirected_to: the URL that it came from, where that is not robots_url. Its validators are
        that URL's then, and are not kept; and a 304 was not asked for there.
    endless: whether the reply is one redirect too many, or one that closes a loop; that counts as
        unavailable (section 2.3.1.2).
    ttl: longest life, seconds.
    last: the copy held before, if any: refreshed by a 304, and standing in for an outage.

    Source: RFC 9309 sections 2.3.1.1 to 2.3.1.4 and 2.4.
    """
    if reply.status is None:
        raise ValueError("no answer is no copy")
    fresh = Copy(
        robots_url=robots_url,
        redirected_to=redirected_to,
        product_token=product_token,
        status=reply.status,
        access=access_of(reply),
        body=b"",
        max_bytes=max_bytes,
        fetched_at=now,
        expires_at=now + lifetime(reply.headers, ttl, now),
    )
    asked = redirected_to is None and last is not None and last.conditional_headers
    if reply.status == 304 and last is not None and asked:
        # The old file, new from now on.
        return replace(last, fetched_at=now, expires_at=fresh.expires_at, failures=0, note=None)
    if endless:
        note = f"it redirects in a loop, or more than {MOST_HOPS} times"
        return replace(fresh, access=Access.UNAVAILABLE, note=note)
    if fresh.access is Access.UNREACHABLE:
        return _unreachable(fresh, reply, now, last)
    if fresh.access is Access.FILE:
        return replace(
            fresh,
            body=reply.body,
            etag=None if redirected_to else reply.headers.get("etag"),
            last_modified=None if redirected_to else reply.headers.get("last-modified"),
        )
    if reply.status in (401, 403):
        return replace(fresh, note="as if robots were not wanted")
    return fresh


def access_of(reply: Reply) -> Access:
    """Sort a status into the three outcomes of RFC 9309.

    429 lies among the 4xx and yet asks for less traffic, not for more: it counts as unreachable.
    A 3xx comes here only where it cannot be followed.
    """
    status = reply.status
    if status is None or reply.unusable is not None:
        return Access.UNREACHABLE
    if 200 <= status < 300:
        return Access.FILE
    if 400 <= status < 500 and status != 429:
        return Access.UNAVAILABLE
    return Access.UNREACHABLE


def _unreachable(fresh: Copy, reply: Reply, now: float, last: Copy | None) -> Copy:
    """Return the copy for the time until an unreachable robots.txt is asked for again."""
    failures = (last.failures if last is not None else 0) + 1
    again_at = now + retry_in(failures, reply.pause(now))
    why = reply.unusable
    if last is not None and last.speaks_for_outage(now):
        odd = f" ({why})" if why else ""
        note = f"it answers {reply.status}{odd}; the copy held before counts on"
        again_at = min(again_at, last.fetched_at + LONGEST_STALE)
        return replace(last, expires_at=again_at, failures=failures, note=note)
    if (reply.late and 200 <= fresh.status < 300) or fresh.status == 407:
        # Another client may have the time to read it, or the proxy's password: the next one asks.
        again_at, failures = now, failures - 1
    return replace(
        fresh, access=Access.UNREACHABLE, expires_at=again_at, failures=failures, note=why
    )
