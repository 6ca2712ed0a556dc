"""The example crawler, judged by the survey, stopped, and started again."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from polite_transport.testing import Answer, Site
from polite_transport.testing.survey import Verdict, hold

CRAWLER = str(Path(__file__).parents[2] / "examples" / "crawler.py")
UA = "ExampleBot/1.0 (+https://example.org/bot)"


def test_it_keeps_every_row_of_the_survey(tmp_path: Path) -> None:
    out = str(tmp_path / "pages.jsonl")
    command = [sys.executable, CRAWLER, "{url}", "--ua", UA, "--out", out]
    survey = hold(command, token="ExampleBot", delay=0.2)
    assert {row.question: row.verdict for row in survey.rows} == dict.fromkeys(
        (row.question for row in survey.rows), Verdict.KEPT
    )


@pytest.mark.skipif(sys.platform == "win32", reason="Ctrl-C is sent in another way there")
def test_it_stops_on_ctrl_c_and_goes_on_where_it_was(
    site: Callable[..., Site], tmp_path: Path
) -> None:
    place = site()
    listed = "".join(f"<url><loc>{place.url(f'/{number}')}</loc></url>" for number in range(6))
    sitemap = f"<urlset xmlns='http://www.sitemaps.org/schemas/sitemap/0.9'>{listed}</urlset>"
    robots = f"User-agent: *\nCrawl-delay: 0.3\nSitemap: {place.url('/sitemap.xml')}\n"
    place.serve("/robots.txt", robots)
    place.serve("/sitemap.xml", Answer(body=sitemap.encode()))
    out = tmp_path / "pages.jsonl"
    command = [sys.executable, CRAWLER, place.url("/"), "--ua", UA, "--out", str(out)]

    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as first:
        place.wait_for(6, timeout=30)  # robots.txt twice, the sitemap, three pages
        os.kill(first.pid, signal.SIGINT)
        _, told = first.communicate(timeout=30)
    assert first.returncode == 130
    assert "Start it again to go on" in told
    stopped_after = len(place.log)

    subprocess.run(command, check=True, timeout=60, stderr=subprocess.DEVNULL)
    pages = [json.loads(line)["url"] for line in out.read_text().splitlines()]
    assert sorted(pages) == sorted([place.url("/"), *(place.url(f"/{n}") for n in range(6))])
    assert len(pages) == len(set(pages))
    # The pages of the first run were not asked for again, but for the one it was stopped at.
    again = place.targets()[stopped_after:]
    before = place.targets()[:stopped_after]
    assert len([target for target in again if target in before and target[1:].isdigit()]) <= 1
    assert min(place.gaps()[: stopped_after - 1]) >= 0.3
