"""What scripts do with sessions, adapters and responses, and can go on doing."""

import copy
import pickle
from collections.abc import Callable, Iterator

import httpx
import pytest
import requests
from requests.adapters import BaseAdapter, HTTPAdapter

from polite_transport import (
    DisallowedByRobots,
    MemoryStore,
    PoliteAdapter,
    PoliteSession,
    PoliteTransport,
)
from polite_transport.testing import Site

from .faces import UA

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
