"""What is checked is what stands in the request line, whoever wrote it there."""

import urllib.request
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any
from urllib.error import URLError

import pytest
import requests
import urllib3
from requests.adapters import BaseAdapter, HTTPAdapter
from requests.models import PreparedRequest, Response
from urllib3.exceptions import HostChangedError, HTTPError, LocationParseError

from polite_transport import (
    DisallowedByRobots,
    InvalidURL,
    MemoryStore,
    Policy,
    PolitePoolManager,
    PoliteSession,
    install,
    politely,
)
from polite_transport.decision import Reason
from polite_transport.testing import Answer, Site

from .faces import UA

DELAY = 0.05
ROBOTS = f"User-agent: *\nDisallow: /private\nDisallow: /*?next=http\nCrawl-delay: {DELAY}\n"
FAR = "http://far.example"  # nobody's
Start = Callable[..., Site]
Send = Callable[..., Any]


# --- paths that look like URLs ----------------------------------------------------------------

# Each yields what GETs a path of one site.


@contextmanager
def bare_pool(place: Site, store: MemoryStore) -> Iterator[Send]:
    with install(ua=UA, store=store), urllib3.connection_from_url(place.origin) as pool:
        yield lambda path, **options: pool.request("GET", path, **options)


@contextmanager
def managers_pool(place: Site, store: MemoryStore) -> Iterator[Send]:
    with PolitePoolManager(ua=UA, store=store) as manager:
        pool = manager.connection_from_url(place.origin)
        yield lambda path, **options: pool.request("GET", path, **options)


@contextmanager
def adapters_pool(place: Site, store: MemoryStore) -> Iterator[Send]:
    with PoliteSession(ua=UA, store=store) as session:
        adapter: Any = session.get_adapter(place.origin)
        pool = adapter.poolmanager.connection_from_url(place.origin)
        yield lambda path, **options: pool.request("GET", path, **options)


@contextmanager
def installed_manager(place: Site, store: MemoryStore) -> Iterator[Send]:
    with install(ua=UA, store=store), urllib3.PoolManager() as manager:
        yield lambda path: manager.request("GET", place.origin + path)


@contextmanager
def polite_manager(place: Site, store: MemoryStore) -> Iterator[Send]:
    with PolitePoolManager(ua=UA, store=store) as manager:
        yield lambda path: manager.request("GET", place.origin + path)


@contextmanager
def installed_requests(place: Site, store: MemoryStore) -> Iterator[Send]:
    with install(ua=UA, store=store), requests.Session() as session:
        yield lambda path: session.get(place.origin + path)


@contextmanager
def polite_session(place: Site, store: MemoryStore) -> Iterator[Send]:
    with PoliteSession(ua=UA, store=store) as session:
        yield lambda path: session.get(place.origin + path)


@contextmanager
def installed_urllib(place: Site, store: MemoryStore) -> Iterator[Send]:
    with install(ua=UA, store=store):
        yield lambda path: urllib.request.urlopen(place.origin + path).close()


POOLS = [bare_pool, managers_pool, adapters_pool]
WAYS = [
    *POOLS,
    *(installed_manager, polite_manager, installed_requests, polite_session, installed_urllib),
]


@pytest.mark.parametrize("way", WAYS)
def test_a_path_may_hold_a_url(site: Start, store: MemoryStore, way: Callable[..., Any]) -> None:
    place = site(ROBOTS)
    allowed = ["/web/http://x.example/", "/a?u=https://x.example/b", "/HTTP://x.example", "/ws://"]
    closed = [
        "/private/http://x.example/",
        "/private?u=ftp://x.example",
        "/b?next=http://x.example",
    ]
    with way(place, store) as get:
        for path in (*allowed, *closed):
            if path in allowed:
                get(path)
            else:
                with pytest.raises(DisallowedByRobots):
                    get(path)
    assert place.targets() == ["/robots.txt", *allowed]
    assert min(place.gaps()) >= DELAY
    assert {each.headers["user-agent"] for each in place.log} == {UA}


@pytest.mark.parametrize("way", POOLS)
def test_a_pool_is_sent_absolute_urls_of_its_own(
    site: Start, store: MemoryStore, way: Callable[..., Any]
) -> None:
    place = site(ROBOTS)
    with way(place, store) as get:
        page = f"{place.origin}/page?u=http://x.example"
        assert get(page).polite.url == page
        for url in (f"{place.origin}/private/x", f"{place.origin.upper()}/private/x"):
            with pytest.raises(DisallowedByRobots):
                get(url)
    assert place.targets() == [f"{place.origin}/robots.txt", page]
    assert min(place.gaps()) >= DELAY


@pytest.mark.parametrize("way", POOLS)
def test_a_pool_may_be_one_of_a_proxy(
    site: Start, store: MemoryStore, way: Callable[..., Any]
) -> None:
    proxy = site(ROBOTS)  # it answers absolute URLs as if they were its own
    with way(proxy, store) as get:
        assert get(f"{FAR}/page", assert_same_host=False).polite.url == f"{FAR}/page"
        for scheme in ("http", "HTTP"):
            with pytest.raises(DisallowedByRobots):
                get(f"{scheme}://far.example/private", assert_same_host=False)
        get("/page")  # the proxy's own, whose rules are its own too
    assert proxy.targets() == [f"{FAR}/robots.txt", f"{FAR}/page", "/robots.txt", "/page"]


@pytest.mark.parametrize("way", POOLS)
def test_what_a_pool_refuses_by_itself_asks_for_no_robots_txt(
    site: Start, store: MemoryStore, way: Callable[..., Any]
) -> None:
    place, other = site(ROBOTS), site(ROBOTS)
    place.serve("/away", Answer(302, headers={"Location": other.url("/page")}))
    with way(place, store) as get:
        for url in (f"{FAR}/page", "private/x", "?private", "*", "", "ftp://far.example/"):
            with pytest.raises(HostChangedError):
                get(url)
        with pytest.raises(HTTPError):
            get("/away")
    assert place.targets() == ["/robots.txt", "/away"]
    assert other.targets() == []


@pytest.mark.parametrize("way", POOLS)
def test_a_line_that_servers_read_in_two_ways_is_not_sent(
    site: Start, store: MemoryStore, way: Callable[..., Any]
) -> None:
    place = site(ROBOTS)
    lines = [
        *("private/x", "page", "?private", "*", "", "ftp://far.example/private", "http:/private"),
        *(f"127.0.0.1:{place.port}/private", " /private", "\\private", "%2Fprivate"),
    ]
    with way(place, store) as get:
        for line in lines:
            with pytest.raises(LocationParseError):
                get(line, assert_same_host=False)
    assert place.log == ()


def test_a_path_and_its_own_redirects(site: Start, store: MemoryStore) -> None:
    # A pool goes there by itself, with nobody of ours above it.
    place = site(ROBOTS)
    for path in ("/private/http://x.example/", "/page?u=http://x.example/"):
        place.serve("/to" + path.partition("?")[0], Answer(302, headers={"Location": path}))
    with bare_pool(place, store) as get:
        with pytest.raises(DisallowedByRobots):
            get("/to/private/http://x.example/")
        get("/to/page")
    assert place.targets() == [
        *("/robots.txt", "/to/private/http://x.example/", "/to/page", "/page?u=http://x.example/")
    ]
    assert min(place.gaps()) >= DELAY


@pytest.mark.parametrize("way", WAYS)
def test_a_robots_txt_that_moved_to_a_url_that_urllib3_spells_otherwise(
    site: Start, store: MemoryStore, way: Callable[..., Any]
) -> None:
    place = site(Answer(301, headers={"Location": "/rules?u=http://x.example&a|b"}))
    place.serve("/rules", Answer(body=ROBOTS.encode()))
    with way(place, store) as get:
        get("/page")
        with pytest.raises(DisallowedByRobots):
            get("/private")
    assert [each.partition("?")[0] for each in place.targets()] == [
        *("/robots.txt", "/rules", "/page")
    ]


# --- requests ---------------------------------------------------------------------------------


class Collapsing(HTTPAdapter):
    """What it makes of leading slashes is what HTTPAdapter itself did up to requests 2.32.3."""

    def request_url(self, request: PreparedRequest, proxies: Any) -> str:
        url = super().request_url(request, proxies)
        return f"/{url.lstrip('/')}" if url.startswith("//") else url


class Rewriting(HTTPAdapter):
    """It sends another URL than the script wrote."""

    instead: tuple[str, str]

    def send(self, request: PreparedRequest, *arguments: Any, **options: Any) -> Response:
        request.url = str(request.url).replace(*self.instead)
        return super().send(request, *arguments, **options)


def a_polite_session(store: MemoryStore, **options: Any) -> Any:
    return PoliteSession(ua=UA, store=store, **options)


def an_installed_session(store: MemoryStore, **options: Any) -> Any:
    @contextmanager
    def both() -> Iterator[requests.Session]:
        with install(ua=UA, store=store, **options), requests.Session() as session:
            yield session

    return both()


def a_session_made_polite(store: MemoryStore, **options: Any) -> Any:
    session = requests.Session()
    session.mount("http://", Collapsing())
    return politely(session, ua=UA, store=store, **options)


SESSIONS = [a_polite_session, an_installed_session, a_session_made_polite]


@pytest.mark.parametrize("make", SESSIONS)
def test_slashes_that_an_adapter_collapses(site: Start, store: MemoryStore, make: Any) -> None:
    place = site("User-agent: *\nDisallow: /private\nDisallow: //closed\nCrawl-delay: 0.3\n")
    with make(store) as session:
        session.mount("http://", Collapsing())
        for path in ("//private/x", "///private/x", "//closed"):  # as written, or as sent
            with pytest.raises(DisallowedByRobots) as refused:
                session.get(place.origin + path)
            assert isinstance(refused.value, requests.RequestException)
        for _ in range(2):
            last = session.get(place.origin + "//open/x")
    assert place.targets() == ["/robots.txt", "/open/x", "/open/x"]
    assert min(place.gaps()) >= 0.3
    # The wait is told, and is none of the time that the site took.
    assert last.polite.waited > 0.2
    assert last.elapsed.total_seconds() < last.polite.waited


@pytest.mark.parametrize("make", SESSIONS)
@pytest.mark.parametrize("gap", ["\t", "\n", "\r", "\r\n\t"])
def test_a_prepared_url_with_what_urlsplit_drops(
    site: Start, store: MemoryStore, make: Any, gap: str
) -> None:
    place = site(ROBOTS)
    with make(store) as session:
        for path in (f"/pri{gap}vate/x", f"/{gap}private", f"/x{gap}y?next=ht{gap}tp:"):
            prepared = session.prepare_request(requests.Request("GET", place.url("/page")))
            prepared.url = place.origin + path
            with pytest.raises(DisallowedByRobots):
                session.send(prepared)
    assert place.targets() == ["/robots.txt"]


@pytest.mark.parametrize("make", SESSIONS)
def test_an_adapter_that_sends_another_url(site: Start, store: MemoryStore, make: Any) -> None:
    place, other = site(ROBOTS), site(ROBOTS, addresses=("127.0.0.2",))
    with make(store) as session:
        for old, new in (
            ("/alias", "/private"),
            (f"{place.origin}/alias", other.url("/private")),
            (f"{place.origin}/alias", other.url("/page")),
        ):
            adapter = Rewriting()
            adapter.instead = (old, new)
            session.mount("http://", adapter)
            if "/private" in new:
                with pytest.raises(DisallowedByRobots):
                    session.get(place.url("/alias"))
            else:
                for _ in range(2):
                    session.get(place.url("/alias"))
    assert set(place.targets()) == {"/robots.txt"}
    assert other.targets() == ["/robots.txt", "/page", "/page"]
    assert min(other.gaps()) >= DELAY


@pytest.mark.parametrize("make", SESSIONS)
def test_exempt_hosts_stay_exempt(site: Start, store: MemoryStore, make: Any) -> None:
    place = site(ROBOTS)
    with make(store, policy=Policy(exempt_hosts=["127.0.0.1"])) as session:
        session.mount("http://", Collapsing())
        response = session.get(place.origin + "//private")
        assert response.polite.reason is Reason.EXEMPT
    assert place.targets() == ["/private"]


def test_pools_of_an_adapter_follow_its_session(site: Start, store: MemoryStore) -> None:
    place = site("User-agent: MyBot\nDisallow: /mine\n\nUser-agent: OtherBot\nDisallow: /theirs\n")
    with politely(requests.Session(), ua="OtherBot/1.0 (+https://o.example)") as session:
        adapter: Any = session.get_adapter(place.origin)
        politely(session, ua=UA, store=store)
        pool = adapter.poolmanager.connection_from_url(place.origin)
        with pytest.raises(DisallowedByRobots):
            pool.request("GET", "/mine")
        pool.request("GET", "/theirs")
    assert [each.headers["user-agent"] for each in place.log] == [UA, UA]


class Foreign(BaseAdapter):
    """What it makes of a URL is its own business."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = HTTPAdapter()

    def send(self, *arguments: Any, **options: Any) -> Response:
        return self.inner.send(*arguments, **options)

    def close(self) -> None:
        self.inner.close()


def test_an_adapter_that_cannot_be_looked_into_is_sent_no_such_url(
    site: Start, store: MemoryStore
) -> None:
    place = site(ROBOTS)
    with PoliteSession(ua=UA, store=store) as session:
        session.mount("http://", Foreign())
        prepared = session.prepare_request(requests.Request("GET", place.url("/page")))
        session.send(prepared)
        prepared.url = place.origin + "/pri\tvate/x"
        with pytest.raises(requests.exceptions.InvalidURL, match="two ways"):
            session.send(prepared)
    assert place.targets() == ["/robots.txt", "/page"]


# --- urllib.request ---------------------------------------------------------------------------


def test_a_selector_set_by_hand(site: Start, store: MemoryStore) -> None:
    place = site(ROBOTS)
    with install(ua=UA, store=store), ExitStack() as opened:
        for selector in ("/private/17", f"{place.origin}/private", "/x?next=http://x.example"):
            request = urllib.request.Request(place.url("/page"))
            request.selector = selector
            with pytest.raises(DisallowedByRobots) as refused:
                urllib.request.urlopen(request)
            assert isinstance(refused.value, URLError)
        for selector in ("/other?u=http://x.example", ""):
            request = urllib.request.Request(place.url("/private"))
            request.selector = selector
            response: Any = opened.enter_context(urllib.request.urlopen(request))
            assert response.polite.url == place.origin + (selector or "/")
        for selector in ("private", "?private", "*", "ftp://u:secret@far.example/private"):
            request = urllib.request.Request(place.url("/page"))
            request.selector = selector
            with pytest.raises(InvalidURL, match="was not sent") as unread:
                urllib.request.urlopen(request)
            assert isinstance(unread.value, URLError)
            assert "secret" not in str(unread.value)
    # The absolute one is how a proxy is asked, and so its robots.txt is read like that.
    asked = ["/robots.txt", f"{place.origin}/robots.txt", "/other?u=http://x.example", "/"]
    assert place.targets() == asked
    assert min(place.gaps()) >= DELAY


def test_a_host_set_by_hand(site: Start, store: MemoryStore) -> None:
    place, other = site(""), site(ROBOTS, addresses=("127.0.0.2",))
    request = urllib.request.Request(place.url("/private"))
    request.host = f"127.0.0.2:{other.port}"
    with install(ua=UA, store=store), pytest.raises(DisallowedByRobots):
        urllib.request.urlopen(request)
    assert (place.targets(), other.targets()) == ([], ["/robots.txt"])
