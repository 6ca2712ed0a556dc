"""The responses of every client, from a real site: header lines apart, bodies read when needed."""

import asyncio
import urllib.request
from collections.abc import Callable

import aiohttp
import httpx
import pytest
import requests
import urllib3
from scrapy.http import HtmlResponse, Request, TextResponse

from polite_transport import (
    MemoryStore,
    Policy,
    PolitePoolManager,
    PoliteSession,
    PoliteTransport,
)
from polite_transport.page import followable_links, page_directives
from polite_transport.testing import Answer, Site

UA = "MyBot/1.0 (+https://example.org/bot)"
# Two lines of one name: joined with a comma, the second would be for the other bot alone.
LINES = {"X-Robots-Tag": "otherbot: noindex, noarchive", "x-robots-tag": "noai, MyBot: noimageai"}
PAGE = Answer(
    body=b"<meta name=MyBot content=nosnippet><a href=x>1</a><a href=/secret>2</a>", headers=LINES
)
FOR_EVERY_BOT = ["noai"]
FOR_US = ["noai", "noimageai", "nosnippet"]
Start = Callable[..., Site]


@pytest.fixture
def place(site: Start) -> Site:
    started = site("User-agent: *\nDisallow: /secret\n")
    started.serve("/dir/page", PAGE)
    return started


def names(response: object, product_token: str | None = None) -> list[str]:
    return [each.name for each in page_directives(response, product_token).stated]


def links(response: object) -> list[str]:
    return [link.url for link in followable_links(response)]


def test_requests(place: Site) -> None:
    response = requests.get(place.url("/dir/page"), timeout=10)
    assert response.headers["X-Robots-Tag"].count("noarchive, noai") == 1, "it joins the lines"
    assert names(response) == FOR_EVERY_BOT
    assert names(response, "MyBot") == FOR_US
    assert links(response) == [place.url("/dir/x"), place.url("/secret")]


def test_requests_with_a_polite_session_knows_who_asked(place: Site, store: MemoryStore) -> None:
    with PoliteSession(ua=UA, store=store) as session:
        response = session.get(place.url("/dir/page"))
        assert names(response) == FOR_US
        found = followable_links(response, check=session.check)
    assert [link.url for link in found] == [place.url("/dir/x")]
    assert str(found.excluded[0]).endswith(
        f"{place.url('/secret')} is disallowed for MyBot: line 2 of {place.url('/robots.txt')} "
        "says 'Disallow: /secret', in the group for * (line 1)"
    )
    assert place.targets() == ["/robots.txt", "/dir/page"]


def test_httpx(place: Site, store: MemoryStore) -> None:
    response = httpx.get(place.url("/dir/page"))
    assert names(response) == FOR_EVERY_BOT
    assert names(response, "mybot") == FOR_US
    with httpx.Client(transport=PoliteTransport(ua=UA, store=store)) as client:
        response = client.get(place.url("/dir/page"))
    assert names(response) == FOR_US
    assert links(response) == [place.url("/dir/x"), place.url("/secret")]


def test_urllib3(place: Site, store: MemoryStore) -> None:
    url = place.url("/dir/page")
    with urllib3.PoolManager() as plain:
        response = plain.request("GET", url)
    assert names((url, response.headers, response.data), "MyBot") == FOR_US
    with PolitePoolManager(ua=UA, store=store) as polite:
        response = polite.request("GET", url)
    assert names(response) == FOR_US
    assert links(response) == [place.url("/dir/x"), place.url("/secret")]


def test_urllib3_after_a_redirect_the_base_is_where_it_led(place: Site, store: MemoryStore) -> None:
    with PolitePoolManager(ua=UA, store=store) as polite:
        response = polite.request("GET", place.url("/redirect?to=/dir/page"))
    assert links(response) == [place.url("/dir/x"), place.url("/secret")]


def test_scrapy() -> None:
    url = "https://shop.example/dir/page"
    response = HtmlResponse(url, headers={"X-Robots-Tag": list(LINES.values())}, body=PAGE.body)
    assert names(response) == FOR_EVERY_BOT
    assert names(response, "MyBot") == FOR_US
    assert links(response) == ["https://shop.example/dir/x", "https://shop.example/secret"]


def test_scrapy_knows_who_asked_from_the_decision_in_meta() -> None:
    policy = Policy(exempt_hosts=["shop.example"])
    session = PoliteSession(ua=UA, policy=policy, store=MemoryStore())
    url = "https://shop.example/dir/page"
    request = Request(url, meta={"polite": session.check(url)})
    assert names(TextResponse(url, body=PAGE.body, request=request)) == ["nosnippet"]


def test_urllib_request_as_url_headers_and_body(place: Site) -> None:
    with urllib.request.urlopen(place.url("/dir/page"), timeout=10) as response:
        page = response.url, response.headers, response.read()
    assert names(page, "MyBot") == FOR_US


def test_aiohttp_as_url_headers_and_body(place: Site) -> None:
    async def fetch() -> tuple[object, object, bytes]:
        async with aiohttp.ClientSession() as session, session.get(place.url("/dir/page")) as it:
            return str(it.url), it.headers, await it.read()

    page = asyncio.run(fetch())
    assert names(page, "MyBot") == FOR_US
    assert names((page[0], {}, page[2])) == []


def test_the_body_of_what_is_no_page_is_left_alone(place: Site) -> None:
    headers = {"Content-Type": "application/pdf", "X-Robots-Tag": "noindex"}
    place.serve("/file", Answer(body=b"%PDF", headers=headers, endless=True))
    with requests.get(place.url("/file"), stream=True, timeout=10) as response:
        assert page_directives(response).noindex
        assert len(followable_links(response)) == 0
    with httpx.stream("GET", place.url("/file")) as streamed:
        assert page_directives(streamed).noindex
    with urllib3.PoolManager() as pools:
        unread = pools.request("GET", place.url("/file"), preload_content=False)
        assert page_directives((place.url("/file"), unread.headers, b"")).noindex
        unread.close()
