"""One path pattern behind its literal prefix: RFC 9309 section 2.2.3."""

from __future__ import annotations

from typing import NamedTuple

from polite_transport.robots.octets import literal


class Wildcard(NamedTuple):
    """What a pattern asks of a path behind its literal prefix.

    needle: its longest piece. start: the length of the prefix.
    pieces: in order, None where the needle is all.
    suffix: what ends the path; empty where the prefix is all of it, None where anything may.
    """

    rank: int
    needle: str
    start: int
    pieces: tuple[str, ...] | None
    suffix: str | None


def fits(
    path: str, needle: str, start: int, pieces: tuple[str, ...] | None, suffix: str | None
) -> bool:
    """Return whether ``path``, which begins with the prefix, fits the fields of a wildcard.

    Each piece is taken where it first occurs: a later place could only leave less for the next one.
    """
    if pieces is None:
        return path.find(needle, start) >= 0
    for piece in pieces:
        start = path.find(piece, start)
        if start < 0:
            return False
        start += len(piece)
    if suffix is None:
        return True
    if not suffix:
        return len(path) == start
    return len(path) - len(suffix) >= start and path.endswith(suffix)


def cut(pattern: str, rank: int) -> tuple[str, Wildcard | None]:
    """Return the literal prefix of a canonical ``pattern``, and what it asks behind it if anything.

    Only a last ``$`` anchors; a last ``*`` adds nothing. Source: RFC 9309 section 2.2.3.
    """
    prefix, *pieces = pattern.removesuffix("$").split("*")
    if "%2" in pattern:
        prefix, *pieces = map(literal, (prefix, *pieces))
    suffix = None
    if pattern[-1] == "$":
        suffix = pieces.pop() or None if pieces else ""
    elif len(pieces) == 1 and pieces[0]:
        return prefix, Wildcard(rank, pieces[0], len(prefix), None, None)  # most are so
    pieces = [piece for piece in pieces if piece]
    if not pieces and suffix is None:
        return prefix, None
    needle = max([*pieces, suffix or ""], key=len)
    rest = None if suffix is None and len(pieces) == 1 else tuple(pieces)
    return prefix, Wildcard(rank, needle, len(prefix), rest, suffix)


def matches(pattern: str, path: str) -> bool:
    """Return whether ``path`` matches a single canonical ``pattern``; the empty one matches all."""
    if not pattern:
        return True
    prefix, wildcard = cut(pattern, 0)
    if not path.startswith(prefix):
        return False
    return wildcard is None or fits(path, *wildcard[1:])
