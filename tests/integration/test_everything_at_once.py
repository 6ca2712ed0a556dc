"""One host, and all that may come to it at once; the site's log is the judge."""

import threading
from collections.abc import Callable

import anyio
import httpx
import requests
from requests.adapters import HTTPAdapter
from urllib3 import Retry

from polite_transport import (
    AsyncPoliteTransport,
    DisallowedByRobots,
    MemoryStore,
    Policy,
    PolitePoolManager,
    PoliteSession,
    PoliteTransport,
)
from polite_transport.testing import Site

UA = "MyBot/1.0 (+https://example.org/bot)"
DELAY = 0.2
ROBOTS = f"User-agent: *\nDisallow: /private\nCrawl-delay: {DELAY}\n"


def test_threads_loops_redirects_retries_and_drops_keep_one_delay(
    site: Callable[..., Site], store: MemoryStore
) -> None:
    place = site(ROBOTS, accept_jitter=(0.0, 0.03))
    refused: list[BaseException] = []
    failed: list[BaseException] = []

    def in_requests(number: int) -> None:
        with PoliteSession(ua=UA, store=store) as session:
            retry = Retry(total=3, status_forcelist=[503], allowed_methods=None)
            session.mount("http://", HTTPAdapter(max_retries=retry))
            session.get(place.url(f"/thread/{number}"))
            session.get(place.url(f"/redirect?to=/landed/{number}"))
            if number == 0:
                session.get(place.url("/flaky?key=retried&fails=2&status=503&retry_after=0"))
            if number == 1:
                session.get(place.url("/drop?key=dropped&fails=1"))
            try:
                session.get(place.url("/redirect?to=/private/page"))
            except requests.RequestException as error:
                refused.append(error)

    def in_httpx() -> None:
        with httpx.Client(transport=PoliteTransport(ua=UA, store=store)) as client:
            for number in range(3):
                client.get(place.url(f"/httpx/{number}"))
            try:
                client.get(place.url("/private/httpx"))
            except httpx.HTTPError as error:
                refused.append(error)

    def in_urllib3() -> None:
        pools = PolitePoolManager(ua=UA, store=store)
        for number in range(2):
            pools.request("GET", place.url(f"/urllib3/{number}"))

    def on_loop(backend: str) -> Callable[[], None]:
        async def main() -> None:
            async with httpx.AsyncClient(
                transport=AsyncPoliteTransport(ua=UA, store=store), follow_redirects=True
            ) as client:
                async with anyio.create_task_group() as tasks:
                    for number in range(4):
                        path = f"/redirect?to=/{backend}/{number}"
                        tasks.start_soon(client.get, place.url(path))
                try:
                    await client.get(place.url("/private/async"))
                except httpx.HTTPError as error:
                    refused.append(error)

        return lambda: anyio.run(main, backend=backend)

    def watched(act: Callable[[], None]) -> Callable[[], None]:
        def run() -> None:
            try:
                act()
            except BaseException as error:  # noqa: BLE001 - told by the assertion below
                failed.append(error)

        return run

    jobs: list[Callable[[], None]] = [lambda number=n: in_requests(number) for n in range(8)]  # type: ignore[misc]
    jobs += [in_httpx, in_urllib3, on_loop("asyncio"), on_loop("trio")]
    threads = [threading.Thread(target=watched(job)) for job in jobs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert failed == []
    assert all(isinstance(error, DisallowedByRobots) for error in refused)
    assert len(refused) == 8 + 1 + 2
    targets = place.targets()
    assert targets[0] == "/robots.txt"
    assert targets.count("/robots.txt") == 1
    assert not [target for target in targets if target.startswith("/private")]
    # 8 × (page, redirect, landing, redirect into the private part), 3 attempts, 2 attempts, …
    assert len(targets) == 1 + 8 * 4 + 3 + 2 + 3 + 2 + 2 * 4 * 2
    assert min(place.gaps()) >= DELAY


def test_a_thousand_hosts_keep_their_own_delays(
    site: Callable[..., Site], store: MemoryStore
) -> None:
    hosts = [f"127.0.{number // 250 + 1}.{number % 250 + 1}" for number in range(1_000)]
    delay = 1.0
    place = site(f"User-agent: *\nCrawl-delay: {delay}\n", addresses=tuple(hosts))

    async def main() -> None:
        # httpx looks through all idle connections at each request: none are kept.
        limits = httpx.Limits(max_connections=len(hosts), max_keepalive_connections=0)
        policy = Policy(robots_timeout=60)
        transport = AsyncPoliteTransport(ua=UA, store=store, policy=policy, limits=limits)
        async with httpx.AsyncClient(transport=transport, timeout=60) as client:

            async def visit(host: str) -> None:
                for number in range(2):
                    await client.get(place.url(f"/{number}", host))

            async with anyio.create_task_group() as tasks:
                for host in hosts:
                    tasks.start_soon(visit, host)

    anyio.run(main)
    log = place.log
    assert len(log) == 3 * len(hosts)
    assert min(place.gaps()) >= delay
    for host in hosts[::100]:
        assert place.targets(host) == ["/robots.txt", "/0", "/1"]
    # Side by side: one host after the other would take 2,000 delays.
    assert log[-1].time - log[0].time < 100 * delay
