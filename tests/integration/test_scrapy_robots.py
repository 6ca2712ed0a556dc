"""How Scrapy's add-on reads robots.txt: in its slots, and when it is stopped."""

import json
import subprocess
import sys
from collections.abc import Callable
from importlib.util import find_spec

import pytest

from polite_transport.testing import Answer, Site

UA = "MyBot/1.0 (+https://example.org/bot)"

# Pages all at once, through the engine's own download so that "cancel" can give one up: as soon
# as the downloader has the request for "at".
CRAWL = """
import asyncio, json, sys
import scrapy
from scrapy import signals
from scrapy.crawler import CrawlerProcess
from polite_transport import Policy

plan, settings = json.loads(sys.argv[1])

class Pages(scrapy.Spider):
    name = "pages"

    async def start(self):
        self.crawler.signals.connect(self.reached, signal=signals.request_reached_downloader)
        if "cancel" in plan:
            self.asking = asyncio.ensure_future(
                self.crawler.engine.download_async(scrapy.Request(plan["cancel"]))
            )
            try:
                await self.asking
            except asyncio.CancelledError:
                print("given up")
        for url in plan["urls"]:
            yield scrapy.Request(url, dont_filter=True)

    def reached(self, request):
        if request.url == plan.get("at"):
            plan["at"] = None
            if "cancel" in plan:
                self.asking.cancel()
            else:
                self.stopping = asyncio.ensure_future(self.crawler.stop_async())

    def parse(self, response):
        print("got", response.url)

settings["POLITE_POLICY"] = Policy(**settings.pop("policy", {}))
process = CrawlerProcess(settings)
process.crawl(Pages)
process.start()
"""


def crawl(plan: dict[str, object], **settings: object) -> list[str]:
    common = {
        "ADDONS": {"polite_transport.clients.scrapy.PoliteAddon": 0},
        "USER_AGENT": UA,
        "LOG_LEVEL": "ERROR",
        "TELNETCONSOLE_ENABLED": False,
        "RETRY_ENABLED": False,
        "RANDOMIZE_DOWNLOAD_DELAY": False,
    }
    done = subprocess.run(
        [sys.executable, "-c", CRAWL, json.dumps([plan, {**common, **settings}])],
        check=True,
        stdout=subprocess.PIPE,
        text=True,
        timeout=60,
    )
    return done.stdout.splitlines()


# --- slots -----------------------------------------------------------------------------------


def moved(site: Callable[..., Site]) -> Site:
    """Return a site whose robots.txt is elsewhere on it."""
    place = site(Answer(302, headers={"Location": "/moved.txt"}))
    place.serve("/moved.txt", "User-agent: *\nDisallow: /private\n")
    return place


def test_the_wait_in_a_slot_is_no_time_of_the_site(site: Callable[..., Site]) -> None:
    place = moved(site)
    crawl(
        {"urls": [place.url("/page")]},
        DOWNLOAD_DELAY=2.5,
        policy={"robots_timeout": 2},
    )
    assert place.targets() == ["/robots.txt", "/moved.txt", "/page"]
    assert min(place.gaps()) > 2.2  # kept from start to start


def test_what_is_given_up_in_a_slot_is_never_sent(site: Callable[..., Site]) -> None:
    place = moved(site)
    told = crawl(
        {
            "cancel": place.url("/first"),
            "at": place.url("/moved.txt"),
            "urls": [place.url("/page")],
        },
        DOWNLOAD_DELAY=1,
    )
    assert "given up" in told
    assert place.targets() == ["/robots.txt", "/robots.txt", "/moved.txt", "/page"]


def test_a_crawl_that_is_stopped_does_not_wait_for_a_site_for_ever(
    site: Callable[..., Site],
) -> None:
    place = site(Answer(delay=float("inf")))
    crawl(
        {"urls": [place.url("/page")], "at": place.url("/robots.txt")},
        policy={"robots_timeout": 0.5},
    )
    assert set(place.targets()) == {"/robots.txt"}


HANDLERS = {
    "Twisted's": {},
    "httpx's": {"http": "scrapy.core.downloader.handlers._httpx.HttpxDownloadHandler"},
}


@pytest.mark.parametrize("handlers", HANDLERS.values(), ids=HANDLERS.keys())
def test_a_body_that_trickles_is_given_up(
    site: Callable[..., Site], handlers: dict[str, str]
) -> None:
    if handlers and find_spec("scrapy.core.downloader.handlers._httpx") is None:
        pytest.skip("this Scrapy has no such handler")
    place = site(Answer(body=b"#" * 10_000, drip=(1, 0.1)))
    crawl(
        {"urls": [place.url("/page")]}, policy={"robots_timeout": 1.5}, DOWNLOAD_HANDLERS=handlers
    )
    assert set(place.targets()) == {"/robots.txt"}
