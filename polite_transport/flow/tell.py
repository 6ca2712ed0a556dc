"""What people are told about a robots.txt: once for each fetch, never for each request."""

import logging

from polite_transport.decision import LONGEST_SHOWN, cited
from polite_transport.policy import Policy
from polite_transport.robots.access import Access, Copy, Reply
from polite_transport.robots.records import Record
from polite_transport.robots.verdict import printable, shown

log = logging.getLogger("polite_transport")

_LINES_SHOWN = 3  # a hostile file has tens of thousands
_WANTED = {
    "crawl-delay": "a number of seconds",
    "request-rate": "a number of requests in a number of seconds",
    "visit-time": "a part of the day",
}


def tell_oddities(outcome: Copy | Reply, policy: Policy) -> None:
    """Log what is odd about what a fetch came to. No answer at all is the caller's to tell."""
    if not isinstance(outcome, Copy):
        return
    file = cited(outcome.robots_url, outcome.redirected_to)
    note = outcome.note and printable(outcome.note, LONGEST_SHOWN)
    if outcome.access is not Access.FILE:
        if note or outcome.access is Access.UNREACHABLE:
            odd = f" ({note})" if note else ""
            log.warning("%s answered %d%s", file, outcome.status, odd)
        return
    if note:
        log.warning("%s: %s", file, note)
    if outcome.is_html:
        log.warning("%s is a web page, without one line for robots", file)
    elif outcome.oddity:
        log.warning("%s allows everything: %s", file, outcome.oddity)
    for record in _ignored(outcome, policy)[:_LINES_SHOWN]:
        log.warning(
            "line %d of %s: '%s' is not %s and is ignored%s",
            record.line,
            file,
            shown(record),
            _WANTED[record.kind],
            "" if record.kind == "visit-time" else "; set Policy(min_delay=) to keep a distance",
        )


def _ignored(copy: Copy, policy: Policy) -> list[Record]:
    """Return the lines for us that ask for what the policy would keep, and cannot be read."""
    return [
        record
        for record in copy.robots.unreadable(copy.product_token)
        if (policy.obey_visit_time if record.kind == "visit-time" else policy.obey_crawl_delay)
    ]
