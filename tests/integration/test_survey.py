"""The instrument's own test: a rude crawler fails every row, a perfect one passes every row."""

import sys
from pathlib import Path

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
