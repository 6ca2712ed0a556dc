"""Clients that exist already, made polite: each stays the object that it is, with its settings."""

import asyncio
import copy
import pickle
from collections.abc import Callable
from typing import Any

import httpx
import pytest
import requests
import urllib3
from requests.adapters import BaseAdapter, HTTPAdapter
from requests.auth import HTTPDigestAuth

from polite_transport import (
    DisallowedByRobots,
    MemoryStore,
    Policy,
    PolitePoolManager,
    PoliteSession,
    PoliteTransport,
    politely,
)
from polite_transport.testing import Site

UA = "MyBot/1.0 (+https://example.org/bot)"
OTHER = "OtherBot/2.0 (+https://example.org/other)"
DELAY = 0.06
ROBOTS = f"User-agent: *\nDisallow: /private\nCrawl-delay: {DELAY}\n"
Start = Callable[..., Site]

MAKE: list[Callable[[], Any]] = [requests.Session, httpx.Client, urllib3.PoolManager]


def is_polite(place: Site, client: Any) -> None:
    """Visit a site with a blocking client of any kind, and look at the site's log."""
    for number in range(2):
        client.request("GET", place.url(f"/{number}"))
    with pytest.raises(DisallowedByRobots):
        client.request("GET", place.url("/private/x"))
    assert place.targets() == ["/robots.txt", "/0", "/1"]
    assert min(place.gaps()) >= DELAY
    assert {each.headers["user-agent"] for each in place.log} == {UA}


@pytest.mark.parametrize("make", MAKE)
def test_it_returns_the_very_client(
    site: Start, store: MemoryStore, make: Callable[[], Any]
) -> None:
    place = site(ROBOTS)
    with make() as client:
        client.request("GET", place.url("/0"))  # with a connection that is open already
        place.clear()
        assert politely(client, ua=UA, store=store) is client
        assert isinstance(client, make)  # type: ignore[arg-type]
        is_polite(place, client)


@pytest.mark.parametrize("make", MAKE)
def test_twice_is_once(site: Start, store: MemoryStore, make: Callable[[], Any]) -> None:
    place = site(ROBOTS)
    with politely(make(), ua=UA, store=store) as client:
        kind = type(client)
        inside = getattr(client, "_transport", None)
        politely(politely(client))  # without options it stays as it is
        assert type(client) is kind
        assert getattr(client, "_transport", None) is inside
        is_polite(place, client)
        politely(client, ua=OTHER, store=store)  # with them it takes them on
        client.request("GET", place.url("/last"))
    assert place.log[-1].headers["user-agent"] == OTHER


def test_what_was_polite_from_the_start(site: Start, store: MemoryStore) -> None:
    for client in (
        PoliteSession(ua=OTHER),
        httpx.Client(transport=PoliteTransport(ua=OTHER)),
        PolitePoolManager(ua=OTHER),
    ):
        place = site(ROBOTS)
        made: Any = client
        kind = type(made)
        with politely(made, ua=UA, store=MemoryStore()):
            assert type(made) is kind
            is_polite(place, made)
    assert store is not None


@pytest.mark.parametrize("stranger", [object(), None, "https://example.org", requests, httpx.get])
def test_anything_else_is_a_type_error(stranger: Any) -> None:
    with pytest.raises(TypeError, match=r"a requests\.Session, an httpx\.Client or AsyncClient"):
        politely(stranger)


def test_options_that_make_no_sense_leave_the_client_as_it_was() -> None:
    for make in MAKE:
        client = make()
        before = dict(vars(client))
        with pytest.raises(ValueError, match="cannot be sent"):
            politely(client, ua="")
        assert type(client) is make
        assert vars(client) == before


# --- requests -------------------------------------------------------------------------------


class TimingAdapter(HTTPAdapter):
    """An adapter of the script's own, with a send of its own."""

    def send(self, request: Any, *args: Any, **kwargs: Any) -> requests.Response:
        request.headers["X-Timed"] = "yes"
        return super().send(request, *args, **kwargs)


def test_a_session_keeps_its_adapters_with_their_retries(site: Start, store: MemoryStore) -> None:
    place = site(ROBOTS)
    retries = urllib3.Retry(2, status_forcelist=[500], raise_on_status=False)
    adapter = TimingAdapter(max_retries=retries, pool_maxsize=3)
    session = requests.Session()
    session.mount("http://", adapter)
    session.headers["X-Own"] = "kept"
    session.cookies.set("name", "value")
    session.auth = HTTPDigestAuth("user", "password")
    session.verify = False
    with politely(session, ua=UA, store=store):
        assert session.get_adapter(place.url()) is adapter
        assert isinstance(adapter, TimingAdapter)
        assert session.get(place.url("/digest")).status_code == 200
        assert session.get(place.url("/flaky?fails=1&status=500")).status_code == 200
        seen = session.get(place.url("/echo")).json()["headers"]
        assert (seen["x-own"], seen["x-timed"], seen["cookie"]) == ("kept", "yes", "name=value")
        assert adapter.max_retries is retries
        assert adapter.poolmanager.connection_pool_kw["maxsize"] == 3
        assert session.verify is False
    assert place.targets()[0] == "/robots.txt"
    assert min(place.gaps()) >= DELAY


def test_a_session_of_ones_own_class(site: Start, store: MemoryStore) -> None:
    class Api(requests.Session):
        def __init__(self, base: str) -> None:
            super().__init__()
            self.base = base

        def request(self, method: Any, url: Any, *args: Any, **kwargs: Any) -> requests.Response:
            return super().request(method, self.base + str(url), *args, **kwargs)

    place = site(ROBOTS)
    with politely(Api(place.origin), ua=UA, store=store) as api:
        assert isinstance(api, Api)
        api.get("/page")
        with pytest.raises(DisallowedByRobots):
            api.get("/private")
    assert place.targets() == ["/robots.txt", "/page"]


def test_what_is_mounted_later_is_polite_too(site: Start, store: MemoryStore) -> None:
    place = site(ROBOTS)
    with politely(requests.Session(), ua=UA, store=store) as session:
        session.mount(place.origin, HTTPAdapter())
        is_polite(place, session)


def test_an_adapter_that_is_no_http_adapter(site: Start, store: MemoryStore) -> None:
    class Foreign(BaseAdapter):
        def __init__(self) -> None:
            super().__init__()
            self.inner = HTTPAdapter()

        def send(self, *args: Any, **kwargs: Any) -> requests.Response:
            return self.inner.send(*args, **kwargs)

        def close(self) -> None:
            self.inner.close()

    place = site(ROBOTS)
    session = requests.Session()
    session.mount("http://", Foreign())
    with politely(session, ua=UA, store=store):
        is_polite(place, session)


@pytest.mark.parametrize("clone", [copy.deepcopy, lambda it: pickle.loads(pickle.dumps(it))])
def test_a_copy_is_polite_too(
    site: Start, store: MemoryStore, clone: Callable[[requests.Session], requests.Session]
) -> None:
    place = site(ROBOTS)
    with politely(requests.Session(), ua=UA, store=store) as session, clone(session) as twin:
        is_polite(place, twin)


# --- httpx ----------------------------------------------------------------------------------


def test_a_client_keeps_what_it_was_made_with(site: Start, store: MemoryStore) -> None:
    place = site(ROBOTS)
    client = httpx.Client(
        base_url=place.origin,
        headers={"X-Own": "kept"},
        cookies={"name": "value"},
        params={"a": "1"},
        auth=("user", "password"),
        follow_redirects=True,
        timeout=3.0,
        max_redirects=2,
    )
    with politely(client, ua=UA, store=store):
        seen = client.get("/echo").json()
        assert seen["target"] == "/echo?a=1"
        assert seen["headers"]["x-own"] == "kept"
        assert seen["headers"]["cookie"] == "name=value"
        assert seen["headers"]["authorization"].startswith("Basic ")
        assert client.timeout == httpx.Timeout(3.0)
        with pytest.raises(DisallowedByRobots):
            client.get("/redirect", params={"to": "/private"})
    robots = place.log[0].headers
    assert not {"x-own", "cookie", "authorization"} & set(robots)
    assert min(place.gaps()) >= DELAY


def test_mounts_are_polite_and_none_stays_none(site: Start, store: MemoryStore) -> None:
    place, other = site(ROBOTS), site(ROBOTS, addresses=("127.0.0.2",))
    shared = httpx.HTTPTransport()
    client = httpx.Client(
        mounts={
            "http://127.0.0.1": shared,
            "all://127.0.0.1": shared,
            "http://127.0.0.2": httpx.HTTPTransport(local_address="127.0.0.3"),
            "http://127.0.0.4": None,
        }
    )
    with politely(client, ua=UA, store=store):
        is_polite(place, client)
        is_polite(other, client)
        mounted = list(client._mounts.values())
        assert mounted.count(None) == 1
        assert len({id(each) for each in mounted if each is not None}) == 2


def test_closing_the_client_closes_what_it_held(site: Start, store: MemoryStore) -> None:
    closed: list[str] = []

    class Watched(httpx.HTTPTransport):
        def close(self) -> None:
            closed.append("closed")
            super().close()

    place = site(ROBOTS)
    client = httpx.Client(transport=Watched(), mounts={"https://": Watched()})
    politely(client, ua=UA, store=store).get(place.url("/page"))
    client.close()
    assert closed == ["closed", "closed"]


def test_an_async_client(site: Start, store: MemoryStore) -> None:
    place, other = site(ROBOTS), site(ROBOTS, addresses=("127.0.0.2",))

    async def visit() -> None:
        mounts = {"http://127.0.0.2": httpx.AsyncHTTPTransport()}
        async with politely(httpx.AsyncClient(mounts=mounts), ua=UA, store=store) as client:
            politely(client)
            for start in (place, other):
                urls = [start.url(f"/{number}") for number in range(2)]
                await asyncio.gather(*map(client.get, urls))
                with pytest.raises(DisallowedByRobots):
                    await client.get(start.url("/private/x"))

    asyncio.run(visit())
    for start in (place, other):
        assert start.targets()[0] == "/robots.txt"
        assert sorted(start.targets()) == ["/0", "/1", "/robots.txt"]
        assert min(start.gaps()) >= DELAY


# --- all of them ----------------------------------------------------------------------------


def test_made_polite_they_are_one_robot(site: Start, store: MemoryStore) -> None:
    place = site(ROBOTS)
    clients = [politely(make(), ua=UA, store=store) for make in MAKE]
    for client in clients:
        with client:
            client.request("GET", place.url("/page"))
    assert place.targets() == ["/robots.txt", *["/page"] * 3]
    assert min(place.gaps()) >= DELAY


def test_a_policy_holds(site: Start, store: MemoryStore) -> None:
    place = site("")
    policy = Policy(min_delay=0.2)
    for make in MAKE:
        with politely(make(), ua=UA, store=store, policy=policy) as client:
            client.request("GET", place.url("/page"))
    assert min(place.gaps()) >= 0.2
