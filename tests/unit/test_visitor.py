"""Who we are to a site, and which requests are checked at all."""

import logging
import re
from typing import Any

import pytest

from polite_transport import Decision, MemoryStore, Policy
from polite_transport.decision import Reason
from polite_transport.flow import Call
from polite_transport.url import InvalidURL
from polite_transport.visitor import Visitor, _identify, unreadable, visitor, way

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
        ("Python-urllib/3.12", "names a library"),
        ("python-urllib3/2.5.0", "names a library"),
        ("Java/17.0.1", "names a library"),
        ("Wget/1.21", "names a library"),
        ("Scrapy/2.13 (+https://scrapy.org)", "names a library"),
        ("JavaneseBot/1.0 (+https://example.org/bot)", None),
        ("CurlewBot/2 (bird@example.org)", None),
        ("python-gazette-archiver/1.0 (+https://example.org)", None),
        ("ScrapyardBot (www.example.org)", None),
        ("curl/8.0 (compatible; MyBot/1.0; +https://example.org)", None),
        ("Mozilla/5.0 (compatible; MyBot; +https://example.org)", "token is 'Mozilla'"),
        ("Mozilla/5.0 Chrome/130 MyBot/1.0 (+https://example.org)", "token is 'Mozilla'"),
        ("Mozilla/5.0 (compatible; MyBot/1.0; +https://example.org)", None),
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
    for option in ("hosts", "exempt_hosts"):
        with pytest.raises(ValueError, match=rf"^{option}: 'a b' is no name of a host"):
            make(**{option: ["example.org", "a b"]})


def make(**options: Any) -> Visitor:
    given = {"ua": None, "policy": None, "store": None}
    return visitor(**{**given, **options})


@pytest.mark.parametrize(
    ("option", "value", "wanted"),
    [
        ("ua", b"MyBot/1.0", "text, such as"),
        ("ua", 5, "text, such as"),
        ("ua", False, "text, such as"),
        ("policy", {"min_delay": 1}, "a Policy"),
        ("policy", {}, "a Policy"),
        ("policy", Policy, "a Policy"),
        ("store", "sqlite:///x", r"SQLiteStore\(path\).*POLITE_STORE"),
        ("store", "", "SQLiteStore"),
        ("store", MemoryStore, "SQLiteStore"),
        ("store", {}, "SQLiteStore"),
        ("hosts", "example.org", "a collection of"),
        ("hosts", [], "leave it out where all hosts are meant"),
        ("hosts", (), "leave it out"),
        ("hosts", [5], "a collection of"),
        ("hosts", 5, "a collection of"),
        ("exempt_hosts", "localhost", "a collection of"),
        ("exempt_hosts", b"localhost", "a collection of"),
        ("exempt_hosts", [5], "a collection of"),
        ("exempt_hosts", None, "a collection of"),
    ],
)
def test_an_option_of_the_wrong_type_is_refused_at_once_by_name(
    option: str, value: Any, wanted: str
) -> None:
    shown = re.escape(f"{option}={value!r}: it must be ")
    with pytest.raises(ValueError, match=f"^{shown}.*{wanted}"):
        make(**{option: value})


def test_the_password_in_a_store_s_url_is_not_told() -> None:
    with pytest.raises(ValueError, match="store='redis://host:6379/0'") as refused:
        make(store="redis://bot:secret@host:6379/0?password=secret")
    assert "secret" not in str(refused.value)


def test_a_store_of_someone_else_is_taken_by_its_verbs() -> None:
    class Wrapped:
        def __init__(self) -> None:
            self.inner = MemoryStore()

        def __getattr__(self, name: str) -> Any:
            return getattr(self.inner, name)

    own = Wrapped()
    assert make(store=own).store is own


def test_the_policy_in_force_is_that_of_the_host() -> None:
    own = Policy(min_delay=5)
    who = visitor(None, Policy(overrides={"example.org": own}), None)
    assert call(who).policy is own
    assert call(who, "http://example.com/").policy is who.policy


@pytest.mark.parametrize("ua", [UA, UA.encode(), None])
def test_a_url_that_cannot_be_read_is_refused(ua: str | bytes | None) -> None:
    url = "http://user:secret@a:b/page#x"
    with pytest.raises(InvalidURL) as unread:
        call(url=url)
    refused = unreadable(unread.value, "PUT", url, ua)
    assert isinstance(refused, InvalidURL)
    decision = refused.decision
    assert (decision.url, decision.method, decision.allowed) == ("http://a:b/page", "PUT", False)
    assert (decision.reason, decision.user_agent) == (Reason.INVALID_URL, UA if ua else "")
    assert str(refused).startswith("http://a:b/page was not sent: no port from 0 to 65535 follows")


def test_what_is_shown_holds_no_password() -> None:
    assert call(url="http://user:secret@example.org/page#x").target.url == PAGE
    decision = visitor(None, None, None).call("GET", "ftp://user:secret@example.org/x#there", UA)
    assert isinstance(decision, Decision)
    assert decision.url == "ftp://example.org/x"
    for password in ("sec/ret", "sec#ret", "sec?ret", "sec:ret/x"):
        url = f"http://user:{password}@example.org/"
        with pytest.raises(InvalidURL) as unread:
            call(url=url)
        refused = unreadable(unread.value, "GET", url, UA)
        assert refused.decision.url == "http://example.org/"
        assert "sec" not in repr(refused)


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
