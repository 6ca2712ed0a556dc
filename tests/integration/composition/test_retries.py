"""Retries: each attempt takes a turn, whoever asks for it."""

import asyncio
from collections.abc import Callable

import httpx
import pytest
import requests
from httpx_retries import Retry as HttpxRetry
from httpx_retries import RetryTransport
from requests.adapters import HTTPAdapter
from requests_ratelimiter import LimiterAdapter, LimiterSession
from urllib3 import Retry

from polite_transport import (
    AsyncPoliteTransport,
    DisallowedByRobots,
    MemoryStore,
    PoliteSession,
    PoliteTransport,
    install,
    politely,
)
from polite_transport.testing import Site

UA = "MyBot/1.0 (+https://example.org/bot)"
DELAY = 0.06
ROBOTS = f"User-agent: *\nDisallow: /private\nCrawl-delay: {DELAY}\n"
Start = Callable[..., Site]

FLAKY = "/flaky?fails=2&status=500"
EACH_IN_ITS_TURN = ["/robots.txt", FLAKY, FLAKY, FLAKY]


def at_once() -> HttpxRetry:
    """Return a rule that retries as fast as it can."""
    return HttpxRetry(total=4, backoff_factor=0, backoff_jitter=0, status_forcelist=[500])


def seen_in_turn(place: Site, targets: list[str]) -> None:
    assert place.targets() == targets
    assert min(place.gaps()) >= DELAY


def test_httpx_retries_over_us(site: Start, store: MemoryStore) -> None:
    asked: list[str] = []

    class Watched(PoliteTransport):
        def handle_request(self, request: httpx.Request) -> httpx.Response:
            asked.append(request.url.path)
            return super().handle_request(request)

    place = site(ROBOTS)
    polite = Watched(ua=UA, store=store)
    with httpx.Client(transport=RetryTransport(polite, at_once())) as client:
        assert client.get(place.url(FLAKY)).status_code == 200
        with pytest.raises(DisallowedByRobots):
            client.get(place.url("/private/x"))
    # A refusal is final: no retry layer takes it for an outage.
    assert asked == ["/flaky"] * 3 + ["/private/x"]
    seen_in_turn(place, EACH_IN_ITS_TURN)


async def visit(client: httpx.AsyncClient, place: Site) -> None:
    async with client:
        assert (await client.get(place.url(FLAKY))).status_code == 200
        with pytest.raises(DisallowedByRobots):
            await client.get(place.url("/private/x"))


def test_httpx_retries_over_us_async(site: Start, store: MemoryStore) -> None:
    place = site(ROBOTS)
    retrying = RetryTransport(AsyncPoliteTransport(ua=UA, store=store), at_once())
    asyncio.run(visit(httpx.AsyncClient(transport=retrying), place))  # it sleeps on asyncio only
    seen_in_turn(place, EACH_IN_ITS_TURN)


@pytest.mark.parametrize("polite", [PoliteTransport, AsyncPoliteTransport])
def test_httpx_retries_beneath_us_are_refused_with_the_right_order(polite: type) -> None:
    with pytest.raises(TypeError) as refused:
        polite(RetryTransport(retry=at_once()))
    assert f"RetryTransport outside, standing on {polite.__name__}()" in str(refused.value)


@pytest.mark.parametrize(
    ("polite", "kind"),
    [
        (PoliteTransport, httpx.AsyncHTTPTransport),
        (PoliteTransport, AsyncPoliteTransport),
        (AsyncPoliteTransport, httpx.HTTPTransport),
        (AsyncPoliteTransport, PoliteTransport),
    ],
)
def test_a_transport_of_the_other_kind_is_refused_at_once(polite: type, kind: type) -> None:
    with pytest.raises(TypeError, match=f"sends through handle_.*, which {kind.__name__} does not"):
        polite(kind())


def test_a_client_with_httpx_retries_made_polite(site: Start, store: MemoryStore) -> None:
    place = site(ROBOTS)
    retrying = RetryTransport(retry=at_once())
    with politely(httpx.Client(transport=retrying), ua=UA, store=store) as client:
        assert client.get(place.url(FLAKY)).status_code == 200
        with pytest.raises(DisallowedByRobots):
            client.get(place.url("/private/x"))
    seen_in_turn(place, EACH_IN_ITS_TURN)


def test_an_async_client_with_httpx_retries_made_polite(site: Start, store: MemoryStore) -> None:
    place = site(ROBOTS)
    client = httpx.AsyncClient(transport=RetryTransport(retry=at_once()))
    asyncio.run(visit(politely(client, ua=UA, store=store), place))
    seen_in_turn(place, EACH_IN_ITS_TURN)


def test_httpx_retries_in_an_installed_process(site: Start, store: MemoryStore) -> None:
    place = site(ROBOTS)
    with (
        install(ua=UA, store=store),
        httpx.Client(transport=RetryTransport(retry=at_once())) as client,
    ):
        assert client.get(place.url(FLAKY)).status_code == 200
    seen_in_turn(place, EACH_IN_ITS_TURN)


class Persistent(httpx.HTTPTransport):
    """It sends again by itself, with the wire just beneath."""

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        response = super().handle_request(request)
        while response.status_code == 500:
            response.close()
            response = super().handle_request(request)
        return response


class AsyncPersistent(httpx.AsyncHTTPTransport):
    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        response = await super().handle_async_request(request)
        while response.status_code == 500:
            await response.aclose()
            response = await super().handle_async_request(request)
        return response


def test_a_transport_between_two_layers_of_ours_that_sends_again(
    site: Start, store: MemoryStore
) -> None:
    place = site(ROBOTS)
    with (
        install(ua=UA, store=store),
        httpx.Client(transport=PoliteTransport(Persistent(), ua=UA, store=store)) as client,
    ):
        assert client.get(place.url(FLAKY)).status_code == 200
        with pytest.raises(DisallowedByRobots):
            client.get(place.url("/private/x"))
    seen_in_turn(place, EACH_IN_ITS_TURN)


@pytest.mark.anyio
async def test_an_async_one(site: Start, store: MemoryStore) -> None:
    place = site(ROBOTS)
    transport = AsyncPoliteTransport(AsyncPersistent(), ua=UA, store=store)
    with install(ua=UA, store=store):
        await visit(httpx.AsyncClient(transport=transport), place)
    seen_in_turn(place, EACH_IN_ITS_TURN)


class Rewriting(httpx.HTTPTransport):
    """It sends a request of its own making."""

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        anew = httpx.Request(
            request.method, request.url, headers=request.headers, extensions=request.extensions
        )
        return super().handle_request(anew)


def test_a_transport_between_two_layers_of_ours_that_makes_requests_anew(
    site: Start, store: MemoryStore
) -> None:
    place = site(ROBOTS)
    with (
        install(ua=UA, store=store),
        httpx.Client(transport=PoliteTransport(Rewriting(), ua=UA, store=store)) as client,
    ):
        for number in range(2):
            client.get(place.url(f"/{number}"))
    seen_in_turn(place, ["/robots.txt", "/0", "/1"])


def test_httpx_own_retries_are_of_connections_alone(site: Start, store: MemoryStore) -> None:
    place = site(ROBOTS)
    with httpx.Client(transport=PoliteTransport(ua=UA, store=store, retries=3)) as client:
        assert client.get(place.url(FLAKY)).status_code == 500
        with pytest.raises(httpx.RemoteProtocolError):
            client.get(place.url("/drop"))
    seen_in_turn(place, ["/robots.txt", FLAKY, "/drop"])


def test_the_retries_of_an_adapter(site: Start, store: MemoryStore) -> None:
    place = site(ROBOTS)
    with PoliteSession(ua=UA, store=store) as session:
        session.mount("http://", HTTPAdapter(max_retries=Retry(4, status_forcelist=[500])))
        assert session.get(place.url(FLAKY)).status_code == 200
    seen_in_turn(place, EACH_IN_ITS_TURN)


# --- requests-ratelimiter: it limits what the script asks for, and we what reaches the site --


def limited_adapter() -> requests.Session:
    session = requests.Session()
    session.mount("http://", LimiterAdapter(per_second=50, burst=1))
    return session


@pytest.mark.parametrize(
    "make", [lambda: LimiterSession(per_second=50), limited_adapter], ids=["session", "adapter"]
)
def test_requests_ratelimiter_over_us(
    site: Start, store: MemoryStore, make: Callable[[], requests.Session]
) -> None:
    place = site(ROBOTS)
    with politely(make(), ua=UA, store=store) as session:
        for number in range(3):
            session.get(place.url(f"/{number}"))
        with pytest.raises(DisallowedByRobots):
            session.get(place.url("/private"))
    seen_in_turn(place, ["/robots.txt", "/0", "/1", "/2"])


def test_a_slower_requests_ratelimiter_still_holds(site: Start, store: MemoryStore) -> None:
    place = site("")
    with politely(LimiterSession(per_second=2), ua=UA, store=store) as session:
        for number in range(3):
            session.get(place.url(f"/{number}"))
    pages = [each.time for each in place.log if each.target != "/robots.txt"]
    assert pages[2] - pages[0] >= 0.9  # it lets two go at once, and no third within the second
