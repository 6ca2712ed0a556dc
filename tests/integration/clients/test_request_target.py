"""httpx's ``target`` extension: what stands in the request line is what is checked."""

from collections.abc import Callable
from typing import Any

import anyio
import httpx
import pytest

from polite_transport import (
    AsyncPoliteTransport,
    DisallowedByRobots,
    InvalidURL,
    MemoryStore,
    PoliteTransport,
)
from polite_transport.testing import Site

from .faces import UA

ROBOTS = "User-agent: *\nDisallow: /private\n"
Start = Callable[..., Site]


def send(kind: str, store: MemoryStore, method: str, url: str, target: object) -> httpx.Response:
    """Send one request with that request target."""
    extensions: dict[str, Any] = {"target": target}
    if kind == "sync":
        with httpx.Client(transport=PoliteTransport(ua=UA, store=store)) as client:
            return client.request(method, url, extensions=extensions)

    async def ask() -> httpx.Response:
        transport = AsyncPoliteTransport(ua=UA, store=store)
        async with httpx.AsyncClient(transport=transport) as async_client:
            return await async_client.request(method, url, extensions=extensions)

    return anyio.run(ask, backend=kind)


kinds = pytest.mark.parametrize("kind", ["sync", "asyncio", "trio"])


@kinds
@pytest.mark.parametrize(
    "target",
    [
        b"/private/x",
        "/private/x",
        b"/private?page=2",
        b"{origin}/private/x",
        b"HTTP://user@{host}:{port}/private/x",
        b"/%70rivate/x",
    ],
)
def test_a_disallowed_request_target_is_not_sent(
    site: Start, store: MemoryStore, kind: str, target: bytes | str
) -> None:
    place = site(ROBOTS)
    for name in ("origin", "host", "port"):
        value = str(getattr(place, name))
        if isinstance(target, bytes):
            target = target.replace(b"{%s}" % name.encode(), value.encode())
    with pytest.raises(DisallowedByRobots):
        send(kind, store, "GET", place.url("/open"), target)
    assert place.targets() == ["/robots.txt"]


@kinds
@pytest.mark.parametrize(
    "target",
    [
        b"http://other.example/open",  # the site may be a proxy, or keep other hosts' pages
        b"https://{host}/open",
        b"*",
        b"open",
        b"other.example:443",
        b"",
        b"/open page",
        b"/open#top",
        "/öffnen".encode(),
        "/öffnen",
        7,
    ],
)
def test_one_that_may_be_read_in_two_ways_is_not_sent(
    site: Start, store: MemoryStore, kind: str, target: object
) -> None:
    place = site(ROBOTS)
    if isinstance(target, bytes):
        target = target.replace(b"{host}", f"{place.host}:{place.port}".encode())
    with pytest.raises(InvalidURL, match="was not sent"):
        send(kind, store, "GET", place.url("/open"), target)
    assert place.targets() == []


@kinds
def test_an_allowed_one_goes_out_whatever_the_url_says(
    site: Start, store: MemoryStore, kind: str
) -> None:
    place = site(ROBOTS)
    absolute = place.url("/open?page=2")
    for target in ("/open?page=1", absolute):
        response = send(kind, store, "GET", place.url("/private"), target.encode())
        assert response.status_code == 200
        assert response.extensions["polite"].url == place.url(target.removeprefix(place.origin))
    assert place.targets() == ["/robots.txt", "/open?page=1", absolute]


@kinds
def test_the_asterisk_is_the_site_as_a_whole(site: Start, store: MemoryStore, kind: str) -> None:
    place, closed = site(ROBOTS), site("User-agent: *\nDisallow: /\n")
    send(kind, store, "OPTIONS", place.url("/private"), b"*")
    assert place.targets() == ["/robots.txt", "*"]
    with pytest.raises(DisallowedByRobots):
        send(kind, store, "OPTIONS", closed.url("/"), b"*")
    assert closed.targets() == ["/robots.txt"]


def test_a_transport_that_may_not_know_it_sends_nothing(site: Start, store: MemoryStore) -> None:
    class OfSomeoneElse(httpx.BaseTransport):
        """It goes by the URL alone."""

        def handle_request(self, request: httpx.Request) -> httpx.Response:
            return httpx.Response(200, text=httpx.get(request.url).text)

    place = site(ROBOTS)
    transport = PoliteTransport(OfSomeoneElse(), ua=UA, store=store)
    with httpx.Client(transport=transport) as client:
        with pytest.raises(InvalidURL, match="was not sent"):
            client.get(place.url("/private"), extensions={"target": b"/open"})
        assert place.targets() == []
        assert client.get(place.url("/open")).status_code == 200
