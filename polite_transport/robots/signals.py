"""What a file says of the use of its pages, and of the site; none of it decides about access.

Content-Usage (drafts of the IETF's aipref group), Content-Signal (Cloudflare), License (RSL 1.0),
Host and Clean-param (Yandex). What cannot be read is unknown, which is not the same as allowed.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from polite_transport.robots.octets import canonical, written
from polite_transport.robots.wildcard import matches

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from polite_transport.robots.records import Record

# Structured Fields (RFC 9651) as far as a dictionary of labels needs them.
_KEY = r"[a-z*][a-z0-9_.*\-]*"
_STRING = r'"(?:[^"\\]|\\.)*"'
_NAME = r'[A-Za-z*][^\s",;=()]*'
_ITEM = rf"(?:{_STRING}|{_NAME}|:[A-Za-z0-9+/=]*:|\?[01]|-?[0-9]+(?:\.[0-9]+)?)"
_MEMBER = re.compile(
    rf"({_KEY})(?:=({_ITEM}|\([^()]*\)))?(?:[ ]*;[ ]*{_KEY}(?:={_ITEM})?)*[ \t]*(?:,[ \t]*(?=\S)|$)"
)
_SAID = {"y": True, "n": False, "yes": True, "no": False}


@dataclass(frozen=True, slots=True)
class Signal:
    """One label of a usage signal.

    record: ``content-usage`` or ``content-signal``. label: the use it is about, as ``train-ai``.
    value: as written. allowed: True for yes, False for no, None for anything else.
    path: the path pattern it is limited to, or None. line: from 1.
    """

    record: str
    label: str
    value: str
    allowed: bool | None
    path: str | None
    line: int


@dataclass(frozen=True, slots=True)
class License:
    """The address of licence terms (RSL), and the line it stands on, from 1."""

    url: str
    line: int


@dataclass(frozen=True, slots=True)
class CleanParam:
    """Query keys that do not change a page, under a path prefix: for telling duplicates only."""

    keys: tuple[str, ...]
    path: str
    line: int


def signals_for(records: Iterable[Record], path: str) -> tuple[Signal, ...]:
    """Return the signals among one agent's ``records`` that are in force for ``path``.

    path: in comparable form (see ``octets``).
    Of Content-Usage the most specific path counts, as it does for rules. Where two
    statements in force differ on a label, the stricter stands.
    """
    in_force: dict[tuple[str, str], Signal] = {}
    for signal in (*_most_specific(records, path), *_content_signals(records)):
        key = signal.record, signal.label
        if key not in in_force or _strictness(signal) > _strictness(in_force[key]):
            in_force[key] = signal
    return tuple(in_force.values())


def _strictness(signal: Signal) -> int:
    return {True: 0, None: 1, False: 2}[signal.allowed]


def _most_specific(records: Iterable[Record], asked: str) -> list[Signal]:
    found: list[Signal] = []
    longest = 0
    for record in records:
        if record.kind != "content-usage":
            continue
        pattern, labels = "", record.value
        if labels.startswith("/"):
            pattern, _, labels = labels.replace("\t", " ").partition(" ")
        specificity = len(canonical(pattern))
        if specificity < longest or not matches(canonical(pattern), asked):
            continue
        if specificity > longest:
            longest = specificity
            found.clear()
        for label, octets in dictionary(labels).items():
            value, path = written(octets), written(pattern) or None
            found.append(Signal(record.kind, label, value, _SAID.get(value), path, record.line))
    return found


def _content_signals(records: Iterable[Record]) -> Iterator[Signal]:
    for record in records:
        if record.kind == "content-signal":
            for part in record.value.split(","):
                label, equals, value = (side.strip(" \t") for side in part.partition("="))
                if label and equals:
                    value = written(value.lower())
                    allowed = _SAID.get(value)
                    yield Signal(
                        record.kind, written(label.lower()), value, allowed, None, record.line
                    )


def dictionary(text: str) -> dict[str, str]:
    """Return a Structured Fields dictionary; the last of equal keys wins, a broken one is empty.

    Parameters are read over. Source: RFC 9651 section 3.2.
    """
    members: dict[str, str] = {}
    at, text = 0, text.strip(" \t")
    while at < len(text):
        found = _MEMBER.match(text, at)
        if not found:
            return {}
        members[found[1]] = found[2] or ""
        at = found.end()
    return members


def licenses(records: Iterable[Record]) -> tuple[License, ...]:
    """Return the licences that the file names by an absolute URL."""
    return tuple(
        License(written(record.value), record.line)
        for record in records
        if record.kind == "license" and "://" in record.value
    )


def host(records: Iterable[Record]) -> str | None:
    """Return the mirror that the file calls the main one, or None."""
    return next((written(record.value) for record in records if record.kind == "host"), None)


def clean_params(records: Iterable[Record]) -> tuple[CleanParam, ...]:
    """Return the Clean-param records: keys joined by ``&``, then a path prefix or nothing."""
    found: list[CleanParam] = []
    for record in records:
        if record.kind == "clean-param":
            keys, _, path = written(record.value).replace("\t", " ").partition(" ")
            names = tuple(filter(None, keys.split("&")))
            if names:
                found.append(CleanParam(names, path.strip() or "/", record.line))
    return tuple(found)
