"""Every client behind one blocking face, so that what is promised for all is tested on all.

The asynchronous ones run in a thread with an event loop of their own: as many threads as like may
ask at once, and each request is a task there.
"""

import ssl
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, ExitStack
from typing import Any, NamedTuple, Protocol, Self

import httpx
import requests
import urllib3
from anyio.from_thread import BlockingPortal, start_blocking_portal

from polite_transport import (
    AsyncPoliteTransport,
    Decision,
    Policy,
    PolitePoolManager,
    PoliteSession,
    PoliteTransport,
)
from polite_transport.stores.base import Store

# Made once: reading the system's certificates for each client takes longer than most tests.
TLS = ssl.create_default_context()
UA = "MyBot/1.0 (+https://example.org/bot)"
PATIENCE = 30.0  # seconds, where a test does not ask for less


class Seen(NamedTuple):
    """A response as its client shows it. elapsed: seconds, None where the client measures none."""

    status: int
    body: bytes
    decision: Decision
    elapsed: float | None
    headers: Any


class Face(Protocol):
    """One polite client. native: the base of what it raises."""

    native: type[Exception]

    def send(
        self, method: str, url: str, *, headers: Any, timeout: float | None, follow: bool, body: Any
    ) -> Seen:
        """Send one request and read its response."""
        ...

    def check(self, url: str) -> Decision:
        """Ask without sending."""
        ...

    def close(self) -> None:
        """Close it."""
        ...


class InRequests:
    native: type[Exception] = requests.RequestException

    def __init__(self, who: dict[str, Any], **_: Any) -> None:
        self.client = PoliteSession(**who)

    def send(
        self, method: str, url: str, *, headers: Any, timeout: float | None, follow: bool, body: Any
    ) -> Seen:
        response = self.client.request(
            method, url, headers=headers, timeout=timeout, allow_redirects=follow, data=body
        )
        decision: Decision = response.polite  # type: ignore[attr-defined]
        seconds = response.elapsed.total_seconds()
        return Seen(response.status_code, response.content, decision, seconds, response.headers)

    def check(self, url: str) -> Decision:
        return self.client.check(url)

    def close(self) -> None:
        self.client.close()


class InUrllib3:
    native: type[Exception] = urllib3.exceptions.HTTPError

    def __init__(self, who: dict[str, Any], verify: Any = TLS, **_: Any) -> None:
        context = TLS if verify is True else verify
        self.client = PolitePoolManager(maxsize=10, ssl_context=context, **who)

    def send(
        self, method: str, url: str, *, headers: Any, timeout: float | None, follow: bool, body: Any
    ) -> Seen:
        response: Any = self.client.request(
            method,
            url,
            headers=headers,
            timeout=timeout,
            redirect=follow,
            body=body,
            # Its own ways of trying again are for the tests of attempts.
            retries=urllib3.Retry(connect=0, read=0, other=0, respect_retry_after_header=False),
        )
        return Seen(response.status, response.data, response.polite, None, response.headers)

    def check(self, url: str) -> Decision:
        return self.client.check(url)

    def close(self) -> None:
        self.client.clear()


class InHttpx:
    native: type[Exception] = httpx.HTTPError

    def __init__(self, who: dict[str, Any], **options: Any) -> None:
        self.transport = PoliteTransport(**who, **{"verify": TLS, **options})
        self.client = httpx.Client(transport=self.transport)

    def send(
        self, method: str, url: str, *, headers: Any, timeout: float | None, follow: bool, body: Any
    ) -> Seen:
        response = self.client.request(
            method, url, headers=headers, timeout=timeout, follow_redirects=follow, content=body
        )
        return _seen(response)

    def check(self, url: str) -> Decision:
        return self.transport.check(url)

    def close(self) -> None:
        self.client.close()


def _seen(response: httpx.Response) -> Seen:
    decision: Decision = response.extensions["polite"]
    seconds = response.elapsed.total_seconds()
    return Seen(response.status_code, response.content, decision, seconds, response.headers)


class OnLoop:
    """httpx.AsyncClient on one event loop."""

    native: type[Exception] = httpx.HTTPError
    backend: str

    def __init__(self, who: dict[str, Any], **options: Any) -> None:
        self.running = ExitStack()
        loop: AbstractContextManager[BlockingPortal] = start_blocking_portal(self.backend)
        self.portal = self.running.enter_context(loop)
        self.transport = AsyncPoliteTransport(**who, **{"verify": TLS, **options})
        self.client = httpx.AsyncClient(transport=self.transport)

    def send(
        self, method: str, url: str, *, headers: Any, timeout: float | None, follow: bool, body: Any
    ) -> Seen:
        async def request() -> Seen:
            response = await self.client.request(
                method, url, headers=headers, timeout=timeout, follow_redirects=follow, content=body
            )
            return _seen(response)

        seen: Seen = self.portal.call(request)
        return seen

    def check(self, url: str) -> Decision:
        decision: Decision = self.portal.call(self.transport.check, url)
        return decision

    def close(self) -> None:
        self.portal.call(self.client.aclose)
        self.running.close()


class OnAsyncio(OnLoop):
    backend = "asyncio"


class OnTrio(OnLoop):
    backend = "trio"


FACES: dict[str, Callable[..., Face]] = {
    "requests": InRequests,
    "urllib3": InUrllib3,
    "httpx": InHttpx,
    "asyncio": OnAsyncio,
    "trio": OnTrio,
}


class Visitor:
    """One polite client, as the tests use it."""

    def __init__(
        self, name: str, store: Store, policy: Policy, ua: str | None, options: dict[str, Any]
    ) -> None:
        self.name = name
        self.face = FACES[name]({"ua": ua, "policy": policy, "store": store}, **options)
        self.native = self.face.native

    def get(
        self,
        url: str,
        *,
        method: str = "GET",
        headers: Any = None,
        timeout: float | None = PATIENCE,
        follow: bool = True,
        body: Any = None,
    ) -> Seen:
        """Send one request and read its response."""
        return self.face.send(
            method, url, headers=headers, timeout=timeout, follow=follow, body=body
        )

    def get_all(self, urls: Iterable[str]) -> list[Seen]:
        """GET all at once: each in a thread, or in a task of the one event loop."""
        wanted = list(urls)
        with ThreadPoolExecutor(len(wanted)) as threads:
            return list(threads.map(self.get, wanted))

    def check(self, url: str) -> Decision:
        """Ask without sending."""
        return self.face.check(url)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.face.close()
