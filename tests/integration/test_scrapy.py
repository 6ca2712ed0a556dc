"""Scrapy as it comes, and with the one line; each crawl in a process of its own."""

import json
import subprocess
import sys
from collections.abc import Callable

import pytest

from polite_transport.testing import Site

ROBOTS = "User-agent: *\nDisallow: /testdir2\nCrawl-delay: 0.2\n"
UA = "MyBot/1.0 (+https://example.org/bot)"

# What a user writes: start requests all at once, and whatever comes prints its Decision.
SPIDER = """
import json, sys
import scrapy
from scrapy.crawler import CrawlerProcess

urls, settings = json.loads(sys.argv[1])

class Pages(scrapy.Spider):
    name = "pages"

    async def start(self):
        for url in urls:
            yield scrapy.Request(url, callback=self.parse, errback=self.failed, dont_filter=True)

    def parse(self, response):
        print("got", response.url, response.meta.get("polite"))

    def failed(self, failure):
        print("failed", type(failure.value).__mro__[1].__name__, failure.value)

process = CrawlerProcess(settings)
crawler = process.create_crawler(Pages)
process.crawl(crawler)
process.start()
print("stats", json.dumps({k: v for k, v in crawler.stats.get_stats().items() if "polite" in k}))
"""


def crawl(urls: list[str], **settings: object) -> str:
    common = {
        "USER_AGENT": UA,
        "ROBOTSTXT_OBEY": True,
        "LOG_LEVEL": "ERROR",
        "TELNETCONSOLE_ENABLED": False,
        "RETRY_TIMES": 2,
    }
    given = json.dumps([urls, {**common, **settings}])
    done = subprocess.run(
        [sys.executable, "-c", SPIDER, given],
        check=True,
        stdout=subprocess.PIPE,
        text=True,
        timeout=120,
    )
    return done.stdout


ADDON = {"ADDONS": {"polite_transport.clients.scrapy.PoliteAddon": 0}}


def test_as_it_comes_it_ignores_crawl_delay(site: Callable[..., Site]) -> None:
    """What the add-on is for: with this gone, so is the reason for it."""
    place = site(ROBOTS)
    crawl([place.url(f"/{number}") for number in range(4)], DOWNLOAD_DELAY=0)
    assert min(place.gaps()) < 0.2


def test_with_the_one_line_thirty_requests_keep_everything(site: Callable[..., Site]) -> None:
    place = site(ROBOTS, accept_jitter=(0.0, 0.05))
    paths = [f"/{number}" for number in range(18)]
    paths += [f"/testdir2/{number}" for number in range(6)]
    paths += ["/redirect?to=/landed", "/redirect?to=/testdir2/landed"]
    paths += ["/flaky?key=a&fails=2&status=500", "/drop?key=b&fails=1"]
    told = crawl([place.url(path) for path in paths], **ADDON)
    targets = place.targets()
    assert targets[0] == "/robots.txt"
    assert targets.count("/robots.txt") == 1
    assert not [target for target in targets if target.startswith("/testdir2")]
    assert len(targets) == 1 + 18 + 2 + 1 + 3 + 2
    assert min(place.gaps()) >= 0.2
    assert told.count("failed DisallowedByRobots") == 7
    assert "line 2" in told
    assert "is allowed for MyBot" in told
    assert json.loads(told.rpartition("stats ")[2])["polite/refused/DisallowedByRobots"] == 7


def test_the_larger_of_both_delays_counts(site: Callable[..., Site]) -> None:
    place = site("User-agent: *\nCrawl-delay: 0.1\n")
    urls = [place.url(f"/{number}") for number in range(3)]
    crawl(urls, **ADDON, DOWNLOAD_DELAY=0.4, RANDOMIZE_DOWNLOAD_DELAY=False)
    # Scrapy's own delay is kept from start to start, ours from headers to start.
    assert min(place.gaps()[1:]) > 0.3


@pytest.mark.parametrize("status", [429, 503])
def test_retry_after_holds_the_host_back(site: Callable[..., Site], status: int) -> None:
    place = site("")
    busy = place.url(f"/status/{status}?retry_after=1")
    crawl([busy, place.url("/next")], **ADDON, RETRY_ENABLED=False, CONCURRENT_REQUESTS=1)
    assert place.targets() == [
        "/robots.txt",
        f"/status/{status}?retry_after=1",
        "/next",
    ]
    assert place.gaps()[-1] >= 1.0


def test_a_cache_above_takes_no_turn(site: Callable[..., Site], tmp_path: object) -> None:
    place = site(ROBOTS)
    settings = {**ADDON, "HTTPCACHE_ENABLED": True, "HTTPCACHE_DIR": str(tmp_path)}
    crawl([place.url("/page")], **settings)
    crawl([place.url("/page")], **settings)
    assert place.targets().count("/page") == 1


def test_a_url_that_cannot_be_read_is_dropped() -> None:
    told = crawl(["http://user:secret@a,b/page"], **ADDON)
    assert "failed InvalidURL http://a,b/page was not sent" in told
    assert "secret" not in told
    assert json.loads(told.rpartition("stats ")[2])["polite/refused/InvalidURL"] == 1
