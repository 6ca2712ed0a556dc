"""How Scrapy's add-on reads robots.txt: in its slots, through its proxies, when it is stopped."""

import gzip
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

class Rotating:
    def process_request(self, request):
        if request.url.endswith("/robots.txt"):
            request.headers["User-Agent"] = "OtherBot"
            if "other proxy" in plan:
                request.meta["proxy"] = plan["other proxy"]

class Pages(scrapy.Spider):
    name = "pages"

    async def start(self):
        self.crawler.signals.connect(self.reached, signal=signals.request_reached_downloader)
        self.failures = []
        if "cancel" in plan:
            self.asking = asyncio.ensure_future(
                self.crawler.engine.download_async(scrapy.Request(plan["cancel"]))
            )
            try:
                await self.asking
            except asyncio.CancelledError:
                print("given up")
        for url in plan["urls"]:
            yield scrapy.Request(url, errback=self.failed, meta=plan.get("meta"), dont_filter=True)

    def reached(self, request):
        if request.url == plan.get("at"):
            plan["at"] = None
            if "cancel" in plan:
                self.asking.cancel()
            else:
                self.stopping = asyncio.ensure_future(self.crawler.stop_async())

    def parse(self, response):
        print("got", response.url)

    def failed(self, failure):
        self.failures.append(failure.value)
        notes = getattr(failure.value, "__notes__", [])
        print("failed", failure.value, [note for note in notes if "robots.txt" in note])

    def closed(self, reason):
        print("exceptions", len(set(map(id, self.failures))))

settings["POLITE_POLICY"] = Policy(**settings.pop("policy", {}))
settings["DOWNLOADER_MIDDLEWARES"] = {Rotating: 600}
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


RULES = ("User-agent: *\n" + "Disallow: /private\n" * 500 + "Disallow: /\n").encode()
SQUEEZED = gzip.compress(RULES)
GZIP = {"Content-Encoding": "gzip", "Retry-After": "600"}


@pytest.mark.parametrize("lenient", [False, True])
@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (Answer(body=RULES, close="body", headers={"Retry-After": "600"}), "its body ends early"),
        (Answer(body=SQUEEZED[: len(SQUEEZED) // 2], headers=GZIP), "compressed body ends early"),
        (Answer(body=RULES, headers=GZIP), "its compressed body is broken"),
    ],
)
def test_a_broken_body_opens_nothing(
    site: Callable[..., Site], answer: Answer, said: str, *, lenient: bool
) -> None:
    place = site(answer)
    urls = [place.url("/page"), place.url("/other")]
    told = crawl({"urls": urls}, DOWNLOAD_FAIL_ON_DATALOSS=not lenient)
    assert place.targets() == ["/robots.txt"]
    assert len([line for line in told if said in line]) == 2


def test_a_compressed_one_is_read(site: Callable[..., Site]) -> None:
    place = site(Answer(body=SQUEEZED, headers=GZIP))
    crawl({"urls": [place.url("/page")]})
    assert place.targets() == ["/robots.txt"]
    place.serve("/robots.txt", Answer(body=gzip.compress(b"User-agent: *\n"), headers=GZIP))
    crawl({"urls": [place.url("/page")]})
    assert place.targets()[1:] == ["/robots.txt", "/page"]


# --- proxies ---------------------------------------------------------------------------------

FAR = "http://far.example"


@pytest.fixture(autouse=True)
def _bare_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "all_proxy", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)


@pytest.mark.parametrize("named", ["meta", "environment"])
def test_a_proxy_s_password_goes_with_robots_txt_too(
    site: Callable[..., Site], monkeypatch: pytest.MonkeyPatch, named: str
) -> None:
    proxy = site("")
    with_password = proxy.origin.replace("//", "//user:secret@")
    plan: dict[str, object] = {"urls": [f"{FAR}/page"]}
    if named == "meta":
        plan["meta"] = {"proxy": with_password}
    else:
        monkeypatch.setenv("http_proxy", with_password)
    crawl(plan)
    assert proxy.targets() == [f"{FAR}/robots.txt", f"{FAR}/page"]
    asked, page = proxy.log
    assert page.headers["proxy-authorization"].startswith("Basic ")
    assert asked.headers["proxy-authorization"] == page.headers["proxy-authorization"]


def test_another_proxy_does_not_see_the_password(site: Callable[..., Site]) -> None:
    proxy, other = site(""), site("")
    crawl(
        {
            "urls": [f"{FAR}/page"],
            "meta": {"proxy": proxy.origin.replace("//", "//user:secret@")},
            "other proxy": other.origin,
        }
    )
    assert other.targets() == [f"{FAR}/robots.txt"]
    assert "proxy-authorization" not in other.log[0].headers
    assert proxy.targets() == [f"{FAR}/page"]


def test_robots_txt_is_asked_for_with_our_own_headers_alone(site: Callable[..., Site]) -> None:
    place = site("")
    secret = {"Authorization": "secret", "Cookie": "session=secret", "X-Key": "secret"}
    crawl({"urls": [place.url("/page")]}, DEFAULT_REQUEST_HEADERS=secret, COOKIES_ENABLED=False)
    asked, page = place.log
    assert list(page.headers.values()).count("secret") == 2
    assert asked.headers.keys() == {"accept", "accept-encoding", "host", "user-agent"}
    assert asked.headers["user-agent"] == page.headers["user-agent"] == UA


# --- no answer -------------------------------------------------------------------------------


def test_each_request_that_waited_has_an_exception_of_its_own(site: Callable[..., Site]) -> None:
    place = site(Answer(close="before"))
    told = crawl({"urls": [place.url(f"/{number}") for number in range(4)]})
    about = f" for {place.url('/robots.txt')}; the page itself was not asked for"
    failures = [line for line in told if line.startswith("failed")]
    assert len(failures) == 4
    assert all(line.count(about) == 1 for line in failures)
    assert sum("while it asked for" in line for line in failures) == 1
    assert sum("waited for another request to ask for" in line for line in failures) == 3
    assert "exceptions 4" in told
