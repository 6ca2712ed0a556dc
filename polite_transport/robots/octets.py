"""Paths and path patterns as comparable octets: RFC 9309 section 2.2.2.

Both sides of a comparison are *octet strings*: ``str`` in which each character stands for one octet
(the file decoded as Latin-1, a URL as UTF-8 and then Latin-1). That is exact for any bytes, and
almost every path and pattern is canonical in it as it came.
"""

from __future__ import annotations

import re

# What an RFC 3986 URI may hold as it is: unreserved, reserved, and the escape sign.
_AS_IS = frozenset(
    b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~:/?#[]@!$&'()*+,;=%"
)
_UNRESERVED = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")
_SAFE = bytes(_AS_IS - {ord("%")})
_HEX = "0123456789abcdefABCDEF"

# An escape, or an octet that has to be escaped; a lone "%" stays what it is.
_ESCAPABLE = re.compile(r"%[0-9A-Fa-f]{2}|[^A-Za-z0-9\-._~:/?#\[\]@!$&'()*+,;=%]")

_ESCAPABLE_IN_LINES = re.compile(_ESCAPABLE.pattern.replace("[^", r"[^\n"))

_PATH_START = re.compile(r"[/?#]")


def _canonical_forms() -> dict[str, str]:
    """Every text that ``_ESCAPABLE`` can find, with its canonical form."""
    forms = {chr(octet): f"%{octet:02X}" for octet in range(256) if octet not in _AS_IS}
    for high in _HEX:
        for low in _HEX:
            octet = int(high + low, 16)
            forms[f"%{high}{low}"] = chr(octet) if octet in _UNRESERVED else f"%{octet:02X}"
    return forms


_ENCODED = _canonical_forms()
# In a URL, and between the wildcards of a pattern, "*" and "$" are only characters (section 2.2.3).
_LITERAL = _ENCODED | {"%2A": "*", "%2a": "*", "%24": "$"}


def all_canonical(text: str) -> bool:
    """Return whether ``text`` holds no escape and nothing that has to be escaped."""
    return text.isascii() and not text.encode().translate(None, _SAFE)


def canonical(lines: str) -> str:
    """Return path patterns, one a line, as their octets are counted; ``%2A`` stays as written."""
    return _ESCAPABLE_IN_LINES.sub(lambda found: _ENCODED[found[0]], lines)


def literal(text: str) -> str:
    """Return ``text``, a path or a piece of a pattern without wildcards, in comparable form."""
    return _ESCAPABLE.sub(lambda found: _LITERAL[found[0]], text)


def path_start(url: str) -> int:
    """Return where the path of ``url`` begins, or its query or fragment where it has no path.

    url: absolute, or path and query alone.
    """
    if url.startswith("/"):
        return 0
    end = url.find("://")
    if end < 0 or _PATH_START.search(url, 0, end):
        return 0  # no scheme: what is there is taken for a path
    found = _PATH_START.search(url, end + 3)
    return found.start() if found else len(url)


def canonical_path(path: str) -> str:
    """Return ``path``, query included, in comparable form; an empty one is ``/``.

    A fragment is never sent and does not count.
    """
    path = path.partition("#")[0]
    if not path.startswith("/"):
        path = "/" + path
    if not path.isascii():
        path = path.encode("utf-8", "surrogatepass").decode("latin-1")
    return literal(path)


def resolved(path: str) -> str:
    """Return ``path`` with its dot segments removed (RFC 3986 section 5.2.4), its query kept."""
    path, mark, query = path.partition("?")
    kept: list[str] = []
    segments = path.split("/")[1:]
    for segment in segments:
        if segment == "..":
            if kept:
                kept.pop()
        elif segment != ".":
            kept.append(segment)
    if segments[-1] in {".", ".."}:
        kept.append("")
    return "/" + "/".join(kept) + mark + query


def written(octets: str) -> str:
    """Return a text of the file as a person reads it: UTF-8, bad bytes replaced."""
    return octets if octets.isascii() else octets.encode("latin-1").decode("utf-8", "replace")
