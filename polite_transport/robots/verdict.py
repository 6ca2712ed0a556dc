"""What the engine answers with: rules, groups, and verdicts that explain themselves."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from polite_transport.robots.records import Record

_LINES_SHOWN = 5
_SHOWN = 200  # characters of a site's text in one sentence; a pattern may be half a megabyte
_VALUE_SHOWN = 40  # of a number of seconds, which may have as many digits


def printable(text: str, limit: int = _SHOWN) -> str:
    """Return ``text`` of a site fit for a log line: nothing invisible, and not endless."""
    shown = "".join(filter(str.isprintable, text[: 2 * limit]))
    return shown if len(shown) <= limit and len(text) <= 2 * limit else shown[:limit] + "…"


def shown(record: Record) -> str:
    """Return a record fit for a sentence, such as ``Crawl-delay: 5``.

    record: its value as written.
    """
    return f"{record.kind.capitalize()}: {printable(record.value, _VALUE_SHOWN)}"


class Why(Enum):
    """What decided a verdict."""

    RULE = "rule"
    NO_RULE = "no rule matches"
    NO_GROUP = "no group applies"
    ROBOTS_TXT = "robots.txt itself"


@dataclass(frozen=True, slots=True)
class Rule:
    """An ``Allow`` or ``Disallow`` line: what it says, its pattern as written, its line from 1."""

    allow: bool
    pattern: str
    line: int

    def __str__(self) -> str:
        return f"{'Allow' if self.allow else 'Disallow'}: {printable(self.pattern)}"


@dataclass(frozen=True, slots=True)
class Group:
    """The group that applies to a product token, merged from every place that names it.

    names: the user-agent values that chose it, as written. lines: the lines they stand on, from 1.
    Source: RFC 9309 section 2.2.1.
    """

    names: tuple[str, ...]
    lines: tuple[int, ...]

    def __str__(self) -> str:
        first = printable(self.names[0])
        if len(self.lines) == 1:
            return f"the group for {first} (line {self.lines[0]})"
        shown = ", ".join(map(str, self.lines[:_LINES_SHOWN]))
        if len(self.lines) > _LINES_SHOWN:
            shown += ", …"
        return f"the group for {first} (lines {shown})"


@dataclass(frozen=True, slots=True)
class Verdict:
    """The answer for one URL and product token, with what decided it.

    cut: the file was longer than was read, so a rule further down is not known.
    """

    allowed: bool
    why: Why
    product_token: str
    rule: Rule | None = None
    group: Group | None = None
    cut: bool = False

    def __str__(self) -> str:
        who = printable(self.product_token) or "a client that names no product token"
        said = "allowed" if self.allowed else "disallowed"
        if self.rule is not None:
            because = f"by line {self.rule.line}, {str(self.rule)!r}, in {self.group}"
        elif self.why is Why.ROBOTS_TXT:
            because = "because it is robots.txt itself"
        elif self.group is not None:
            because = f"because no rule matches in {self.group}"
        else:
            because = "because no group of the file applies"
        tail = "; the file is longer than was read" if self.cut else ""
        return f"{said} for {who} {because}{tail}"
