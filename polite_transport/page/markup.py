"""HTML into the few tags that matter here, with their lines; the parser is turbohtml's."""

from __future__ import annotations

import codecs
import contextlib
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping

_TAGS = "a, area, base, meta"

# A noncharacter, so that no page has it.
_MARK = "\ufdd0"
# Open formatting elements are opened again in every paragraph that follows, and the attributes of
# every further <html> and <body> are merged into the first: that is how a small hostile page grows
# into a tree without end. None of them matters here, so they become elements of no meaning.
_GROWING = re.compile(
    r"<(/?(?:b|big|body|code|em|font|html|i|nobr|s|small|strike|strong|tt|u))(?=[\s/>])",
    re.IGNORECASE,
)
# XML's <script/> is empty; to HTML it is a script that goes on to the next </script>.
_EMPTY = re.compile(
    r"<(iframe|noembed|noframes|script|style|textarea|title|xmp)(?=[\s/])([^<>]*)/>", re.IGNORECASE
)

# The one of Python's codecs that encodes as the Encoding Standard means it, where the name differs.
_CODECS = {
    "big5": "big5hkscs",
    "euc-kr": "cp949",
    "iso-8859-8-i": "iso-8859-8",
    "shift_jis": "cp932",
    "windows-874": "cp874",
    "x-mac-cyrillic": "mac_cyrillic",
}


class MissingParser(ImportError):
    """A page can be read only with the extra ``html``."""

    def __init__(self) -> None:
        super().__init__(
            "reading a page's markup needs an HTML parser: pip install 'polite-transport[html]'",
            name="turbohtml",
        )


class Tag(NamedTuple):
    """A start tag: its name in lower case, its line from 1, and its attributes."""

    name: str
    line: int
    attributes: dict[str, str]


@dataclass(frozen=True, slots=True)
class Markup:
    """The tags of a page that bear on robots, in order.

    codec: Python's name for the encoding that non-ASCII text in a query is sent in.
    """

    tags: tuple[Tag, ...]
    codec: str


def read_markup(body: bytes | str, charset: str | None, *, is_xhtml: bool) -> Markup:
    """Return the a, area, base and meta tags of a page.

    charset: as the Content-Type header names it. A byte order mark outranks it, and without both
        the page's own meta counts, then what the bytes look like.

    Raises MissingParser.
    Source: HTML Standard, parsing; scripts do not run, so noscript is read and templates are not.
    """
    try:
        import turbohtml
    except ImportError as error:
        raise MissingParser from error

    text, codec = (body, "utf-8") if isinstance(body, str) else _decoded(body, charset)
    if is_xhtml:
        text = _EMPTY.sub(r"<\1\2></\1>", text)
    document = turbohtml.parse(_GROWING.sub(rf"<\1{_MARK}", text))
    return Markup(
        tuple(
            Tag(found.tag, found.source_line or 0, _attributes(found.attrs.copy()))
            for found in document.select(_TAGS)
            if found.closest("template") is None
        ),
        codec,
    )


def _attributes(attributes: Mapping[str, str | list[str] | None]) -> dict[str, str]:
    return {
        name: (" ".join(value) if isinstance(value, list) else value or "").replace(_MARK, "")
        for name, value in attributes.items()
    }


def _decoded(body: bytes, charset: str | None) -> tuple[str, str]:
    """Return the text, and the codec that its queries are sent in.

    Source: Encoding Standard; HTML Standard, determining the character encoding.
    """
    from turbohtml import parse
    from turbohtml.detect import detect  # registers the Encoding Standard's codecs, as whatwg-*

    sniffed = detect(body)
    name = sniffed.encoding or "windows-1252"
    if charset is not None and not sniffed.bom:
        # A label that the standard does not know is as good as none.
        with contextlib.suppress(LookupError):
            name = parse(b"", encoding=charset).encoding or name
    name = name.lower()
    if name == "replacement":
        # Browsers show nothing of such a page. What it asks of robots still stands there, in ASCII.
        name = "windows-1252"
    return body.decode(f"whatwg-{name}").removeprefix("\ufeff"), _query_codec(name)


def _query_codec(name: str) -> str:
    if name.startswith("utf-"):
        return "utf-8"  # of UTF-16 too: Encoding Standard, output encoding
    try:
        return codecs.lookup(_CODECS.get(name, name)).name
    except LookupError:
        return "utf-8"
