"""How fast and when: Crawl-delay, Request-rate and Visit-time, none of which RFC 9309 knows."""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

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
    return max((seconds for seconds, _ in _asked(records, "crawl-delay")), default=None)


def request_interval(records: Iterable[Record]) -> float | None:
    """Return the longest time per request in seconds that a Request-rate sets, or None.

    The hours of the day that one may be limited to are not looked at: it counts at all times.
    """
    return max((seconds for seconds, _ in _asked(records, "request-rate")), default=None)


def slowest(records: Iterable[Record]) -> Record | None:
    """Return the Crawl-delay or Request-rate that asks for the most, the first of equals."""
    asked = _asked(records, "crawl-delay", "request-rate")
    return max(asked, key=lambda pair: pair[0], default=(0.0, None))[1]


def counts(record: Record) -> bool:
    """Whether a record says something; one that should say how fast or when, and does not, is none.

    Empty, or garbled: it hides no other that can be read.
    """
    read = _READ.get(record.kind)
    return read is None or read(record.value) is not None


def unreadable(records: Iterable[Record]) -> Iterator[Record]:
    """Yield those of ``records`` that should say how fast or when, and are ignored.

    One without a value asks for nothing, and is none of them.
    """
    return (record for record in records if record.value and not counts(record))


def visit_time(records: Iterable[Record]) -> VisitTime | None:
    """Return the first Visit-time among ``records`` that can be read, or None."""
    windows = (_window(record.value) for record in records if record.kind == "visit-time")
    return next(filter(None, windows), None)


def _asked(records: Iterable[Record], *kinds: str) -> Iterator[tuple[float, Record]]:
    """Yield the seconds between two requests that records of these kinds ask for."""
    for record in records:
        seconds = _INTERVAL[record.kind](record.value) if record.kind in kinds else None
        if seconds is not None:
            yield seconds, record


def _delay(value: str) -> float | None:
    return min(float(value), _LONGEST) if _SECONDS.fullmatch(value) else None


def _interval(value: str) -> float | None:
    found = _RATE.fullmatch(value)
    if found is None:
        return None
    requests, length = (min(float(number), _LONGEST) for number in found.group(1, 2))
    if not (requests and length):
        return None
    return min(length * _UNIT[found[3].lower()] / requests, _LONGEST)


def _window(value: str) -> VisitTime | None:
    found = _WINDOW.fullmatch(value)
    if found is None:
        return None
    hours, minutes, end_hours, end_minutes = map(int, found.groups())
    start, end = 60 * hours + minutes, 60 * end_hours + end_minutes
    return VisitTime(start, end) if start < _DAY and end <= _DAY else None


_INTERVAL = {"crawl-delay": _delay, "request-rate": _interval}
_READ: Mapping[str, Callable[[str], object]] = {**_INTERVAL, "visit-time": _window}
