"""Our own cases of what a page asks: one table each in the ``.toml`` files beside this one.

id, why; url, token, headers (a list of [name, value], in order), content_type, body, encoding (of
the body; default UTF-8), octets (the body's bytes as Latin-1 text, where no encoding makes them),
robots, rel; and the right values: stated (every directive in order, as "header 1: noindex", with
the line and, after it, the bot it is limited to), says (attributes of the directives), silent
(attributes that are None or False), links (URLs in order), excluded ([URL, what it is left out
for]).
"""

import tomllib
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from polite_transport.page import Directive, followable_links, page_directives
from polite_transport.robots import parse_robots

CASES = [
    case
    for file in sorted(Path(__file__).parent.glob("*.toml"))
    for case in tomllib.loads(file.read_text(encoding="utf-8"))["case"]
]
PARAMETERS = [pytest.param(case, id=case["id"]) for case in CASES]
RIGHT = {"stated", "says", "silent", "links", "excluded"}
FIELDS = RIGHT | {
    *("id", "why", "url", "token", "headers", "content_type"),
    *("body", "encoding", "octets", "robots", "rel"),
}


def page_of(case: dict[str, Any]) -> tuple[str, list[tuple[str, str]], bytes]:
    headers = [(name, value) for name, value in case.get("headers", [])]
    content_type = case.get("content_type", "text/html")
    if content_type:
        headers.append(("Content-Type", content_type))
    if "octets" in case:
        body = case["octets"].encode("latin-1")
    else:
        body = case.get("body", "").encode(case.get("encoding", "utf-8"))
    return case.get("url", "https://shop.example/dir/page"), headers, body


def shown(directive: Directive) -> str:
    bot = f" {directive.bot}" if directive.bot else ""
    value = f"={directive.value}" if directive.value else ""
    return f"{directive.place.kind} {directive.place.line}{bot}: {directive.name}{value}"


@pytest.mark.parametrize("case", PARAMETERS)
def test_directives(case: dict[str, Any]) -> None:
    directives = page_directives(page_of(case), case.get("token"))
    if "stated" in case:
        assert [shown(each) for each in directives.stated] == case["stated"], case["why"]
    for name, right in case.get("says", {}).items():
        value = getattr(directives, name)
        assert value == right, case["why"]
        assert type(value) is type(right), case["why"]
        if isinstance(value, datetime):
            assert value.tzinfo is UTC
    for name in case.get("silent", []):
        assert not getattr(directives, name), case["why"]
        assert getattr(directives, name) != 0 or getattr(directives, name) is False


@pytest.mark.parametrize(
    "case",
    [pytest.param(case, id=case["id"]) for case in CASES if "links" in case or "excluded" in case],
)
def test_links(case: dict[str, Any]) -> None:
    robots = parse_robots(case["robots"].encode()) if "robots" in case else None
    options: dict[str, Any] = {"nofollow_rel": case["rel"]} if "rel" in case else {}
    found = followable_links(page_of(case), case.get("token"), robots=robots, **options)
    assert [link.url for link in found] == case.get("links", []), case["why"]
    excluded = [[each.link.url, each.by.name.lower()] for each in found.excluded]
    assert excluded == case.get("excluded", []), case["why"]


def test_the_corpus_is_in_order() -> None:
    assert len({case["id"] for case in CASES}) == len(CASES)
    for case in CASES:
        assert case.keys() <= FIELDS, case["id"]
        assert case.keys() & RIGHT, f"{case['id']} says nothing"
        assert case["why"]
