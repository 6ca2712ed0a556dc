"""Our own cases of what a robots.txt means: one line each in ``robots.jsonl``.

section is that of RFC 9309, or "-" where the decision is ours. "ask" names a question other than
``check``.
"""

import json
import pathlib
from dataclasses import astuple
from typing import Any

import pytest

from polite_transport.robots import Robots, VisitTime, parse_robots

CASES = [
    json.loads(line)
    for line in pathlib.Path(__file__).with_name("robots.jsonl").read_text().splitlines()
]


def robots_of(case: dict[str, Any]) -> Robots:
    if "robots_latin1" in case:
        return parse_robots(case["robots_latin1"].encode("latin-1"))
    return parse_robots(case["robots"].encode())


def answer(robots: Robots, case: dict[str, Any]) -> Any:
    if case["ask"] == "sitemaps":
        return list(robots.sitemaps)
    found = getattr(robots, case["ask"])(case["token"])
    return list(astuple(found)) if isinstance(found, VisitTime) else found


@pytest.mark.parametrize(
    "case", [pytest.param(case, id=case["id"]) for case in CASES if "url" in case]
)
def test_access(case: dict[str, Any]) -> None:
    robots = robots_of(case)
    verdict = robots.check(case["url"], case["token"])
    assert verdict.allowed is case["allowed"], f"{case['why']}: {verdict}"
    # Asked again, by then from a warm cache, and with the origin known.
    assert robots.check(case["url"], case["token"]) is verdict or verdict.rule is None


@pytest.mark.parametrize(
    "case", [pytest.param(case, id=case["id"]) for case in CASES if "ask" in case]
)
def test_other_questions(case: dict[str, Any]) -> None:
    assert answer(robots_of(case), case) == case["answer"], case["why"]


def test_ids_are_unique() -> None:
    assert len({case["id"] for case in CASES}) == len(CASES)
