"""How fast and when: Crawl-delay, Request-rate and Visit-time, none of which RFC 9309 knows."""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from polite_transport.robots.records import Record

_SECONDS = re.compile(r"[0-9]+(?:\.[0-9]*)?|\.[0-9]+")
_RATE = re.compile(
    r"([0-9]+)[ \t]*/[ \t]*([0-9]+)[ \t]*([smh]?)(?:[ \t]+[0-9:]+-[0-9:]+)?", re.IGNORECASE
)
_UNIT = {"": 1.0, "s": 1.0, "m": 60.0, "h": 3600.0}
_WINDOW = re.compile(
    r"([01][0-9]|2[0-4]):?([0-5][0-9])[ \t]*-[ \t]*([01][0-9]|2[0-4]):?([0-5][0-9])"
)
_DAY = 24 * 60
# A wish beyond all numbers is still a wish to stay away, and must not turn into none.
_LONGEST = sys.float_info.max


@dataclass(frozen=True, slots=True)
class VisitTime:
    """When a site wants to be visited: minutes of the UTC day; past midnight where end < start."""

    start: int
    end: int


def crawl_delay(records: Iterable[Record]) -> float | None:
    """Return the longest Crawl-delay in seconds among ``records``, or None."""
    return max(
        (
            min(float(record.value), _LONGEST)
            for record in records
            if record.kind == "crawl-delay" and _SECONDS.fullmatch(record.value)
        ),
        default=None,
    )


def request_interval(records: Iterable[Record]) -> float | None:
    """Return the longest time per request in seconds that a Request-rate sets, or None.

    The hours of the day that one may be limited to are not looked at: it counts at all times.
    """
    return max(_intervals(records), default=None)


def _intervals(records: Iterable[Record]) -> Iterator[float]:
    for record in records:
        found = _RATE.fullmatch(record.value) if record.kind == "request-rate" else None
        if found:
            requests, length = (min(float(number), _LONGEST) for number in found.group(1, 2))
            if requests and length:
                yield min(length * _UNIT[found[3].lower()] / requests, _LONGEST)


def visit_time(records: Iterable[Record]) -> VisitTime | None:
    """Return the first Visit-time among ``records`` that can be read, or None."""
    for record in records:
        found = _WINDOW.fullmatch(record.value) if record.kind == "visit-time" else None
        if found:
            hours, minutes, end_hours, end_minutes = map(int, found.groups())
            start, end = 60 * hours + minutes, 60 * end_hours + end_minutes
            if start < _DAY and end <= _DAY:
                return VisitTime(start, end)
    return None
