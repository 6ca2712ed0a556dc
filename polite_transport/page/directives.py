"""One directive, where it stood, and the grammar that X-Robots-Tag and meta robots share.

Neither has a standard. This is the reading of the search engines that made them up, and the
stricter one where they leave room: names may also be parted by spaces and semicolons.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from polite_transport.robots.records import token_of
from polite_transport.robots.verdict import printable

if TYPE_CHECKING:
    from collections.abc import Iterator

# Where one of these stands before a colon, it is the directive and no bot's name.
_FLAGS = frozenset(
    {
        *("all", "follow", "index", "indexifembedded", "noarchive", "nocache", "nofollow"),
        *("noimageindex", "noindex", "none", "nosnippet", "notranslate", "noai", "noimageai"),
    }
)
# These stand where a bot's name would, and mean every bot. The last is a common slip.
_EVERY_BOT = frozenset({"*", "robots", "x-robots-tag"})

_WEEKDAY = r"(?:mon|tue|wed|thu|fri|sat|sun)[a-z]*+"
_MONTH = r"(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*+"
# A date has commas and colons of its own, so it is taken before either means anything. Nothing
# here ever goes back, whatever the length of a line.
_PIECE = re.compile(
    rf"""
    unavailable_after \s*+ : \s*+
        (?P<date> (?:{_WEEKDAY} \s*+ ,)? \s*+ (?:{_MONTH} [.\s]\s*+ [0-9]++ \s*+ ,)? [^,;]*+ )
    | (?P<limit> max-[a-z\-]++ ) \s*+ : \s*+ (?P<value> [^,;\s]*+ )
    | (?= [^,;:\s]*? [a-z*] ) (?P<before_colon> [^,;:\s]++ ) \s*+ :
    | (?P<flag> [^,;\s]++ )
    """,
    re.IGNORECASE | re.VERBOSE,
)


@dataclass(frozen=True, slots=True)
class Place:
    """Where a directive stood.

    kind: ``header`` or ``meta``. name: of the header or the meta.
    line: from 1; of the headers of that name, or of the document.
    """

    kind: str
    name: str
    line: int

    def __str__(self) -> str:
        if self.kind == "header":
            return f"line {self.line} of the {self.name} header"
        return f"<meta> {printable(self.name)} on line {self.line}"


@dataclass(frozen=True, slots=True)
class Directive:
    """One directive that holds for the product token asked about.

    name: in lower case, such as ``noindex``, ``max-snippet``, ``tdm-reservation``; unknown ones are
        kept. value: as written, empty where the directive is the whole of it.
    bot: the name that it was limited to, as written; empty = it holds for every bot.
    """

    name: str
    value: str
    place: Place
    bot: str = ""

    def __str__(self) -> str:
        said = f"{self.name}: {self.value}" if self.value else self.name
        whom = f" for {printable(self.bot)}" if self.bot else ""
        return f"'{printable(said)}'{whom} ({self.place})"


def read_header_line(line: str, place: Place, product_token: str) -> Iterator[Directive]:
    """Yield the directives of one X-Robots-Tag line that hold for ``product_token``.

    A bot's name and a colon limit what follows it, up to the next name or the end of the line.
    """
    bot, holds = "", True
    for found in _PIECE.finditer(line):
        before_colon = found["before_colon"]
        if before_colon is None:
            if holds:
                yield _directive(found, place, bot)
        elif before_colon.lower() in _FLAGS:
            if holds:
                yield Directive(before_colon.lower(), "", place, bot)
        elif before_colon.lower() in _EVERY_BOT:
            bot, holds = "", True
        else:
            bot, holds = before_colon, same_bot(before_colon, product_token)


def read_meta(content: str, place: Place, bot: str = "") -> Iterator[Directive]:
    """Yield the directives in the ``content`` of a meta; its name has said which bot it is for."""
    for found in _PIECE.finditer(content):
        if found["before_colon"] is None:
            yield _directive(found, place, bot)
        else:
            yield Directive(found["before_colon"].lower(), "", place, bot)


def same_bot(name: str, product_token: str) -> bool:
    """Whether a page that says ``name`` means ``product_token``; versions do not count."""
    token = token_of(product_token.strip())
    return token != "" and token_of(name) == token


def _directive(found: re.Match[str], place: Place, bot: str) -> Directive:
    if found["date"] is not None:
        return Directive("unavailable_after", found["date"].strip(), place, bot)
    if found["limit"] is not None:
        return Directive(found["limit"].lower(), found["value"], place, bot)
    return Directive(found["flag"].lower(), "", place, bot)
