"""What the caller gets: decisions, refusals that its own handlers see, its own errors."""

import copy
import hashlib
import pickle
import re
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import anyio
import httpx
import pytest
import requests
import urllib3

from polite_transport import (
    AsyncPoliteTransport,
    DisallowedByRobots,
    MemoryStore,
    PoliteAdapter,
    PoliteError,
    PolitePoolManager,
    PoliteSession,
    PoliteTransport,
    RobotsUnreachable,
    WaitTooLong,
)
from polite_transport.decision import Reason
from polite_transport.testing import Answer, Site

from .faces import FACES, TLS, UA, Visitor

DELAY = 0.1
ROBOTS = f"""\
User-agent: *
Disallow: /private  # keep out
Allow: /private/open
Crawl-delay: {DELAY}
"""
Start = Callable[..., Site]
Visit = Callable[..., Visitor]


def test_a_response_carries_its_decision(site: Start, visit: Visit) -> None:
    place = site(ROBOTS)
    before = time.time()
    client = visit()
    client.get(place.url("/first"))
    decision = client.get(place.url("/private/open?q=1#there"), method="HEAD").decision
    assert decision.url == place.url("/private/open?q=1")
    assert (decision.method, decision.allowed, decision.reason) == ("HEAD", True, Reason.RULE)
    assert decision.rule is not None
    assert (decision.rule.allow, decision.rule.pattern, decision.rule.line) == (
        True,
        "/private/open",
        3,
    )
    assert (decision.user_agent, decision.product_token) == (UA, "MyBot")
    assert (decision.robots_url, decision.robots_status) == (place.url("/robots.txt"), 200)
    assert decision.robots_digest == hashlib.sha256(ROBOTS.encode()).hexdigest()
    assert decision.robots_fetched_at is not None
    assert before <= decision.robots_fetched_at <= time.time()
    assert decision.delay == DELAY
    assert DELAY / 2 < decision.waited < 5
    assert "line 3" in str(decision)


def test_a_refusal_is_what_an_unchanged_script_catches(site: Start, visit: Visit) -> None:
    place = site(ROBOTS)
    client = visit()
    with pytest.raises(client.native) as caught:
        client.get(place.url("/private/x"))
    error: Any = caught.value
    assert isinstance(error, DisallowedByRobots)
    assert not isinstance(error, requests.ConnectionError | httpx.TransportError)
    assert error.decision.url == place.url("/private/x")
    assert error.decision.rule is not None
    assert error.decision.rule.pattern == "/private"
    for part in ("/private/x", "MyBot", "line 2", place.url("/robots.txt"), "not sent"):
        assert part in str(error)
    for twin in (pickle.loads(pickle.dumps(error)), copy.deepcopy(error), copy.copy(error)):
        assert type(twin) is type(error)
        assert (str(twin), twin.decision) == (str(error), error.decision)
    assert place.targets() == ["/robots.txt"]


def test_every_method_is_checked(site: Start, visit: Visit) -> None:
    place = site(ROBOTS)
    client = visit()
    for method in ("HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "PROPFIND"):
        with pytest.raises(DisallowedByRobots) as refused:
            client.get(place.url("/private/x"), method=method)
        assert refused.value.decision.method == method
    assert place.targets() == ["/robots.txt"]


def test_every_refusal_travels_and_names_its_request(site: Start, visit: Visit) -> None:
    place = site("User-agent: *\nCrawl-delay: 20\n", addresses=("127.0.0.1", "127.0.0.2"))
    place.serve("/robots.txt", Answer(status=503, headers={"Retry-After": "600"}), host="127.0.0.2")
    client = visit(max_wait=1)
    for host, kind in (("127.0.0.1", WaitTooLong), ("127.0.0.2", RobotsUnreachable)):
        with pytest.raises(kind) as refused:
            client.get(place.url("/page", host))
        error: Any = refused.value
        for twin in (pickle.loads(pickle.dumps(error)), copy.deepcopy(error)):
            assert type(twin) is type(error)
            assert (str(twin), twin.made_of()) == (str(error), error.made_of())
        if client.name != "urllib3":
            assert str(error.request.url) == place.url("/page", host)
            assert getattr(error, "response", None) is None
    assert place.targets() == ["/robots.txt", "/robots.txt"]


def test_no_layer_retries_a_refusal(site: Start, store: MemoryStore) -> None:
    place = site(ROBOTS)
    retry = urllib3.Retry(5, status_forcelist=[403, 500], allowed_methods=None, redirect=5)
    with PoliteSession(ua=UA, store=store) as session:
        session.mount("http://", requests.adapters.HTTPAdapter(max_retries=retry))
        with pytest.raises(DisallowedByRobots):
            session.get(place.url("/redirect?to=/private/x"))
    pools = PolitePoolManager(ua=UA, store=store, retries=retry)
    with pytest.raises(DisallowedByRobots):
        pools.request("GET", place.url("/redirect?to=/private/x"))
    with (
        httpx.Client(
            transport=PoliteTransport(ua=UA, store=store, retries=5), follow_redirects=True
        ) as client,
        pytest.raises(DisallowedByRobots) as refused,
    ):
        client.get(place.url("/redirect?to=/private/x"))
    error: Any = refused.value
    assert str(error.request.url) == place.url("/private/x")
    pools.clear()
    assert place.targets() == ["/robots.txt", *["/redirect?to=/private/x"] * 3]


def test_check_sends_nothing_but_robots_txt(site: Start, visit: Visit) -> None:
    place = site(ROBOTS)
    client = visit()
    assert client.check(place.url("/page")).allowed
    no = client.check(place.url("/private/x"))
    assert (no.allowed, no.product_token) == (False, "MyBot")
    assert place.targets() == ["/robots.txt"]
    broken = site(Answer(status=503, headers={"Retry-After": "600"}))
    out = client.check(broken.url("/page"))
    assert (out.allowed, out.reason, out.robots_status) == (False, Reason.UNREACHABLE, 503)
    with pytest.raises(RobotsUnreachable) as refused:
        client.get(broken.url("/page"))
    assert isinstance(refused.value, client.native)
    assert 590 < refused.value.retry_in <= 600
    assert broken.targets() == ["/robots.txt"]


BARE: dict[str, Callable[[str, float], Any]] = {
    "requests": lambda url, timeout: requests.get(url, timeout=timeout),
    "urllib3": lambda url, timeout: urllib3.PoolManager().request(
        "GET", url, timeout=timeout, retries=urllib3.Retry(connect=0, read=0, other=0)
    ),
    "httpx": lambda url, timeout: httpx.get(url, timeout=timeout, verify=TLS),
}


async def bare_in_a_task(url: str, timeout: float) -> httpx.Response:  # noqa: ASYNC109 - httpx's own
    async with httpx.AsyncClient(verify=TLS) as client:
        return await client.get(url, timeout=timeout)


def bare_on_loop(backend: str, url: str, timeout: float) -> httpx.Response:
    return anyio.run(bare_in_a_task, url, timeout, backend=backend)


for backend in ("asyncio", "trio"):
    BARE[backend] = partial(bare_on_loop, backend)


def same_shape(error: Exception) -> str:
    """Return a message without what differs from one request to the next."""
    shape = re.sub(r"0x[0-9a-f]+", "0x", str(error))
    return re.sub(r"/robots\.txt|/page", "/…", shape)


@pytest.mark.parametrize("visit", FACES, indirect=True)
def test_a_host_that_is_down_raises_what_it_always_raised(site: Start, visit: Visit) -> None:
    client = visit()
    slow, dropping = site(Answer(delay=5)), site(Answer(close="before"))
    slow.serve("/page", Answer(delay=5))
    dropping.serve("/page", Answer(close="before"))
    for url in (
        "http://127.0.0.1:9/page",
        "http://no-such-host.invalid/page",
        slow.url("/page"),
        dropping.url("/page"),
    ):
        with pytest.raises(client.native) as bare:
            BARE[client.name](url, 0.2)
        with pytest.raises(client.native) as polite:
            client.get(url, timeout=0.2)
        assert type(polite.value) is type(bare.value)
        assert not isinstance(polite.value, PoliteError)
        assert same_shape(polite.value) == same_shape(bare.value)
        if client.name != "urllib3":
            seen: Any = polite.value
            assert str(seen.request.url) == url
        (note,) = polite.value.__notes__
        assert url.replace("/page", "/robots.txt") in note
    for place in (slow, dropping):
        # The page of the bare client; then robots.txt, once more, and nothing else.
        assert place.targets() == ["/page", "/robots.txt", "/robots.txt"]


def test_without_a_store_all_clients_of_a_process_are_one_robot(site: Start) -> None:
    place = site(ROBOTS, addresses=("127.31.41.59",))  # no other test of this process goes there
    pools = PolitePoolManager(ua=UA)
    with (
        PoliteSession(ua=UA) as session,
        requests.Session() as plain,
        httpx.Client(transport=PoliteTransport(ua=UA)) as client,
    ):
        plain.mount("http://", PoliteAdapter(ua=UA))
        session.get(place.url("/0"))
        plain.get(place.url("/1"))
        client.get(place.url("/2"))
        pools.request("GET", place.url("/3"))

    async def main() -> None:
        async with httpx.AsyncClient(transport=AsyncPoliteTransport(ua=UA)) as client:
            await client.get(place.url("/task"))

    anyio.run(main)
    pools.clear()
    assert place.targets() == ["/robots.txt", "/0", "/1", "/2", "/3", "/task"]
    assert min(place.gaps()) >= DELAY


def test_a_page_is_tried_without_an_answer_where_the_policy_says_so(
    site: Start, visit: Visit
) -> None:
    place = site(Answer(close="before"))
    seen = visit(on_unreachable="allow").get(place.url("/page"))
    assert seen.decision.reason is Reason.NO_ANSWER
    assert place.targets() == ["/robots.txt", "/robots.txt", "/page"]
