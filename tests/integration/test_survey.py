"""The instrument's own test: a rude crawler fails every row, a perfect one passes every row."""

import sys
from pathlib import Path
from typing import Any

import pytest

from polite_transport.testing.survey import Verdict, hold
from polite_transport.testing.survey.report import html_report

CRAWLERS = Path(__file__).parent / "crawlers"


def test_a_rude_crawler_fails_every_row() -> None:
    survey = hold([sys.executable, str(CRAWLERS / "rude.py"), "{url}"], token="Rude", delay=0.2)
    assert {row.question: row.verdict for row in survey.rows} == dict.fromkeys(
        (row.question for row in survey.rows), Verdict.NOT_KEPT
    )
    assert not survey.all_kept


def test_a_perfect_crawler_passes_every_row() -> None:
    survey = hold(
        [sys.executable, str(CRAWLERS / "perfect.py"), "{url}"], token="PerfectBot", delay=0.2
    )
    assert {row.question: row.verdict for row in survey.rows} == dict.fromkeys(
        (row.question for row in survey.rows), Verdict.KEPT
    )
    assert survey.all_kept


def test_a_crawler_that_does_nothing_has_exercised_nothing() -> None:
    survey = hold([sys.executable, "-c", "pass", "{url}"], token="Nobody", delay=0.2)
    assert {row.verdict for row in survey.rows} == {Verdict.NOT_EXERCISED}


OPEN = "User-agent: *\nAllow: /\n"
OWN = "User-agent: PerfectBot\nDisallow: /page1.html\nDisallow: /page2\nCrawl-delay: 0.3\n"


def verdicts(crawler: str, robots: str, **options: Any) -> dict[str, Verdict]:
    command = [sys.executable, str(CRAWLERS / crawler), "{url}"]
    survey = hold(command, delay=0.2, robots=robots, **options)
    return {row.question: row.verdict for row in survey.rows}


@pytest.mark.parametrize("robots", [OPEN, ""])
def test_what_a_file_of_ones_own_does_not_ask_is_not_judged(robots: str) -> None:
    perfect, rude = verdicts("perfect.py", robots), verdicts("rude.py", robots)
    asked_by_no_file = {
        "Disallow, in the robots.txt given": Verdict.NOT_ASKED,
        "Allow and wildcards": Verdict.NOT_ASKED,
        "Crawl-delay": Verdict.NOT_ASKED,
        "redirect into a disallowed path": Verdict.NOT_ASKED,
        "the group for its own name": Verdict.NOT_EXERCISED,
    }
    assert perfect == dict.fromkeys(perfect, Verdict.KEPT) | asked_by_no_file
    assert rude == dict.fromkeys(rude, Verdict.NOT_KEPT) | asked_by_no_file


def test_what_it_asks_is_judged_by_its_own_values() -> None:
    for token in (None, "PerfectBot"):  # without one, the User-Agent's own
        perfect = verdicts("perfect.py", OWN, token=token)
        assert perfect["Disallow, in the robots.txt given"] is Verdict.KEPT
        assert perfect["Crawl-delay: 0.3"] is Verdict.KEPT
        assert perfect["Allow and wildcards"] is Verdict.NOT_ASKED
        assert Verdict.NOT_KEPT not in perfect.values()
    rude = verdicts("rude.py", OWN, token="PerfectBot")
    assert rude["Disallow, in the robots.txt given"] is Verdict.NOT_KEPT
    assert rude["Crawl-delay: 0.3"] is Verdict.NOT_KEPT
    assert rude["redirect into a disallowed path"] is Verdict.NOT_ASKED


def test_a_file_that_closes_the_site_is_kept_by_staying_out() -> None:
    closed = "User-agent: *\nDisallow: /\n"
    question = "Disallow, in the robots.txt given"
    assert verdicts("perfect.py", closed)[question] is Verdict.KEPT
    assert verdicts("rude.py", closed)[question] is Verdict.NOT_KEPT


def test_a_crawler_that_never_ends_is_stopped() -> None:
    survey = hold(
        [sys.executable, "-c", "import time; time.sleep(600)", "{url}"], delay=0.2, limit=0.5
    )
    assert all(run.timed_out for run in survey.runs)


def test_what_a_crawler_sends_cannot_get_into_the_report() -> None:
    script = (
        "import sys, urllib.request as u\n"
        "r = u.Request(sys.argv[1] + '?<script>alert(1)</script>',"
        " headers={'User-Agent': '<img src=x onerror=alert(2)>'})\n"
        "u.urlopen(r)"
    )
    survey = hold([sys.executable, "-c", script, "{url}"], delay=0.2)
    page = html_report(survey)
    assert "&lt;script&gt;alert(1)" in page
    assert "<script>" not in page
    assert "<img" not in page
