"""What a file says to one product token, worked out when it is first asked."""

from __future__ import annotations

from array import array
from typing import TYPE_CHECKING

from polite_transport.robots.match import Matcher
from polite_transport.robots.octets import written
from polite_transport.robots.pace import crawl_delay, request_interval, visit_time
from polite_transport.robots.verdict import Group, Rule, Verdict, Why

if TYPE_CHECKING:
    from collections.abc import Sequence

    from polite_transport.robots.records import Naming, Record

_REMEMBERED = 1024  # verdicts that are kept; a file may hold tens of thousands of rules


class Rules:
    """The rules for one agent, merged from all places that name it (RFC 9309 section 2.2.1)."""

    __slots__ = ("_lines", "_patterns", "group", "matcher")

    def __init__(self, namings: Sequence[Naming]) -> None:
        """namings: none where no group applies."""
        self.group: Group | None = None
        self._patterns: list[str] = []
        self._lines: array[int] = array("i")
        if namings:
            names, lines, sections = zip(*namings, strict=True)
            self.group = Group(tuple(map(written, names)), lines)
            self._patterns, self._lines = sections[0].patterns, sections[0].lines
            if len(sections) > 1:
                merged = dict.fromkeys(sections)  # a section may name its agent twice
                self._patterns = [pattern for section in merged for pattern in section.patterns]
                self._lines = array("i", [line for section in merged for line in section.lines])
        self.matcher = Matcher(self._patterns, self._lines)

    def rule(self, rank: int) -> Rule:
        """Return the rule of ``rank`` as it is written."""
        index = self.matcher.index(rank)
        line = self._lines[index]
        return Rule(line > 0, written(self._patterns[index]), abs(line))


class Answers(dict[int, Verdict]):
    """The verdicts for one product token, by the rank of the rule that decides, and its records.

    A verdict does not depend on the URL otherwise, so each is made once, when it is first given.
    delay, rate: seconds, or None.
    """

    __slots__ = ("_cut", "_rules", "delay", "matcher", "rate", "records", "token", "visit")

    def __init__(self, rules: Rules, records: list[Record], token: str, *, cut: bool) -> None:
        super().__init__()
        self.matcher = rules.matcher
        self.token = token
        self.records = records
        self.delay = crawl_delay(records) if records else None
        self.rate = request_interval(records) if records else None
        self.visit = visit_time(records) if records else None
        self._rules = rules
        self._cut = cut

    def __missing__(self, rank: int) -> Verdict:
        group = self._rules.group
        if rank != self.matcher.no_rule:
            rule = self._rules.rule(rank)
            verdict = Verdict(rule.allow, Why.RULE, self.token, rule, group, self._cut)
        else:
            why = Why.NO_GROUP if group is None else Why.NO_RULE
            verdict = Verdict(True, why, self.token, None, group, self._cut)
        if len(self) >= _REMEMBERED:
            self.clear()
        self[rank] = verdict
        return verdict

    def robots_txt(self) -> Verdict:
        """Return the verdict on robots.txt itself, which no rule can close (section 2.2.2)."""
        return Verdict(True, Why.ROBOTS_TXT, self.token, None, self._rules.group, self._cut)
