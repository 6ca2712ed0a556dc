"""Bytes of a robots.txt into groups and other records: RFC 9309 section 2.2.

Nothing here knows a URL or decides anything. No input raises, and the work grows with the length of
the file only. Texts stay octet strings (see ``octets``): Latin-1 decoding cannot fail and keeps
every byte.
"""

from __future__ import annotations

import re
from array import array
from typing import NamedTuple, TypeAlias

from polite_transport.robots.pace import counts

MAX_BYTES = 512_000  # section 2.5 asks for 500 KiB at least; the rest is cut

_BOM = b"\xef\xbb\xbf"
BLANKS = " \t\x0b\x0c\x00"  # ASCII only: a UTF-8 character may end in what Latin-1 calls a space
_WORDS = re.compile(r"[^ \t]+")
_TOKEN = re.compile(r"[A-Za-z0-9_.\-]*")

# Keys are known by how they begin, and in the misspellings that Google accepts.
_CORE_KEYS = {
    "user-agent": "user-agent",
    "useragent": "user-agent",
    "user agent": "user-agent",
    "allow": "allow",
    "disallow": "disallow",
    "dissallow": "disallow",
    "dissalow": "disallow",
    "disalow": "disallow",
    "diasllow": "disallow",
    "disallaw": "disallow",
    "sitemap": "sitemap",
    "site-map": "sitemap",
}
RULES = frozenset({"allow", "disallow"})
# Records beyond the RFC's core (section 2.2.4): those for agents, and those for the whole file.
AGENT_RECORDS = frozenset(
    {"crawl-delay", "request-rate", "visit-time", "content-usage", "content-signal"}
)
DELAYS = frozenset({"crawl-delay", "request-rate"})
FILE_RECORDS = frozenset({"sitemap", "host", "clean-param", "license"})

# The spellings that nearly every line has need no closer look.
_KINDS = {
    spelling: kind
    for kind in ("user-agent", "allow", "disallow", *AGENT_RECORDS, *FILE_RECORDS)
    for spelling in (kind, kind.capitalize(), kind.title(), kind.upper())
}


class Record(NamedTuple):
    """A record beyond the RFC's core: its kind, its value in octets, its line from 1."""

    kind: str
    value: str
    line: int


class Section:
    """Rules that stand together; several user-agent lines may share one.

    patterns: as written, in octets. lines: the line of each from 1, negative for a ``Disallow``.
    """

    __slots__ = ("lines", "patterns")

    def __init__(self) -> None:
        self.patterns: list[str] = []
        self.lines = array("i")


# A user-agent line: its value as written in octets, its line from 1, the rules under it.
Naming: TypeAlias = tuple[str, int, Section]


class Parsed:
    """A file taken apart.

    agents: by token, lower case, ``*`` included: where it is named.
    records: by token, runs of its other records.
    leading: such records before any user-agent line; they count for every agent that has none of
    their kind. of_file: those that belong to the file.
    """

    __slots__ = ("agents", "leading", "of_file", "records")

    def __init__(self) -> None:
        self.agents: dict[str, list[Naming]] = {}
        self.records: dict[str, list[list[Record]]] = {}
        self.leading: list[Record] = []
        self.of_file: list[Record] = []


def token_of(value: str) -> str:
    """Return the token that a user-agent value names, lower case, ``*`` for everyone.

    The value is cut at its first foreign character as Google does it, but digits and dots are kept,
    because products have them in their names. Source: RFC 9309 section 2.2.1.
    """
    if value == "*" or (value[:1] == "*" and value[1:2].strip(BLANKS) == ""):
        return "*"
    found = _TOKEN.match(value)
    return found[0].lower() if found else ""


def kind_of(key: str) -> str:
    """Return the kind of record that ``key`` announces; empty for one that is not known."""
    key = key.strip(BLANKS).lower()
    for beginning, kind in _CORE_KEYS.items():
        if key.startswith(beginning):
            return kind
    return key if key in AGENT_RECORDS or key in FILE_RECORDS else ""


def whole_lines(body: bytes, max_bytes: int) -> tuple[bytes, bool]:
    """Return the lines of ``body`` that end within ``max_bytes``, and whether that cut it."""
    if len(body) <= max_bytes:
        return body, False
    kept = body[:max_bytes]
    if body[max_bytes : max_bytes + 1] in {b"\r", b"\n"}:
        return kept, True  # the limit falls between a line and its end
    return kept[: max(kept.rfind(b"\n"), kept.rfind(b"\r")) + 1], True


def lines_of(body: bytes) -> list[str]:
    """Return the lines: CR, LF and CRLF end one, and nothing else does (section 2.2, ``EOL``)."""
    text = body.removeprefix(_BOM).decode("latin-1")
    if "\r" in text:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    return text.split("\n")


def record_in(line: str) -> tuple[str, str]:
    """Return kind and value of the record in ``line``, comment off; the kind may be empty."""
    key, colon, value = line.partition(":")
    if not colon:
        # Two words and no colon are a record to Google, and to people who write such files.
        words = _WORDS.findall(line)
        if len(words) != 2:
            return "", ""
        key, value = words
    return kind_of(key), value


class Reading:
    """A file while it is read: which agents the next line is for.

    section: takes the rules. in_head: a user-agent line now would join the last one.
    without_colon: the last user-agent line has none, so what stands under it may have none.
    """

    __slots__ = (
        "_came",
        "_garbled",
        "_given",
        "_named",
        "_orphaned",
        "_runs",
        "_told",
        "in_head",
        "parsed",
        "section",
        "without_colon",
    )

    def __init__(self) -> None:
        self.parsed = Parsed()
        self.section = Section()  # of no agent: nobody keeps these rules
        self.in_head = False
        self.without_colon = True
        self._named: list[str] = []  # agents since the last rule
        # Agents' records: how many of those, from the first, were given one of a kind before the
        # last user-agent line; which kinds came since; the runs since, by whom they begin with.
        self._given: dict[str, int] = {}
        self._came: set[str] = set()
        self._runs: dict[int, list[Record]] = {}
        # Those that say nothing: their run since the last user-agent line, and how many agents,
        # from the first, have one.
        self._garbled: list[Record] | None = None
        self._told = 0
        self._orphaned: list[Record] = []  # agents' records under rules of no agent

    def agent(self, value: str, line: int, *, colon: bool) -> None:
        """Take a user-agent line; one that follows a rule begins a group (section 2.1)."""
        if not self.in_head:
            self.section = Section()
            self.without_colon = False
            self._named = []
            self._given = {}
            self._told = 0
        elif self._came:
            self._given.update(dict.fromkeys(self._came, len(self._named)))
        self.in_head = True
        if self._came:
            self._came = set()
            self._runs = {}
        self._garbled = None
        if not colon:
            self.without_colon = True
        token = token_of(value)
        namings = self.parsed.agents.get(token)
        if namings is None:
            self.parsed.agents[token] = [(value, line, self.section)]
        else:
            namings.append((value, line, self.section))
        self._named.append(token)

    def record(self, record: Record) -> None:
        """Take a record beyond the core; none ends the group for the rules (section 2.2.4)."""
        if record.kind not in AGENT_RECORDS:
            self.parsed.of_file.append(record)
            return
        if not self.parsed.agents:
            (self._orphaned if self.section.lines else self.parsed.leading).append(record)
            return
        kind = "delay" if record.kind in DELAYS else record.kind
        if not counts(record):
            # It is kept to be told of, by those who were named since the last such one.
            if self._garbled is None:
                self._garbled = self._run_for(self._told)
                self._told = len(self._named)
            self._garbled.append(record)
            return
        self._came.add(kind)
        start = self._given.get(kind, 0)  # those before it have theirs
        run = self._runs.get(start)
        if run is None:
            run = self._runs[start] = self._run_for(start)
        run.append(record)

    def _run_for(self, start: int) -> list[Record]:
        """Begin a run of records for the agents from ``start`` on."""
        run: list[Record] = []
        for token in dict.fromkeys(self._named[start:]):  # once each, however often it is named
            self.parsed.records.setdefault(token, []).append(run)
        return run

    def end(self) -> Parsed:
        """Return the file; one that names no agent at all speaks to everyone."""
        if not self.parsed.agents:
            self.parsed.leading += self._orphaned
        return self.parsed


def parse_lines(body: bytes) -> Parsed:
    """Take a robots.txt apart, each line on its own (section 2.3.1.5)."""
    reading = Reading()
    patterns, lines = reading.section.patterns, reading.section.lines
    for number, written in enumerate(lines_of(body), 1):
        line = written.partition("#")[0] if "#" in written else written
        if not line:
            continue
        key, colon, value = line.partition(":")
        kind = _KINDS.get(key) if colon else None
        if kind is None:
            kind, value = record_in(line)
        value = value.strip(BLANKS)
        if kind in RULES:
            if colon or reading.without_colon:
                reading.in_head = False
                if value:
                    patterns.append(value)
                    lines.append(number if kind == "allow" else -number)
        elif kind == "user-agent":
            reading.agent(value, number, colon=bool(colon))
            patterns, lines = reading.section.patterns, reading.section.lines
        elif kind and (colon or reading.without_colon):
            reading.record(Record(kind, value, number))
    return reading.end()
