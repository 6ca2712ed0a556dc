"""urllib3's pool managers, polite, over real sockets."""

import pickle
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
import urllib3
from urllib3.exceptions import HTTPError, MaxRetryError, ProtocolError
from urllib3.util import SKIP_HEADER

import polite_transport
from polite_transport import (
    DisallowedByRobots,
    MemoryStore,
    Policy,
    PolitePoolManager,
    RobotsUnreachable,
    WaitTooLong,
    politely,
)
from polite_transport.decision import Reason
from polite_transport.testing import Answer, Site

UA = "MyBot/1.0 (+https://example.org/bot)"
DELAY = 0.06
ROBOTS = f"User-agent: *\nDisallow: /private\nCrawl-delay: {DELAY}\n"
Start = Callable[..., Site]


@pytest.fixture
def manager(store: MemoryStore) -> Iterator[PolitePoolManager]:
    with PolitePoolManager(ua=UA, store=store) as it:
        yield it


def in_turn(place: Site, *targets: str) -> None:
    assert place.targets() == ["/robots.txt", *targets]
    assert min(place.gaps()) >= DELAY


# --- hops and attempts ----------------------------------------------------------------------


def test_each_hop_is_checked_and_paced(site: Start, manager: PolitePoolManager) -> None:
    place = site(ROBOTS)
    response: Any = manager.request("GET", place.url("/redirect?to=/page"))
    assert response.status == 200
    assert response.polite.url == place.url("/page")
    with pytest.raises(DisallowedByRobots) as refused:
        manager.request("GET", place.url("/redirect?to=/private/x"))
    assert refused.value.decision.url == place.url("/private/x")
    in_turn(place, "/redirect?to=/page", "/page", "/redirect?to=/private/x")


def test_a_hop_to_another_host_keeps_to_the_rules_there(
    site: Start, manager: PolitePoolManager
) -> None:
    place, other = site(ROBOTS), site(ROBOTS, addresses=("127.0.0.2",))
    with pytest.raises(DisallowedByRobots):
        manager.request("GET", place.url(f"/redirect?to={other.url('/private')}"))
    manager.request("GET", place.url(f"/redirect?to={other.url('/page')}"))
    assert other.targets() == ["/robots.txt", "/page"]
    assert min(place.gaps()) >= DELAY


def test_hops_that_the_script_does_not_follow(site: Start, manager: PolitePoolManager) -> None:
    place = site(ROBOTS)
    response: Any = manager.request("GET", place.url("/redirect?to=/private"), redirect=False)
    assert (response.status, response.polite.allowed) == (302, True)
    in_turn(place, "/redirect?to=/private")


def test_each_retry_takes_a_turn(site: Start, manager: PolitePoolManager) -> None:
    place = site(ROBOTS)
    flaky = "/flaky?fails=2&status=500"
    retries = urllib3.Retry(3, status_forcelist=[500])
    assert manager.request("GET", place.url(flaky), retries=retries).status == 200
    in_turn(place, flaky, flaky, flaky)


def test_each_re_send_after_a_dropped_connection_takes_a_turn(
    site: Start, manager: PolitePoolManager
) -> None:
    place = site(ROBOTS)
    # urllib3 does so by itself, at once, up to three times.
    assert manager.request("GET", place.url("/drop?fails=2")).status == 200
    with pytest.raises(MaxRetryError):
        manager.request("GET", place.url("/drop?key=always"), retries=1)
    with pytest.raises(ProtocolError):
        manager.request("GET", place.url("/drop?key=once"), retries=False)
    in_turn(place, *["/drop?fails=2"] * 3, *["/drop?key=always"] * 2, "/drop?key=once")


def test_threads_share_one_pace(site: Start, manager: PolitePoolManager) -> None:
    place = site(ROBOTS)
    targets = [f"/{number}" for number in range(5)]
    with ThreadPoolExecutor(5) as threads:
        list(threads.map(lambda target: manager.request("GET", place.url(target)), targets))
    assert place.targets()[0] == "/robots.txt"
    assert sorted(place.targets()[1:]) == targets
    assert min(place.gaps()) >= DELAY


# --- bodies ---------------------------------------------------------------------------------


def test_a_body_that_is_preloaded_holds_no_turn(site: Start, manager: PolitePoolManager) -> None:
    place = site(ROBOTS)
    with ThreadPoolExecutor(2) as threads:
        slow = threads.submit(manager.request, "GET", place.url("/slow?body=1.0"))
        place.wait_for(2)
        fast = threads.submit(manager.request, "GET", place.url("/fast"))
        assert len(fast.result().data) > 0
        assert not slow.done()
        assert len(slow.result().data) == 1000
    in_turn(place, "/slow?body=1.0", "/fast")


def test_a_body_that_is_streamed(site: Start, manager: PolitePoolManager) -> None:
    place = site(ROBOTS)
    response = manager.request("GET", place.url("/large?size=200000"), preload_content=False)
    manager.request("GET", place.url("/meanwhile"))
    assert sum(map(len, response.stream(10_000))) == 200_000
    response.release_conn()
    in_turn(place, "/large?size=200000", "/meanwhile")


@pytest.mark.parametrize("end", ["read", "close", "preload"])
def test_pacing_from_the_body_ends_with_it(site: Start, store: MemoryStore, end: str) -> None:
    place = site(ROBOTS)
    policy = Policy(pace_from="body")
    slow = "/slow?body=0.4"
    with PolitePoolManager(ua=UA, store=store, policy=policy) as manager:
        response = manager.request("GET", place.url(slow), preload_content=end == "preload")
        if end == "read":
            assert len(b"".join(response.stream(100))) == 1000
        response.close()
        manager.request("GET", place.url("/page"))
    in_turn(place, slow, "/page")
    least = DELAY if end == "close" else 0.4 + DELAY
    assert place.gaps()[1] >= least


# --- refusals -------------------------------------------------------------------------------


def test_what_is_refused_is_urllib3s_own_error(site: Start, store: MemoryStore) -> None:
    place = site(ROBOTS)
    down = site(Answer(503, headers={"Retry-After": "60"}), addresses=("127.0.0.2",))
    with PolitePoolManager(ua=UA, store=store, policy=Policy(max_wait=0.01)) as manager:
        seen: list[tuple[str, type[Exception]]] = [
            (down.url("/"), RobotsUnreachable),
            (place.url("/private"), DisallowedByRobots),
            (place.url("/page"), WaitTooLong),
        ]
        for url, error in seen:
            with pytest.raises(error) as refused:
                manager.request("GET", url)
            assert isinstance(refused.value, HTTPError)
            assert not isinstance(refused.value, OSError)
            again = pickle.loads(pickle.dumps(refused.value))
            assert (type(again), str(again)) == (type(refused.value), str(refused.value))


def test_a_host_that_is_down_raises_what_it_always_raised(store: MemoryStore) -> None:
    bare, polite = urllib3.PoolManager(), PolitePoolManager(ua=UA, store=store)
    errors: list[BaseException] = []
    for manager in (bare, polite):
        with pytest.raises(HTTPError) as failed:
            manager.request("GET", "http://127.0.0.1:9/page", timeout=1)
        errors.append(failed.value)
    assert type(errors[0]) is type(errors[1])
    assert "/robots.txt" in "".join(errors[1].__notes__)


def test_what_is_checked_is_not_sent(site: Start, manager: PolitePoolManager) -> None:
    place = site(ROBOTS)
    assert manager.check(place.url("/page")).allowed
    decision = manager.check(place.url("/private"), "POST")
    assert (decision.allowed, decision.method, decision.user_agent) == (False, "POST", UA)
    assert place.targets() == ["/robots.txt"]


# --- who we are -----------------------------------------------------------------------------


def test_the_user_agent_that_is_sent_is_the_one_that_is_checked(
    site: Start, store: MemoryStore
) -> None:
    place = site("User-agent: OtherBot\nDisallow: /\n")
    other = {"User-Agent": "OtherBot/1.0 (+https://example.org/bot)"}
    with PolitePoolManager(store=store, headers=other) as manager:
        with pytest.raises(DisallowedByRobots):
            manager.request("GET", place.url("/1"))
        # The headers of one request are in the place of the manager's.
        manager.request("GET", place.url("/2"), headers={"user-agent": UA})
        manager.request("GET", place.url("/3"), headers={"User-Agent": SKIP_HEADER})
        with PolitePoolManager(ua=UA, store=store, headers=other) as renamed:
            renamed.request("GET", place.url("/4"))
        manager.request("GET", place.url("/5"), headers={})
    pages = {each.target: each.headers for each in place.log if each.target != "/robots.txt"}
    assert list(pages) == ["/2", "/3", "/4", "/5"]
    assert pages["/2"]["user-agent"] == pages["/4"]["user-agent"] == UA
    assert "user-agent" not in pages["/3"]
    assert pages["/5"]["user-agent"].startswith("python-urllib3/")
    assert other == {"User-Agent": "OtherBot/1.0 (+https://example.org/bot)"}


def test_nothing_of_the_script_goes_to_robots_txt(site: Start, store: MemoryStore) -> None:
    place = site(ROBOTS)
    private = {"Cookie": "a=b", "Authorization": "Basic eDp5", "X-Own": "z", "If-None-Match": '"1"'}
    with PolitePoolManager(ua=UA, store=store, headers=private) as manager:
        manager.request("GET", place.url("/page"))
    robots, page = place.log
    own = {"host", "user-agent", "accept", "accept-encoding"}
    assert set(robots.headers) <= own
    assert {"cookie", "authorization", "x-own", "if-none-match"} <= set(page.headers)


# --- what stays as it was -------------------------------------------------------------------


@pytest.mark.parametrize("make", [PolitePoolManager, urllib3.PoolManager])
def test_pools_taken_from_the_manager_are_as_polite_as_it_is(
    site: Start, store: MemoryStore, make: type[urllib3.PoolManager]
) -> None:
    place = site(ROBOTS)
    manager = politely(make(), ua=UA, store=store)
    pool = manager.connection_from_url(place.origin)
    response: Any = pool.request("GET", "/drop?fails=1", retries=2)
    assert (response.status, response.polite.user_agent) == (200, UA)
    manager.request("GET", place.url("/page"))
    for path in ("/private", "/redirect?to=/private"):
        with pytest.raises(DisallowedByRobots):
            pool.request("GET", path)
    in_turn(place, *["/drop?fails=1"] * 2, "/page", "/redirect?to=/private")
    assert {each.headers["user-agent"] for each in place.log} == {UA}
    manager.clear()


def test_options_of_the_pool_manager(site: Start, store: MemoryStore) -> None:
    place = site(ROBOTS)
    with PolitePoolManager(3, ua=UA, store=store, maxsize=2, timeout=0.2) as manager:
        assert manager.connection_pool_kw["maxsize"] == 2
        manager.request("GET", place.url("/page"))
        with pytest.raises(MaxRetryError, match="timed out"):
            manager.request("GET", place.url("/slow?headers=2"), retries=0)


def test_exempt_hosts(site: Start, store: MemoryStore) -> None:
    place = site(ROBOTS)
    policy = Policy(exempt_hosts=["127.0.0.1"])
    with PolitePoolManager(ua=UA, store=store, policy=policy) as manager:
        response: Any = manager.request("GET", place.url("/private"))
    assert response.polite.reason is Reason.EXEMPT
    assert place.targets() == ["/private"]


def test_the_names_are_public() -> None:
    assert issubclass(polite_transport.PolitePoolManager, urllib3.PoolManager)
    assert issubclass(polite_transport.PoliteProxyManager, urllib3.ProxyManager)
