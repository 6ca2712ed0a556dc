"""Mocks in the suites of our users: what they see of us, and how to see nothing of us."""

import asyncio
import threading
from collections.abc import Callable, Iterator

import httpx
import pytest
import requests
import requests_mock
import responses
import respx
from pytest_httpx import HTTPXMock
from requests_mock.exceptions import NoMockAddress

from polite_transport import (
    AsyncPoliteTransport,
    DisallowedByRobots,
    MemoryStore,
    PolitePoolManager,
    PoliteSession,
    PoliteTransport,
    install,
    politely,
)
from polite_transport.decision import Reason
from polite_transport.testing import Site, assume_allowed

UA = "MyBot/1.0 (+https://example.org/bot)"
ORIGIN = "https://mocked.example"
PAGE = f"{ORIGIN}/page"
ROBOTS = f"{ORIGIN}/robots.txt"
NO_ENTRY = "User-agent: *\nDisallow: /\nCrawl-delay: 20\n"
Start = Callable[..., Site]


@pytest.fixture
def session(store: MemoryStore) -> Iterator[PoliteSession]:
    with PoliteSession(ua=UA, store=store) as it:
        yield it


@pytest.fixture
def client(store: MemoryStore) -> Iterator[httpx.Client]:
    with httpx.Client(transport=PoliteTransport(ua=UA, store=store)) as it:
        yield it


def names_the_switch(error: BaseException) -> bool:
    notes = "\n".join(getattr(error, "__notes__", ()))
    return ROBOTS in notes and "polite_transport.testing.assume_allowed()" in notes


# --- responses ------------------------------------------------------------------------------


def test_responses_with_a_robots_txt(session: PoliteSession) -> None:
    with responses.RequestsMock() as mock:
        mock.get(ROBOTS, body="User-agent: *\nDisallow: /private\n")
        mock.get(PAGE, body="mocked")
        assert session.get(PAGE).text == "mocked"
        with pytest.raises(DisallowedByRobots):
            session.get(f"{ORIGIN}/private")


@responses.activate
def test_responses_without_one_fail_and_say_what_to_do(session: PoliteSession) -> None:
    responses.get(PAGE)
    with pytest.raises(requests.ConnectionError) as failed:
        session.get(PAGE)
    assert names_the_switch(failed.value)


@responses.activate
@assume_allowed()
def test_responses_with_all_assumed_allowed(session: PoliteSession) -> None:
    responses.get(PAGE, body="mocked")
    assert session.get(PAGE).text == "mocked"
    assert len(responses.calls) == 1
    assert responses.calls[0].request.headers["User-Agent"] == UA


# --- requests-mock --------------------------------------------------------------------------


def test_requests_mock_stands_in_front_of_our_adapters(session: PoliteSession) -> None:
    with requests_mock.Mocker() as mock:
        mock.get(PAGE, text="mocked")
        assert session.get(PAGE).text == "mocked"
        assert mock.call_count == 1


def test_an_adapter_of_requests_mock(session: PoliteSession) -> None:
    adapter = requests_mock.Adapter()
    session.mount("https://", adapter)
    adapter.register_uri("GET", PAGE, text="mocked")
    with pytest.raises(NoMockAddress) as failed:
        session.get(PAGE)
    assert names_the_switch(failed.value)
    with assume_allowed():
        assert session.get(PAGE).text == "mocked"
    adapter.register_uri("GET", ROBOTS, text=NO_ENTRY)
    with pytest.raises(DisallowedByRobots):
        session.get(PAGE)


# --- respx ----------------------------------------------------------------------------------


def test_respx_with_a_robots_txt(client: httpx.Client) -> None:
    with respx.mock as mock:
        mock.get(ROBOTS).respond(text="User-agent: *\nDisallow: /private\n")
        mock.get(PAGE).respond(text="mocked")
        assert client.get(PAGE).text == "mocked"
        with pytest.raises(DisallowedByRobots):
            client.get(f"{ORIGIN}/private")


@respx.mock
def test_respx_without_one_fails_and_says_what_to_do(client: httpx.Client) -> None:
    respx.get(PAGE)
    with pytest.raises(AssertionError) as failed:
        client.get(PAGE)
    assert names_the_switch(failed.value)
    # What failed is over: the next request is not kept waiting.
    with assume_allowed():
        assert client.get(PAGE).is_success


@respx.mock
def test_respx_without_one_async(store: MemoryStore) -> None:
    respx.get(PAGE).respond(text="mocked")

    async def ask() -> str:
        async with httpx.AsyncClient(transport=AsyncPoliteTransport(store=store)) as client:
            return (await client.get(PAGE)).text

    with pytest.raises(AssertionError) as failed:
        asyncio.run(ask())
    assert names_the_switch(failed.value)
    assert asyncio.run(assume_allowed()(ask)()) == "mocked"


@respx.mock(using="httpx")
def test_respx_in_front_of_our_transport(
    client: httpx.Client, respx_mock: respx.MockRouter
) -> None:
    respx_mock.get(PAGE).respond(text="mocked")
    assert client.get(PAGE).text == "mocked"


# --- pytest-httpx ---------------------------------------------------------------------------


def test_pytest_httpx_with_a_robots_txt(httpx_mock: HTTPXMock, client: httpx.Client) -> None:
    httpx_mock.add_response(url=ROBOTS, text="User-agent: *\nDisallow: /private\n")
    httpx_mock.add_response(url=PAGE, text="mocked")
    assert client.get(PAGE).text == "mocked"
    with pytest.raises(DisallowedByRobots):
        client.get(f"{ORIGIN}/private")


@pytest.mark.httpx_mock(
    assert_all_requests_were_expected=False, assert_all_responses_were_requested=False
)
def test_pytest_httpx_without_one_fails_and_says_what_to_do(
    httpx_mock: HTTPXMock, client: httpx.Client
) -> None:
    httpx_mock.add_response(url=PAGE, text="mocked")
    with pytest.raises(httpx.TimeoutException) as failed:
        client.get(PAGE)
    assert names_the_switch(failed.value)
    with assume_allowed():
        assert client.get(PAGE).text == "mocked"


# --- mocks of httpx itself ------------------------------------------------------------------


def test_a_mock_transport_is_a_site_like_any_other(store: MemoryStore) -> None:
    asked: list[str] = []

    def answer(request: httpx.Request) -> httpx.Response:
        asked.append(request.url.path)
        return httpx.Response(200, text="User-agent: *\nDisallow: /private\n")

    transport = PoliteTransport(httpx.MockTransport(answer), ua=UA, store=store)
    with httpx.Client(transport=transport) as client:
        client.get(PAGE)
        with pytest.raises(DisallowedByRobots):
            client.get(f"{ORIGIN}/private")
    with politely(
        httpx.Client(transport=httpx.MockTransport(answer)), ua=UA, store=MemoryStore()
    ) as client:
        client.get(PAGE)
    assert asked == ["/robots.txt", "/page"] * 2


# --- assume_allowed -------------------------------------------------------------------------


def test_within_it_nothing_is_fetched_checked_or_waited_for(
    site: Start, session: PoliteSession, client: httpx.Client, store: MemoryStore
) -> None:
    place = site(NO_ENTRY)
    manager = PolitePoolManager(ua=UA, store=store)
    with assume_allowed():
        polite = session.get(place.url("/1")).polite  # type: ignore[attr-defined]
        assert (polite.allowed, polite.reason, polite.user_agent) == (True, Reason.ASSUMED, UA)
        assert "assumes" in str(polite)
        client.get(place.url("/2"))
        assert manager.request("GET", place.url("/3")).polite.allowed  # type: ignore[attr-defined]
        assert session.check(place.url("/4")).allowed
        with install(ua=UA, store=store):
            requests.get(place.url("/5"), timeout=5)
    assert place.targets() == ["/1", "/2", "/3", "/5"]
    manager.clear()


def test_it_does_not_leak(site: Start, session: PoliteSession) -> None:
    place = site(NO_ENTRY)

    def is_refused() -> None:
        place.clear()
        with pytest.raises(DisallowedByRobots):
            session.get(place.url("/page"))
        assert "/page" not in place.targets()

    with assume_allowed():
        with assume_allowed():
            session.get(place.url("/page"))
        session.get(place.url("/page"))
    is_refused()
    with pytest.raises(ZeroDivisionError), assume_allowed():
        _ = 1 / 0
    is_refused()


def test_it_holds_in_threads_that_ran_before_and_ends_in_those_that_run_on(
    site: Start, session: PoliteSession
) -> None:
    place = site(NO_ENTRY)
    go, went, ended = threading.Event(), threading.Event(), threading.Event()
    outcomes: list[object] = []

    def ask() -> None:
        try:
            outcomes.append(session.get(place.url("/page")).status_code)
        except DisallowedByRobots as refused:
            outcomes.append(type(refused))

    def work() -> None:
        go.wait(10)
        ask()
        went.set()
        ended.wait(10)
        ask()

    worker = threading.Thread(target=work)
    worker.start()
    with assume_allowed():
        go.set()
        assert went.wait(10)
    ended.set()
    worker.join()
    assert outcomes[0] == 200
    assert issubclass(outcomes[1], DisallowedByRobots)  # type: ignore[arg-type]


def test_as_a_decorator_it_lasts_as_long_as_the_function(
    site: Start, session: PoliteSession, store: MemoryStore
) -> None:
    place = site(NO_ENTRY)
    transport = AsyncPoliteTransport(ua=UA, store=store)

    @assume_allowed()
    def blocking() -> bool:
        return session.check(place.url()).allowed

    @assume_allowed()
    async def awaited() -> bool:
        return (await transport.check(place.url())).allowed

    for _ in range(2):
        assert blocking()
        assert asyncio.run(awaited())
    assert blocking.__name__ == "blocking"
    assert not session.check(place.url()).allowed


def test_it_decorates_nothing_that_runs_on_by_itself() -> None:
    class Suite:
        pass

    def fixture() -> Iterator[None]:
        yield

    for decorated in (Suite, fixture):
        with pytest.raises(TypeError, match="use with"):
            assume_allowed()(decorated)
