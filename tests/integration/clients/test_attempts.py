"""Each attempt on the wire takes a turn: retries, re-sends, second legs, those that fail."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import pytest
import requests
import urllib3
from requests.adapters import BaseAdapter, HTTPAdapter
from requests.auth import HTTPDigestAuth

from polite_transport import (
    AsyncPoliteTransport,
    MemoryStore,
    PolitePoolManager,
    PoliteSession,
)
from polite_transport.testing import Answer, Site

from .faces import FACES, UA, Visitor

DELAY = 0.1
ROBOTS = f"User-agent: *\nDisallow: /private\nCrawl-delay: {DELAY}\n"
Start = Callable[..., Site]
Visit = Callable[..., Visitor]


def retry(**options: Any) -> urllib3.Retry:
    return urllib3.Retry(3, status_forcelist=[500], allowed_methods=None, **options)


def with_retries(session: PoliteSession) -> PoliteSession:
    session.mount("http://", HTTPAdapter(max_retries=retry()))
    return session


@pytest.mark.parametrize("client", ["requests", "urllib3"])
def test_retries_and_dropped_connections(site: Start, store: MemoryStore, client: str) -> None:
    place = site(ROBOTS)
    session = with_retries(PoliteSession(ua=UA, store=store))
    pools = PolitePoolManager(ua=UA, store=store, retries=retry())
    send = session.request if client == "requests" else pools.request
    send("GET", place.url("/flaky?key=get&fails=2&status=500"))
    send("POST", place.url("/flaky?key=post&fails=1&status=500"))
    send("GET", place.url("/drop?key=drop&fails=1"))  # on a connection that was kept alive
    send("GET", place.url("/last"))
    session.close()
    pools.clear()
    arrivals = place.log
    assert [each.target.partition("?")[0] for each in arrivals] == [
        "/robots.txt",
        *["/flaky"] * 3,
        *["/flaky"] * 2,
        *["/drop"] * 2,
        "/last",
    ]
    assert min(place.gaps()) >= DELAY
    # The attempt that was dropped without an answer might still have been on its way.
    assert place.gaps()[6] >= 2 * DELAY


def test_the_script_s_retries_do_not_count_for_robots_txt(site: Start, store: MemoryStore) -> None:
    place = site(Answer(close="before"))
    with (
        with_retries(PoliteSession(ua=UA, store=store)) as session,
        pytest.raises(requests.ConnectionError),
    ):
        session.get(place.url("/page"))
    pools = PolitePoolManager(ua=UA, store=store, retries=retry())
    with pytest.raises(urllib3.exceptions.HTTPError):
        pools.request("GET", place.url("/page"))
    pools.clear()
    assert place.targets() == ["/robots.txt"] * 4  # two each: the one retry that is our own


def test_a_wait_between_retries_holds_nobody_else_back(site: Start, store: MemoryStore) -> None:
    place = site(ROBOTS)
    with PoliteSession(ua=UA, store=store) as session:
        session.mount("http://", HTTPAdapter(max_retries=retry(backoff_factor=0.5)))
        with ThreadPoolExecutor(1) as thread:
            # After the second failure the script's own Retry sleeps for a second.
            retried = thread.submit(session.get, place.url("/flaky?fails=2&status=500"))
            place.wait_for(3)
            with PoliteSession(ua=UA, store=store) as other:
                other.get(place.url("/meanwhile"))
            assert retried.result().status_code == 200
    targets = place.targets()
    assert targets.index("/meanwhile") == 3
    assert len(targets) == 5
    assert min(place.gaps()) >= DELAY


def test_a_connection_that_the_site_closed_during_the_wait_is_not_used(
    site: Start, visit: Visit
) -> None:
    place = site("User-agent: *\nCrawl-delay: 0.15\n", idle_timeout=0.05)
    client = visit()
    for number in range(3):
        assert client.get(place.url(f"/{number}")).status == 200
    assert place.targets() == ["/robots.txt", "/0", "/1", "/2"]
    assert len({each.connection for each in place.log}) == 4


class ForeignAdapter(BaseAdapter):
    """An adapter that is no HTTPAdapter, as those of other HTTP libraries are."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = HTTPAdapter()

    def send(self, *arguments: Any, **options: Any) -> requests.Response:
        return self.inner.send(*arguments, **options)

    def close(self) -> None:
        self.inner.close()


def test_both_legs_of_digest_authentication(site: Start, store: MemoryStore) -> None:
    place = site(ROBOTS)
    url = place.url("/digest")
    with PoliteSession(ua=UA, store=store) as session:
        assert session.get(url, auth=HTTPDigestAuth("user", "password")).status_code == 200
        session.mount("http://", ForeignAdapter())
        assert session.get(url, auth=HTTPDigestAuth("user", "password")).status_code == 200
    assert place.targets() == ["/robots.txt", *["/digest"] * 4]
    assert min(place.gaps()) >= DELAY


@pytest.mark.anyio
async def test_both_legs_of_digest_authentication_in_a_task(
    site: Start, store: MemoryStore
) -> None:
    place = site(ROBOTS)
    transport = AsyncPoliteTransport(ua=UA, store=store)
    auth = httpx.DigestAuth("user", "password")
    async with httpx.AsyncClient(transport=transport, auth=auth) as client:
        response = await client.get(place.url("/digest"))
    assert response.status_code == 200
    assert place.targets() == ["/robots.txt", "/digest", "/digest"]
    assert min(place.gaps()) >= DELAY


@pytest.mark.parametrize("visit", FACES, indirect=True)
def test_after_an_attempt_without_an_answer_come_two_delays(site: Start, visit: Visit) -> None:
    delay = 0.1
    place = site(f"User-agent: *\nCrawl-delay: {delay}\n")
    client = visit()
    failing = (("/slow?headers=5", 0.05), ("/drop", 5.0))
    for path, timeout in failing:
        with pytest.raises(client.native):
            client.get(place.url(path), timeout=timeout)
    client.get(place.url("/next"))
    assert len(place.log) == 4
    # One delay after the end of the attempt would be 0.15 s.
    assert min(place.gaps()[1:]) >= delay
    assert min(place.gaps()[2:]) >= 2 * delay


@pytest.mark.parametrize("visit", ["requests", "trio"], indirect=True)
def test_a_refused_connection_costs_one_delay_and_no_more(site: Start, visit: Visit) -> None:
    place = site(f"User-agent: *\nCrawl-delay: {DELAY}\n")
    client = visit(on_unreachable="allow", min_delay=DELAY)
    client.get(place.url("/first"))
    with pytest.raises(client.native):
        client.get("http://127.0.0.1:9/nobody")
    client.get(place.url("/next"))
    assert min(place.gaps()) >= DELAY
