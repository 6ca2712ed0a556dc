"""What the survey's own robots.txt ask is known by heart; an engine has to read the same there."""

import pytest

from polite_transport.robots import parse_robots
from polite_transport.testing import Arrival
from polite_transport.testing.survey import Asked, Run, Verdict, judge, pages
from polite_transport.testing.survey.asked import asked_by
from polite_transport.testing.survey.report import html_report
from polite_transport.testing.survey.runs import Survey

DELAY = 2.5
TARGETS = [
    "/",
    *pages.LINKED,
    *(pages.MOVED_TO, pages.META_ONLY, pages.REL_ONLY, pages.HEADER_ONLY),
    *(f"{pages.HIDDEN}?x", f"{pages.OPENED}a.secret", "/testdir2", "/testdir2/?q"),
]


def arrival(target: str, time: float, ua: str = "MyBot/1.0") -> Arrival:
    return Arrival(time, "127.0.0.1", 80, "GET", target, {"user-agent": ua}, 0)


@pytest.mark.parametrize(
    ("robots", "asked"),
    [
        (pages.robots_for_all(DELAY), pages.asked_of_all(DELAY)),
        (pages.robots_for_one("MyBot", DELAY), pages.asked_of_one(DELAY)),
    ],
)
def test_by_heart_is_as_read(robots: str, asked: Asked) -> None:
    read = parse_robots(robots.encode())
    assert asked.delay == read.crawl_delay("MyBot")
    for target in TARGETS:
        assert asked.forbids(target) is not read.check(target, "MyBot").allowed, target


def test_a_file_is_read_for_the_one_who_asks_for_pages() -> None:
    robots = "User-agent: *\nDisallow: /\n\nUser-agent: MyBot\nCrawl-delay: 7\nDisallow: /x\n"
    log = [arrival("/robots.txt", 0, "Python-urllib/3.12"), arrival("/", 1), arrival("/x", 2)]
    asked = asked_by(robots, None, log)
    assert (asked.delay, asked.forbids("/x"), asked.forbids("/")) == (7, True, False)
    assert asked_by(robots, None, log[:1]).forbids("/")
    assert asked_by(robots, None, []).forbids("/")
    assert not asked_by(robots, "mybot", []).forbids("/")
    assert asked_by(robots, "mybot", []).delay == 7
    assert asked_by("", None, log).delay == 0


def test_a_pause_that_the_crawl_delay_keeps_anyway_shows_nothing() -> None:
    log = (arrival("/robots.txt", 0), arrival(pages.BUSY, 10), arrival("/page1.html", 20))
    down = Run("", "", Asked(lambda _: True, 0.0), ())
    for delay, at, verdict in (
        (2.0, 20, Verdict.KEPT),
        (10.0, 20, Verdict.NOT_EXERCISED),
        (10.0, 12, Verdict.NOT_KEPT),
    ):
        seen = (*log[:2], arrival("/page1.html", at))
        run = Run("", "", Asked(lambda _: False, delay), seen)
        rows = {row.question: row.verdict for row in judge(run, None, down, 4)}
        assert rows["Retry-After: 4"] is verdict


def test_a_report_speaks_of_a_delay_where_one_is_asked_for() -> None:
    for delay, said in ((0.0, False), (3.0, True)):
        run = Run("", "", Asked(lambda _: False, delay), (arrival("/", 0), arrival("/a", 1)))
        page = html_report(Survey("crawler", (run,), judge(run, None, run, 5)))
        assert ("Green: the 3 s asked for" in page) is said
        assert ('class="early"' in page) is said
