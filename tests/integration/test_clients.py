"""What each client does by itself, and keeps doing underneath us, over real sockets."""

import asyncio
import copy
import pickle
import ssl
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import pytest
import requests
import trustme
from requests.adapters import BaseAdapter, HTTPAdapter
from requests.auth import HTTPDigestAuth

from polite_transport import (
    AsyncPoliteTransport,
    Decision,
    DisallowedByRobots,
    MemoryStore,
    Policy,
    PoliteAdapter,
    PoliteSession,
    PoliteTransport,
)
from polite_transport.decision import Reason
from polite_transport.testing import Site

UA = "MyBot/1.0 (+https://example.org/bot)"
DELAY = 0.1
ROBOTS = f"User-agent: *\nDisallow: /private\nCrawl-delay: {DELAY}\n"
Start = Callable[..., Site]


@pytest.fixture
def session(store: MemoryStore) -> Iterator[PoliteSession]:
    with PoliteSession(ua=UA, store=store) as it:
        yield it


@pytest.fixture
def client(store: MemoryStore) -> Iterator[httpx.Client]:
    with httpx.Client(transport=PoliteTransport(ua=UA, store=store), follow_redirects=True) as it:
        yield it


# --- redirects, authentication, streaming ---------------------------------------------------


def test_a_redirect_across_hosts_is_checked_by_the_rules_of_where_it_leads(
    site: Start, session: PoliteSession, client: httpx.Client
) -> None:
    place, other = site(ROBOTS), site(ROBOTS, addresses=("127.0.0.2",))
    hop = place.url(f"/redirect?to={other.url('/private/x')}")
    with pytest.raises(DisallowedByRobots) as refused:
        session.get(hop)
    assert refused.value.decision.url == other.url("/private/x")
    with pytest.raises(DisallowedByRobots):
        client.get(hop)
    assert other.targets() == ["/robots.txt"]


def test_both_legs_of_digest_authentication_take_turns(
    site: Start, session: PoliteSession, client: httpx.Client
) -> None:
    place = site(ROBOTS)
    auth = HTTPDigestAuth("user", "password")
    assert session.get(place.url("/digest"), auth=auth).status_code == 200
    assert client.get(place.url("/digest"), auth=httpx.DigestAuth("user", "password")).is_success
    assert place.targets() == ["/robots.txt", *["/digest"] * 4]
    assert min(place.gaps()) >= DELAY


def test_an_upload_whose_body_downloads_from_the_same_host(
    site: Start, session: PoliteSession, client: httpx.Client
) -> None:
    place = site(ROBOTS)

    def body(get: Callable[[str], object]) -> Iterator[bytes]:
        yield b"begin "
        get(place.url("/within"))
        yield b"end"

    sent = session.post(place.url("/echo"), data=body(session.get))
    assert sent.json()["body"] == "begin end"
    again = client.post(place.url("/echo"), content=body(client.get))
    assert again.json()["body"] == "begin end"
    assert place.targets().count("/within") == 2
    assert min(place.gaps()) >= DELAY


def test_streams_hooks_and_cookies_work_as_before(
    site: Start, session: PoliteSession, client: httpx.Client
) -> None:
    place = site(ROBOTS)
    hooked: list[int] = []
    session.hooks["response"].append(lambda response, **_: hooked.append(response.status_code))
    with session.get(place.url("/large?size=300000"), stream=True) as response:
        assert sum(map(len, response.iter_content(10_000))) == 300_000
    with client.stream("GET", place.url("/large?size=300000")) as streamed:
        assert sum(map(len, streamed.iter_bytes())) == 300_000
    session.get(place.url("/set-cookie?name=a&value=b"))
    assert session.get(place.url("/echo")).json()["headers"]["cookie"] == "a=b"
    assert hooked == [200, 200, 200]


# --- requests -------------------------------------------------------------------------------


@pytest.mark.parametrize("clone", [copy.deepcopy, lambda it: pickle.loads(pickle.dumps(it))])
def test_sessions_and_adapters_copy_and_pickle(
    site: Start, session: PoliteSession, clone: Callable[[PoliteSession], PoliteSession]
) -> None:
    place = site(ROBOTS)
    session.mount("http://", HTTPAdapter(max_retries=3))
    session.get(place.url("/original"))
    with clone(session) as twin:
        assert twin.get(place.url("/clone")).request.headers["User-Agent"] == UA
        with pytest.raises(DisallowedByRobots):
            twin.get(place.url("/private"))
        assert twin.get_adapter(place.url()).max_retries.total == 3  # type: ignore[attr-defined]
    # One robot still: one robots.txt, one pace.
    assert place.targets() == ["/robots.txt", "/original", "/clone"]
    assert min(place.gaps()) >= DELAY


class CountingAdapter(HTTPAdapter):
    sent = 0

    def send(self, *args: object, **kwargs: object) -> requests.Response:
        type(self).sent += 1
        return super().send(*args, **kwargs)  # type: ignore[arg-type]


class ForeignAdapter(BaseAdapter):
    """An adapter that is no HTTPAdapter, as those of other HTTP libraries are."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = HTTPAdapter()

    def send(self, *args: object, **kwargs: object) -> requests.Response:
        return self.inner.send(*args, **kwargs)  # type: ignore[arg-type]

    def close(self) -> None:
        self.inner.close()


@pytest.mark.parametrize("adapter", [CountingAdapter, ForeignAdapter])
def test_an_adapter_mounted_later_stays_polite(
    site: Start, session: PoliteSession, adapter: type[BaseAdapter]
) -> None:
    place = site(ROBOTS)
    session.mount(place.origin, adapter())
    for number in range(3):
        session.get(place.url(f"/{number}"))
    with pytest.raises(DisallowedByRobots):
        session.get(place.url("/private"))
    assert place.targets() == ["/robots.txt", "/0", "/1", "/2"]
    assert min(place.gaps()) >= DELAY


def test_a_polite_adapter_in_a_plain_session(site: Start, store: MemoryStore) -> None:
    place = site(ROBOTS)
    with requests.Session() as plain:
        plain.mount("http://", PoliteAdapter(ua=UA, store=store, max_retries=2))
        plain.get(place.url("/page"))
        with pytest.raises(DisallowedByRobots):
            plain.get(place.url("/private"))
    assert place.targets() == ["/robots.txt", "/page"]


def test_responses_pickle_with_their_decision(site: Start, session: PoliteSession) -> None:
    place = site(ROBOTS)
    response = session.get(place.url("/page"))
    twin = pickle.loads(pickle.dumps(response))
    assert twin.polite == response.polite  # type: ignore[attr-defined]
    assert twin.elapsed == response.elapsed


# --- who we are -----------------------------------------------------------------------------


def test_ua_goes_over_what_the_script_sets_and_says_so_once(
    site: Start, session: PoliteSession, client: httpx.Client, caplog: pytest.LogCaptureFixture
) -> None:
    place = site("User-agent: Other\nDisallow: /\n")
    for _ in range(2):
        session.get(place.url("/1"), headers={"User-Agent": "Other/1 of-requests"})
        client.get(place.url("/2"), headers={"User-Agent": "Other/1 of-httpx"})
    assert {each.headers["user-agent"] for each in place.log} == {UA}
    assert caplog.text.count("of-requests") == 1
    assert caplog.text.count("of-httpx") == 1


def test_without_ua_the_rules_are_those_for_what_each_request_carries(
    site: Start, store: MemoryStore
) -> None:
    place = site("User-agent: A\nDisallow: /a\n\nUser-agent: B\nDisallow: /b\n")
    with PoliteSession(store=store) as session:
        for name in ("A", "B"):
            headers = {"User-Agent": f"{name}/1.0 (+https://example.org)"}
            other = "b" if name == "A" else "a"
            session.get(place.url(f"/{other}"), headers=headers)
            with pytest.raises(DisallowedByRobots):
                session.get(place.url(f"/{name.lower()}"), headers=headers)
    assert sorted(place.targets()) == ["/a", "/b", "/robots.txt", "/robots.txt"]


def test_a_library_default_and_a_missing_contact_are_warned_about_once(
    site: Start, store: MemoryStore, caplog: pytest.LogCaptureFixture
) -> None:
    place = site("")
    for _ in range(2):
        with PoliteSession(store=store) as session:
            session.get(place.url("/"), headers={"User-Agent": "python-requests/0.test"})
            session.get(place.url("/"), headers={"User-Agent": "NoContactBot/1.0"})
    assert caplog.text.count("python-requests/0.test") == 1
    assert caplog.text.count("NoContactBot/1.0") == 1


def test_bytes_and_no_user_agent(site: Start, store: MemoryStore) -> None:
    place = site("User-agent: MyBot\nDisallow: /mine\n\nUser-agent: *\nDisallow: /all\n")
    with PoliteSession(store=store) as session:
        with pytest.raises(DisallowedByRobots):
            session.get(place.url("/mine"), headers={"User-Agent": b"MyBot/1.0 (a@b.example)"})
        session.headers.pop("User-Agent")
        with pytest.raises(DisallowedByRobots) as refused:
            session.get(place.url("/all"))
    # urllib3 sends its own where none is set; that is what was checked.
    assert refused.value.decision.product_token == "python-urllib3"
    assert place.log[-1].headers["user-agent"].startswith("python-urllib3/")


@pytest.mark.parametrize("ua", ["", " ", "Bot\r\nX: y", "Bot\n", "B\u4e2dt"])
def test_a_user_agent_that_no_header_can_carry_is_refused(ua: str) -> None:
    with pytest.raises(ValueError, match="cannot be sent"):
        PoliteSession(ua=ua)
    with pytest.raises(ValueError, match="cannot be sent"):
        PoliteTransport(ua=ua)


def test_a_header_with_line_breaks_sends_no_page(site: Start, store: MemoryStore) -> None:
    place = site(ROBOTS)
    with httpx.Client(transport=PoliteTransport(store=store)) as client:
        request = client.build_request("GET", place.url("/page"))
        request.headers["User-Agent"] = "Bot\r\nX-Injected: yes"
        with pytest.raises(httpx.LocalProtocolError):
            client.send(request)
    assert place.targets() == []


# --- exemptions, check, odd URLs ------------------------------------------------------------


def test_exempt_hosts_are_neither_checked_nor_paced(site: Start, store: MemoryStore) -> None:
    place = site(ROBOTS)
    policy = Policy(exempt_hosts=[f"127.0.0.1:{place.port}"])
    with PoliteSession(ua=UA, store=store, policy=policy) as session:
        response = session.get(place.url("/private/x"))
    decision: Decision = response.polite  # type: ignore[attr-defined]
    assert decision.reason is Reason.EXEMPT
    assert place.targets() == ["/private/x"]


def test_overrides_hold_for_their_host_alone(site: Start, store: MemoryStore) -> None:
    place = site("", addresses=("127.0.0.1", "127.0.0.2"))
    policy = Policy(overrides={"127.0.0.2": Policy(min_delay=0.3)})
    with PoliteSession(ua=UA, store=store, policy=policy) as session:
        for host in place.addresses:
            for number in range(2):
                session.get(place.url(f"/{number}", host))
    assert min(place.gaps("127.0.0.2")) >= 0.3
    assert min(place.gaps("127.0.0.1")) < 0.3


def test_check_answers_without_sending_the_page(
    site: Start, session: PoliteSession, store: MemoryStore
) -> None:
    place = site(ROBOTS)
    transport = PoliteTransport(ua=UA, store=store)
    async_transport = AsyncPoliteTransport(ua=UA, store=store)
    for allowed, path in ((True, "/page"), (False, "/private/x")):
        url = place.url(path)
        decisions = [
            session.check(url),
            transport.check(url),
            asyncio.run(async_transport.check(url)),
        ]
        assert [each.allowed for each in decisions] == [allowed] * 3
        assert {str(each) for each in decisions} == {str(decisions[0])}
    assert place.targets() == ["/robots.txt"]


@pytest.mark.parametrize(
    "path", ["", "/", "/a b", "/%zz", "//x", "/?q=\u00e9", "/a#private", "/\ud800", "/p%72ivatish"]
)
def test_odd_paths_go_where_they_always_went(
    site: Start, session: PoliteSession, store: MemoryStore, path: str
) -> None:
    place = site(ROBOTS)
    with requests.Session() as bare, httpx.Client() as bare_httpx:
        polite = httpx.Client(transport=PoliteTransport(ua=UA, store=store))
        for one, other in ((bare.get, session.get), (bare_httpx.get, polite.get)):
            place.clear()
            outcomes: list[object] = []
            for get in (one, other):
                try:
                    outcomes.append(get(place.origin + path).status_code)
                except Exception as error:  # noqa: BLE001 - the same one is to come from both
                    outcomes.append(type(error))
            assert outcomes[0] == outcomes[1]
            pages = [target for target in place.targets() if target != "/robots.txt"]
            assert len(set(pages)) <= 1
        polite.close()


@pytest.mark.parametrize(
    "path",
    ["/private", "/pr%69vate/x", "/open/../private/x", "/open/%2e%2e/private/x", "/private?q#f"],
)
def test_no_spelling_gets_around_a_rule(
    site: Start, session: PoliteSession, client: httpx.Client, path: str
) -> None:
    place = site(ROBOTS)
    for get in (session.get, client.get):
        with pytest.raises(DisallowedByRobots):
            get(place.origin + path)
    assert place.targets() == ["/robots.txt"]


def test_userinfo_ipv6_and_upper_case(site: Start, session: PoliteSession) -> None:
    place = site(ROBOTS, addresses=("::1",))
    url = place.url("/private/x").replace("http://", "HTTP://user:secret@")
    with pytest.raises(DisallowedByRobots) as refused:
        session.get(url)
    assert "secret" not in str(refused.value)
    assert place.targets() == ["/robots.txt"]
    assert place.log[0].headers["host"] == f"[::1]:{place.port}"
    assert "authorization" not in place.log[0].headers


# --- TLS and proxies ------------------------------------------------------------------------


@pytest.fixture
def authority(tmp_path: Path) -> tuple[str, tuple[str, str]]:
    """A private CA, and a certificate of it with its key."""
    ca = trustme.CA()
    certificate = ca.issue_cert("127.0.0.1", "localhost")
    ca.cert_pem.write_to_path(str(tmp_path / "ca.pem"))
    certificate.private_key_pem.write_to_path(str(tmp_path / "key.pem"))
    for part in certificate.cert_chain_pems:
        part.write_to_path(str(tmp_path / "chain.pem"), append=True)
    return str(tmp_path / "ca.pem"), (str(tmp_path / "chain.pem"), str(tmp_path / "key.pem"))


def test_a_private_ca_counts_for_robots_txt_too(
    site: Start, store: MemoryStore, authority: tuple[str, tuple[str, str]]
) -> None:
    ca, certificate = authority
    place = site(ROBOTS, tls=certificate)
    with PoliteSession(ua=UA, store=store) as session:
        session.get(place.url("/page"), verify=ca)
    verify = ssl.create_default_context(cafile=ca)
    with httpx.Client(
        transport=PoliteTransport(ua=UA, store=MemoryStore(), verify=verify)
    ) as client:
        client.get(place.url("/page"))
    assert place.targets() == ["/robots.txt", "/page"] * 2
    with (
        PoliteSession(ua=UA, store=MemoryStore()) as session,
        pytest.raises(requests.exceptions.SSLError),
    ):
        session.get(place.url("/page"))


def test_robots_txt_goes_through_the_pages_proxy(
    site: Start, store: MemoryStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    proxy = site(ROBOTS)
    robots = "http://site.example/robots.txt"
    with PoliteSession(ua=UA, store=store) as session:
        session.get("http://site.example/page", proxies={"http": proxy.origin})
        with pytest.raises(DisallowedByRobots):
            session.get("http://site.example/private", proxies={"http": proxy.origin})
    transport = PoliteTransport(ua=UA, store=MemoryStore(), proxy=proxy.origin)
    with httpx.Client(transport=transport) as client:
        client.get("http://site.example/page")
    monkeypatch.setenv("HTTP_PROXY", proxy.origin)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    direct = site(ROBOTS)
    transport = PoliteTransport(ua=UA, store=MemoryStore())
    with httpx.Client(transport=transport) as client:
        client.get("http://site.example/page")
        client.get(direct.url("/page"))
    with PoliteSession(ua=UA, store=MemoryStore()) as session:
        session.get("http://site.example/page")
    assert proxy.targets() == [robots, "http://site.example/page"] * 4
    assert direct.targets() == ["/robots.txt", "/page"]


def test_a_copy_read_without_verification_or_through_a_proxy_is_not_handed_to_others(
    site: Start, store: MemoryStore, authority: tuple[str, tuple[str, str]]
) -> None:
    ca, certificate = authority
    place = site(ROBOTS, tls=certificate)
    verified = ssl.create_default_context(cafile=ca)
    with PoliteSession(ua=UA, store=store) as session, pytest.warns(match="Unverified"):
        session.get(place.url("/1"), verify=False)
    with PoliteSession(ua=UA, store=store) as session:
        session.get(place.url("/2"), verify=ca)
    with httpx.Client(transport=PoliteTransport(ua=UA, store=store, verify=verified)) as client:
        client.get(place.url("/3"))
    with httpx.Client(transport=PoliteTransport(ua=UA, store=store, verify=False)) as client:
        client.get(place.url("/4"))
    # One for those who verify, one for those who do not.
    assert place.targets() == ["/robots.txt", "/1", "/robots.txt", "/2", "/3", "/4"]
