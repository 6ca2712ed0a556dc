"""Who we are to a site, and which requests are checked at all."""

import logging
from typing import Any

import pytest

from polite_transport import Decision, MemoryStore, Policy
from polite_transport.decision import Reason
from polite_transport.flow import Call
from polite_transport.url import InvalidURL
from polite_transport.visitor import Visitor, _identify, visitor, way

from .clockwork import PAGE, UA


@pytest.fixture(autouse=True)
def _said_nothing_yet() -> None:
    _identify.cache_clear()


def call(who: Visitor | None = None, url: str = PAGE, ua: str | bytes | None = UA) -> Call:
    made = (who or visitor(None, None, None)).call("GET", url, ua)
    assert isinstance(made, Call)
    return made


def test_what_is_checked_is_what_is_sent() -> None:
    for sent, token in (
        (UA, "MyBot"),
        (b"MyBot/1.0 (caf\xe9@example.org)", "MyBot"),
        ("Mozilla/5.0 (compatible; MyBot/1.0; +https://example.org)", "MyBot"),
        (None, ""),
        ("", ""),
    ):
        made = call(ua=sent)
        assert made.product_token == token
        expected = sent.decode("latin-1") if isinstance(sent, bytes) else sent or ""
        assert made.user_agent == expected


def test_the_policy_names_us_where_the_user_agent_is_unusual() -> None:
    who = Visitor(None, Policy(product_token="mybot"))
    assert call(who, ua="Mozilla/5.0 (MyBot; https://example.org)").product_token == "mybot"
    with pytest.raises(ValueError, match="does not occur in the User-Agent"):
        call(who, ua="Mozilla/5.0")
    with pytest.raises(ValueError, match="does not occur"):
        Visitor("Other/1.0", Policy(product_token="mybot"))


@pytest.mark.parametrize("ua", ["", " ", "a\r\nb", "a\x00", "a\x7f", "b\u0301ot", "☃", "a\tb"])
def test_a_user_agent_that_no_header_can_carry(ua: str) -> None:
    with pytest.raises(ValueError, match="cannot be sent"):
        visitor(ua, None, None)


def test_one_that_can() -> None:
    assert visitor("Bücherbot/1.0 (+https://example.org)", None, None).user_agent


@pytest.mark.parametrize(
    ("ua", "warned"),
    [
        ("python-requests/2.32", "names a library"),
        ("python-httpx/0.28", "names a library"),
        ("Python/3.12 aiohttp/3.12", "names a library"),
        ("curl/8.0", "names a library"),
        ("MyBot/1.0", "names no contact"),
        ("", "names no contact"),
        ("MyBot/1.0 (+https://example.org)", None),
        ("MyBot/1.0 (bot@example.org)", None),
        ("MyBot/1.0 (www.example.org)", None),
    ],
)
def test_what_a_site_owner_would_miss_is_said_once(
    ua: str, warned: str | None, caplog: pytest.LogCaptureFixture
) -> None:
    for _ in range(3):
        call(ua=ua)
    assert [each.levelno for each in caplog.records] == [logging.WARNING] * (warned is not None)
    assert (warned or "") in caplog.text


@pytest.mark.parametrize(
    ("options", "url", "reason"),
    [
        ({}, "ftp://example.org/", Reason.NOT_HTTP),
        ({}, "data:,x", Reason.NOT_HTTP),
        ({"policy": Policy(exempt_hosts=["example.org"])}, PAGE, Reason.EXEMPT),
        ({"exempt_hosts": ["example.org:80"]}, PAGE, Reason.EXEMPT),
        ({"hosts": [".example.com"]}, PAGE, Reason.EXEMPT),
        ({"hosts": []}, PAGE, Reason.EXEMPT),
        ({"hosts": [".example.org"], "exempt_hosts": ["example.org"]}, PAGE, Reason.EXEMPT),
    ],
)
def test_what_is_not_checked(options: dict[str, Any], url: str, reason: Reason) -> None:
    who = visitor(None, options.pop("policy", None), None, **options)
    decision = who.call("POST", url, UA)
    assert isinstance(decision, Decision)
    assert (decision.allowed, decision.reason) == (True, reason)
    assert (decision.method, decision.user_agent, decision.delay) == ("POST", UA, 0)


def test_hosts_are_named_as_in_a_policy() -> None:
    assert call(visitor(None, None, None, hosts=["Example.ORG."])).target.host == "example.org"
    with pytest.raises(ValueError, match="collection"):
        visitor(None, None, None, hosts="example.org")


def test_the_policy_in_force_is_that_of_the_host() -> None:
    own = Policy(min_delay=5)
    who = visitor(None, Policy(overrides={"example.org": own}), None)
    assert call(who).policy is own
    assert call(who, "http://example.com/").policy is who.policy


def test_a_url_that_cannot_be_read_is_refused() -> None:
    with pytest.raises(InvalidURL):
        call(url="http://a:b/")


def test_what_is_shown_holds_no_password() -> None:
    assert call(url="http://user:secret@example.org/page#x").target.url == PAGE


def test_everyone_shares_the_process_store_unless_given_another() -> None:
    assert visitor(None, None, None).store is visitor(UA, Policy(), None).store
    own = MemoryStore()
    assert visitor(None, None, own).store is own


# --- ways to a site -------------------------------------------------------------------------


def test_only_what_not_everyone_should_rely_on_has_a_name() -> None:
    assert way(verified=True, proxy=None) == way(verified=True, proxy="") == ""
    names = {
        way(verified=verified, proxy=proxy, stranger=stranger)
        for verified in (True, False)
        for proxy in (None, "http://proxy.example", "http://other.example")
        for stranger in (None, MemoryStore(), Policy())
    }
    assert len(names) == 2 * 3 * 3


@pytest.mark.parametrize(
    "spelt",
    [
        "http://proxy.example:80",
        "http://proxy.example/",
        "HTTP://Proxy.Example",
        "proxy.example",
        "proxy.example:80",
        "http://user:p%40ss@proxy.example",
        "user:secret@proxy.example:80",
    ],
)
def test_a_proxy_is_the_same_however_it_is_spelt(spelt: str) -> None:
    assert way(verified=True, proxy=spelt) == "proxy proxy.example:80"


@pytest.mark.parametrize(
    ("proxy", "named"),
    [
        ("https://proxy.example", "proxy proxy.example:443"),
        ("socks5h://user:secret@proxy.example", "proxy proxy.example:1080"),
        ("http://[::1]:3128", "proxy ::1:3128"),
        ("http://user:secret@proxy.example:port", "proxy proxy.example:port"),
        ("unix:///run/daemon.sock", "proxy unix:///run/daemon.sock"),
    ],
)
def test_proxies_of_other_kinds(proxy: str, named: str) -> None:
    assert way(verified=True, proxy=proxy) == named


def test_a_stranger_is_named_by_its_class_or_as_what_it_is() -> None:
    for stranger in (MemoryStore(), MemoryStore):
        named = way(verified=False, proxy=None, stranger=stranger)
        assert named == "unverified polite_transport.stores.memory.MemoryStore"
    assert way(verified=True, proxy=None, stranger=call) == f"{__name__}.call"
