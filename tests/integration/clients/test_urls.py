"""URLs as people and other people's pages write them: what is checked is what is sent."""

import pickle
from collections.abc import Callable
from functools import partial
from typing import Any

import httpx
import pytest

from polite_transport import DisallowedByRobots, InvalidURL
from polite_transport.decision import Reason
from polite_transport.testing import Answer, Site

from .faces import TLS, Visitor
from .test_answers import BARE

DELAY = 0.02
ROBOTS = f"User-agent: *\nDisallow: /private\nDisallow: /*?secret=\nCrawl-delay: {DELAY}\n"
Start = Callable[..., Site]
Visit = Callable[..., Visitor]

HARMLESS = [
    "",
    "?",
    "?q=1",
    "#there",
    "/a b",
    "/a\tb",
    "/%zz%",
    "//x//y",
    "/x/../y",
    "/\u00e9?\u00fc=\u4e2d",
    "/%C3%A9%e4",
    "/q?a=/private&b=?secret",
    "/a;b=c:d@e!$&'()*+,",
    "/{a}|\\^`[b]",
    "/\ud800",
    "/\x7f\x00",
    "/line\r\nHost: elsewhere.example",
]
CLOSED = [
    "/private",
    "/private?x#y",
    "/privateer",
    "/pr%69vate/x",
    "/%70%72ivate",
    "/open/../private/x",
    "/open/%2e%2e/private/x",
    "/open/./../private",
    "/x?secret=1",
    "/x?a=1?secret=",
]


def outcome(get: Callable[[], Any]) -> object:
    try:
        return get().status
    except Exception as error:  # noqa: BLE001 - the same is to come from both
        return type(error)


def bare(name: str, url: str) -> Any:
    response = BARE[name](url, 10)
    response.status = getattr(response, "status", None) or response.status_code
    return response


def test_odd_urls_go_where_they_always_went(site: Start, visit: Visit) -> None:
    place, bare_place = site(ROBOTS), site(ROBOTS)
    client = visit()
    for path in HARMLESS:
        polite_way = outcome(lambda path=path: client.get(place.origin + path))  # type: ignore[misc]
        bare_way = outcome(lambda path=path: bare(client.name, bare_place.origin + path))  # type: ignore[misc]
        assert polite_way == bare_way, path
    pages = [each for each in place.targets() if each != "/robots.txt"]
    assert pages == bare_place.targets()
    assert place.targets().count("/robots.txt") == 1
    place.assert_polite()


def test_no_spelling_gets_around_a_rule(site: Start, visit: Visit) -> None:
    place = site(ROBOTS)
    client = visit()
    for path in CLOSED:
        for url in (
            place.origin + path,
            place.origin.upper() + path,
            place.origin.replace("//", "//user:secret@") + path,
        ):
            with pytest.raises(DisallowedByRobots) as refused:
                client.get(url)
            assert "secret@" not in str(refused.value)
        # Neither through a redirect.
        there = path.replace("%", "%25").replace("#", "%23").replace("&", "%26").replace("?", "%3F")
        with pytest.raises(DisallowedByRobots):
            client.get(place.url(f"/redirect?to={there}"))
    assert not [each for each in place.log if not each.target.startswith(("/redirect", "/robots"))]


def test_an_ipv6_address(site: Start, visit: Visit) -> None:
    place = site(ROBOTS, addresses=("::1",))
    client = visit()
    client.get(place.url("/page"))
    long_form = place.url("/page").replace("[::1]", "[0:0:0:0:0:0:0:1]")
    client.get(long_form)
    with pytest.raises(DisallowedByRobots):
        client.get(place.url("/private"))
    assert place.targets() == ["/robots.txt", "/page", "/page"]
    assert place.log[0].headers["host"] == f"[::1]:{place.port}"
    assert min(place.gaps()) >= DELAY


SPELLINGS = [
    *("127.0.0.1", "127.1", "127.0.1", "0x7f000001", "0X7F.1", "2130706433", "017700000001"),
    *("0177.0.0.1", "127.0.0.1.", "\uff11\uff12\uff17.1", "[::ffff:127.0.0.1]"),
]


def test_every_spelling_of_an_address_is_one_host(site: Start, visit: Visit) -> None:
    place, bare_place = site(ROBOTS), site(ROBOTS)
    client = visit()
    hosts = []
    for spelling in SPELLINGS:
        url = f"http://{spelling}:{{}}/page"
        polite_way = outcome(lambda url=url: client.get(url.format(place.port)))  # type: ignore[misc]
        bare_way = outcome(lambda url=url: bare(client.name, url.format(bare_place.port)))  # type: ignore[misc]
        assert polite_way == bare_way, spelling  # each client refuses others of them
        if bare_way == 200:
            hosts.append(bare_place.log[-1].headers["host"].rpartition(":")[0])
    assert len(hosts) > 5
    assert place.targets() == ["/robots.txt"] + ["/page"] * len(hosts)
    assert min(place.gaps()) >= DELAY
    assert [each.headers["host"].rpartition(":")[0] for each in place.log[1:]] == hosts


@pytest.mark.parametrize(
    "url",
    [
        *("http://", "http://:80/", "http://[::1/", "http://127.0.0.1:99999/", "http://a b/", "/"),
        *(
            "http://a,b/",
            "http://a;b/",
            "http://a'b/",
            "http://a%20b/",
            "http://a{b/",
            "https://a,b",
        ),
    ],
)
def test_what_is_no_url_is_refused_by_whom_it_always_was(visit: Visit, url: str) -> None:
    client = visit()
    with pytest.raises(Exception) as bare:  # noqa: PT011 - each client has its own
        BARE[client.name](url, 10)
    with pytest.raises(Exception) as polite:  # noqa: PT011
        client.get(url)
    assert isinstance(polite.value, (type(bare.value), client.native))


def test_a_url_that_cannot_be_read_is_the_client_s_own_refusal(visit: Visit) -> None:
    client = visit()
    for host in ("a,b", "a;b", "a'b", "user:secret@a,b"):
        url = f"http://{host}/page#there"
        for ask in (client.get, client.check):
            with pytest.raises(InvalidURL) as refused:
                ask(url)
            assert isinstance(refused.value, client.native)
            assert refused.value.decision.reason is Reason.INVALID_URL
            assert not refused.value.decision.allowed
            again = pickle.loads(pickle.dumps(refused.value))
            told = str(again)
            shown = f"http://{host.removeprefix('user:secret@')}/page".replace("'", "%27")
            assert told.replace("'", "%27").startswith(f"{shown} was not sent: ")
            assert told.endswith("Correct the URL, or skip it.")
            assert "secret" not in told + repr(again) + repr(again.decision)


def test_a_redirect_to_what_cannot_be_read_ends_there(site: Start, visit: Visit) -> None:
    place = site("")
    place.serve("/moved", Answer(status=302, headers={"Location": "http://a,b/"}))
    client = visit()
    with pytest.raises(client.native):
        client.get(place.url("/moved"))
    assert place.targets() == ["/robots.txt", "/moved"]


@pytest.mark.parametrize("visit", ["requests", "httpx", "urllib3"], indirect=True)
def test_endless_redirects_end_as_they_always_did(site: Start, visit: Visit) -> None:
    place = site("User-agent: *\nDisallow: /private\n")
    client = visit()
    url = place.url("/round")
    place.serve("/round", Answer(status=302, headers={"Location": url}))
    with pytest.raises(client.native) as polite:
        client.get(url)
    follow = partial(httpx.get, follow_redirects=True, verify=TLS)
    with pytest.raises(client.native) as bare:
        (follow(url, timeout=10) if client.name == "httpx" else BARE[client.name](url, 10))
    assert type(polite.value) is type(bare.value)
