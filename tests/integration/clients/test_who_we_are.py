"""What a site learns about us: one User-Agent throughout, and nothing private with robots.txt."""

import asyncio
from collections.abc import Callable, Iterator
from typing import Any
from urllib.request import Request, urlopen

import aiohttp
import httpx
import pytest
import requests
import urllib3

from polite_transport import (
    DisallowedByRobots,
    InvalidURL,
    MemoryStore,
    PolitePoolManager,
    PoliteSession,
    PoliteTransport,
    install,
)
from polite_transport.testing import Answer, Site

from .faces import UA, Visitor

Start = Callable[..., Site]
Visit = Callable[..., Visitor]
# All that a request for robots.txt may carry.
PLAIN = {"host", "user-agent", "accept", "accept-encoding", "connection"}


def test_nothing_private_goes_along_with_robots_txt(site: Start, visit: Visit) -> None:
    elsewhere = site(Answer(status=302, headers={"Location": "/moved", "Set-Cookie": "b=2"}))
    elsewhere.serve("/moved", "User-agent: *\nDisallow: /private\n")
    moved = {"Location": elsewhere.url("/robots.txt"), "Set-Cookie": "a=1; Path=/"}
    place = site(Answer(status=301, headers=moved))
    client = visit()
    headers = {
        "Authorization": "Basic c2VjcmV0",
        "Proxy-Authorization": "Basic c2VjcmV0",
        "Cookie": "session=secret",
        "If-None-Match": '"mine"',
        "If-Modified-Since": "Tue, 01 Sep 2026 10:00:00 GMT",
        "Range": "bytes=0-9",
        "Referer": "http://secret.example/",
        "X-Secret": "secret",
    }
    client.get(place.url("/page"), headers=headers)
    client.get(place.url("/page"), headers=headers)
    fetches = [*elsewhere.log, place.log[0]]
    assert [each.target for each in fetches] == ["/robots.txt", "/moved", "/robots.txt"]
    for each in fetches:
        assert set(each.headers) <= PLAIN
        assert each.headers["user-agent"] == UA
    for each in place.log[1:]:
        assert each.headers["cookie"] == "session=secret"  # and not what robots.txt set
        assert each.headers["x-secret"] == "secret"
        assert each.headers["user-agent"] == UA


def test_userinfo_of_a_url_is_neither_sent_nor_shown(site: Start, visit: Visit) -> None:
    place = site("User-agent: *\nDisallow: /private\n")
    url = place.url("/private/x#there").replace("http://", "http://user:secret@")
    with pytest.raises(DisallowedByRobots) as refused:
        visit().get(url)
    assert refused.value.decision.url == place.url("/private/x")
    assert "secret" not in f"{refused.value} {refused.value!r} {refused.value.decision!r}"
    assert set(place.log[0].headers) <= PLAIN
    assert place.targets() == ["/robots.txt"]


def test_without_ua_each_request_is_judged_by_what_it_carries(site: Start, visit: Visit) -> None:
    place = site("User-agent: A\nDisallow: /a\n\nUser-agent: B\nDisallow: /b\n")
    client = visit(ua=None)
    one, other = (
        {"User-Agent": f"Mozilla/5.0 (compatible; {name}/1.0; +https://example.org)"}
        for name in "AB"
    )
    client.get(place.url("/b"), headers=one)
    with pytest.raises(DisallowedByRobots):
        client.get(place.url("/a"), headers=one)
    client.get(place.url("/a"), headers=other)
    with pytest.raises(DisallowedByRobots):
        client.get(place.url("/b"), headers=other)
    assert [(each.target, each.headers["user-agent"]) for each in place.log] == [
        ("/robots.txt", one["User-Agent"]),
        ("/b", one["User-Agent"]),
        ("/robots.txt", other["User-Agent"]),
        ("/a", other["User-Agent"]),
    ]


def test_rotating_browsers_are_one_robot_with_one_robots_txt(site: Start, visit: Visit) -> None:
    place = site("User-agent: *\nDisallow: /private\n")
    client = visit(ua=None)
    for version in range(4):
        agent = f"Mozilla/5.0 (X11; Linux x86_64; rv:{version}) Gecko/20100101 Firefox/{version}"
        client.get(place.url(f"/{version}"), headers={"User-Agent": agent})
    assert place.targets() == ["/robots.txt", "/0", "/1", "/2", "/3"]


def test_what_the_client_itself_would_send_is_what_is_judged(site: Start, visit: Visit) -> None:
    place = site("User-agent: *\nDisallow: /private\n")
    decision = visit(ua=None).get(place.url("/page")).decision
    assert {each.headers["user-agent"] for each in place.log} == {decision.user_agent}
    assert decision.product_token in {"python-requests", "python-httpx", "python-urllib3"}


def test_ua_goes_over_what_the_script_sets_and_says_so_once(
    site: Start, visit: Visit, caplog: pytest.LogCaptureFixture
) -> None:
    place = site("User-agent: Script\nDisallow: /\n")
    client = visit()
    script_sets = f"Script/1.0 in {client.name}"
    for number in range(2):
        client.get(place.url(f"/{number}"), headers={"user-agent": script_sets})
    assert {each.headers["user-agent"] for each in place.log} == {UA}
    assert caplog.text.count(script_sets) == 1


def test_a_missing_contact_and_a_library_s_own_name_are_told_once(
    site: Start, visit: Visit, caplog: pytest.LogCaptureFixture
) -> None:
    place = site("")
    client = visit(ua=None)
    library, bare, fine = (
        f"{name} {client.name}"
        for name in ("python-requests/0.1", "BareBot/1.0", "FineBot/1.0 (bot@example.org)")
    )
    for agent in (library, bare, fine) * 2:
        client.get(place.url("/"), headers={"User-Agent": agent})
    told = [each.getMessage() for each in caplog.records if each.levelname == "WARNING"]
    assert ["names a library" in each for each in told if library in each] == [True]
    assert ["names no contact" in each for each in told if bare in each] == [True]
    assert not [each for each in told if fine in each]


def test_a_product_token_that_the_user_agent_does_not_hold(site: Start, visit: Visit) -> None:
    place = site("User-agent: Second\nDisallow: /second\n")
    with pytest.raises(ValueError, match="does not occur in the User-Agent"):
        visit(product_token="Second")
    client = visit(product_token="Second", ua="First/1.0 Second/2.0 (+https://example.org)")
    with pytest.raises(DisallowedByRobots) as refused:
        client.get(place.url("/second"))
    assert refused.value.decision.product_token == "Second"
    unnamed = visit(product_token="Second", ua=None)
    with pytest.raises(ValueError, match="does not occur in the User-Agent"):
        unnamed.get(place.url("/page"), headers={"User-Agent": "First/1.0 (+https://example.org)"})
    assert place.targets() == ["/robots.txt"]


@pytest.mark.parametrize("ua", ["", " ", "Bot\r\nX: y", "Bot\n", "Bot\x00", "B\u4e2dt"])
def test_a_ua_that_no_header_can_carry_is_refused(visit: Visit, ua: str) -> None:
    with pytest.raises(ValueError, match="cannot be sent"):
        visit(ua=ua)


@pytest.mark.parametrize("agent", ["Bot\r\nX-Injected: yes", "Bot\nX-Injected: yes"])
def test_a_header_with_line_breaks_is_sent_to_nobody(site: Start, visit: Visit, agent: str) -> None:
    place = site("")
    with pytest.raises(Exception):  # noqa: B017, PT011 - whatever each client says to that
        visit(ua=None).get(place.url("/page"), headers={"User-Agent": agent})
    assert place.targets() == []


@pytest.fixture
def unnamed(store: MemoryStore) -> Iterator[dict[str, Callable[[str], Any]]]:
    """Clients that are made to send no User-Agent at all."""
    skip = {"User-Agent": urllib3.util.SKIP_HEADER}
    pools = PolitePoolManager(store=store)
    with (
        PoliteSession(store=store) as session,
        httpx.Client(transport=PoliteTransport(store=store)) as client,
    ):

        def in_httpx(url: str) -> httpx.Response:
            request = client.build_request("GET", url)
            del request.headers["User-Agent"]
            return client.send(request)

        yield {
            "requests": lambda url: session.get(url, headers=skip),
            "urllib3": lambda url: pools.request("GET", url, headers=skip),
            "httpx": in_httpx,
        }
    pools.clear()


@pytest.mark.parametrize("name", ["requests", "urllib3", "httpx"])
def test_without_any_user_agent_only_the_group_for_all_applies(
    site: Start, unnamed: dict[str, Callable[[str], Any]], name: str
) -> None:
    place = site("User-agent: *\nDisallow: /all\n\nUser-agent: python\nDisallow: /python\n")
    unnamed[name](place.url("/python"))
    with pytest.raises(DisallowedByRobots) as refused:
        unnamed[name](place.url("/all"))
    assert (refused.value.decision.product_token, refused.value.decision.user_agent) == ("", "")
    assert place.targets() == ["/robots.txt", "/python"]
    assert not [each for each in place.log if "user-agent" in each.headers]


def test_a_user_agent_in_bytes(site: Start, store: MemoryStore) -> None:
    place = site("User-agent: MyBot\nDisallow: /mine\n")
    headers = {b"User-Agent": UA.encode()}
    with (
        PoliteSession(store=store) as session,
        httpx.Client(transport=PoliteTransport(store=store)) as client,
    ):
        with pytest.raises(DisallowedByRobots):
            session.get(place.url("/mine"), headers={"User-Agent": UA.encode()})
        with pytest.raises(DisallowedByRobots):
            client.get(place.url("/mine"), headers=headers)
    with PolitePoolManager(store=store) as manager, pytest.raises(DisallowedByRobots):
        manager.request("GET", place.url("/mine"), headers=headers)  # type: ignore[arg-type]
    with install(store=store), pytest.raises(DisallowedByRobots):
        urlopen(Request(place.url("/mine"), headers={"User-Agent": UA.encode()}))  # type: ignore[dict-item]
    assert place.targets() == ["/robots.txt"]
    assert place.log[0].headers["user-agent"] == UA


@pytest.mark.parametrize("ua", [None, UA])
def test_of_two_spellings_one_goes_out(site: Start, store: MemoryStore, ua: str | None) -> None:
    place = site("User-agent: MyBot\nDisallow: /mine\n")
    two = {"User-Agent": "Other/1.0 (+https://example.org/other)", "user-agent": UA}
    with PolitePoolManager(ua=ua, store=store, headers=two) as manager:
        manager.request("GET", place.url("/page"))
        with pytest.raises(DisallowedByRobots):
            manager.request("GET", place.url("/mine"))
    assert [each.headers["user-agent"] for each in place.log] == [UA, UA]


def test_a_session_without_the_header_gets_urllib3_s_own(site: Start, store: MemoryStore) -> None:
    place = site("User-agent: python-urllib3\nDisallow: /private\n")
    with PoliteSession(store=store) as session:
        session.headers.pop("User-Agent")
        seen = session.get(place.url("/page"))
        with pytest.raises(requests.RequestException):
            session.get(place.url("/private"))
    decision = seen.polite  # type: ignore[attr-defined]
    assert {each.headers["user-agent"] for each in place.log} == {decision.user_agent}
    assert place.targets() == ["/robots.txt", "/page"]


# --- whose page it is -----------------------------------------------------------------------


def test_a_host_header_that_names_another_site_is_refused(site: Start, visit: Visit) -> None:
    place = site("User-agent: *\nDisallow: /private\n")
    client = visit()
    for name in ("shop.example", "127.0.0.1:1", "127.0.0.1", "no host at all/"):
        with pytest.raises(InvalidURL, match="names another host than it goes to") as refused:
            client.get(place.url("/page"), headers={"Host": name})
        assert isinstance(refused.value, client.native)
    assert place.targets() == []
    own = place.origin.removeprefix("http://")
    assert client.get(place.url("/page"), headers={"host": own}).status == 200
    assert {each.headers["host"] for each in place.log} == {own}


def test_but_not_where_the_host_is_left_alone(site: Start, visit: Visit) -> None:
    place = site("User-agent: *\nDisallow: /\n")
    client = visit(exempt_hosts=["127.0.0.1"])
    assert client.get(place.url("/page"), headers={"Host": "shop.example"}).status == 200
    assert [each.headers["host"] for each in place.log] == ["shop.example"]


def test_nor_is_it_sent_where_a_process_is_patched(site: Start, store: MemoryStore) -> None:
    place = site("User-agent: *\nDisallow: /private\n")
    theirs = {"Host": "shop.example"}

    async def in_aiohttp() -> None:
        async with aiohttp.ClientSession() as session:
            await session.get(place.url("/page"), headers=theirs)

    with install(ua=UA, store=store):
        with pytest.raises(InvalidURL):
            urlopen(Request(place.url("/page"), headers=theirs))
        with pytest.raises(InvalidURL):
            asyncio.run(in_aiohttp())
        with pytest.raises(InvalidURL), urllib3.connection_from_url(place.origin) as pool:
            pool.request("GET", "/page", headers=theirs)
    assert place.targets() == []
