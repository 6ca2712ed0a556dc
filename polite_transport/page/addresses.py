"""What ``href`` says, as the URL that a client would send."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING
from urllib.parse import urljoin

from polite_transport.url import target

if TYPE_CHECKING:
    from polite_transport.page.markup import Markup

_C0_AND_SPACE = "".join(map(chr, range(0x21)))
_IGNORED = str.maketrans("", "", "\t\n\r")
_OTHER_SCHEME = re.compile(r"(?!https?:)[a-z][a-z0-9+.\-]*:", re.IGNORECASE)
_HTTP = re.compile(r"https?:", re.IGNORECASE)
_SLASHES = re.compile(r"((?:https?:)?)//+", re.IGNORECASE)
_UNSENDABLE = re.compile(r"[\x00-\x20\"<>`{}\x7f-\U0010ffff]+")


def base_of(page: str, markup: Markup) -> str:
    """Return the URL that the page's links are relative to.

    The first <base> with an href counts, for links before it too; one that is no http or https URL
    does not. Source: HTML Standard, document base URL.
    """
    for tag in markup.tags:
        if tag.name == "base" and "href" in tag.attributes:
            joined = join(page, tag.attributes["href"])
            return joined if joined and _HTTP.match(joined) else page
    return page


def join(base: str, href: str) -> str | None:
    """Return ``href`` as an absolute URL, not yet fit to be sent; None where it cannot be read.

    Source: URL Standard, for what browsers overlook; RFC 3986 section 5 for the rest.
    """
    href = href.strip(_C0_AND_SPACE).translate(_IGNORED)
    if _OTHER_SCHEME.match(href):
        return href
    address, mark, rest = _cut(href, "?#")
    address = address.replace("\\", "/")
    slashes = _SLASHES.match(address)
    if slashes:
        address = f"{slashes[1]}//{address[slashes.end() :]}"
    try:
        return urljoin(base, address + mark + rest)
    except ValueError:
        return None


def sendable(url: str, codec: str) -> str | None:
    """Return an absolute URL without userinfo and fragment, its non-ASCII text escaped.

    codec: Python's name for the encoding of the query; the path is UTF-8 always.

    None comes back where the URL is neither http nor https.
    Raises InvalidURL.
    """
    where = target(url)
    if where is None:
        return None
    path, mark, query = _cut(where.path, "?")
    origin = where.origin
    return origin + _escaped(path, "utf-8") + mark + _escaped(query, codec)


def _cut(text: str, marks: str) -> tuple[str, str, str]:
    """Return what stands before the first of ``marks``, that mark, and the rest."""
    at = min((at for mark in marks if (at := text.find(mark)) >= 0), default=len(text))
    return text[:at], text[at : at + 1], text[at + 1 :]


def _escaped(text: str, codec: str) -> str:
    def escape(found: re.Match[str]) -> str:
        octets = found[0].encode(codec, "xmlcharrefreplace")
        # A multi-byte character may have ASCII in it, which stays as it is; a reference may not.
        return "".join(
            chr(octet)
            if octet not in b"&#;" and 0x21 <= octet <= 0x7E and octet not in _QUOTED
            else f"%{octet:02X}"
            for octet in octets
        )

    return _UNSENDABLE.sub(escape, text)


_QUOTED = b'"<>`{}'
