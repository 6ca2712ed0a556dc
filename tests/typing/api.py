"""The public interface as its users write it, for mypy and pyright; nothing here is run."""

import ssl
from collections.abc import Iterable
from typing import assert_type

import httpx
import requests
import urllib3

import polite_transport
from polite_transport import (
    AsyncPoliteTransport,
    Decision,
    DisallowedByRobots,
    InvalidURL,
    MemoryStore,
    Policy,
    PoliteAdapter,
    PoliteError,
    PolitePoolManager,
    PoliteProxyManager,
    PoliteSession,
    PoliteTransport,
    RedisStore,
    RobotsUnreachable,
    SQLiteStore,
    StoreUnavailable,
    WaitTooLong,
    install,
    parse_robots,
    politely,
)
from polite_transport.decision import Reason
from polite_transport.errors import WaitReason
from polite_transport.robots import Robots, Rule, Verdict, product_token
from polite_transport.stores.base import Store

UA = "MyBot/1.0 (+https://example.org/bot)"
URL = "https://example.org/page"


def one_line_changed() -> None:
    assert_type(PoliteSession().get(URL), requests.Response)
    assert_type(httpx.Client(transport=PoliteTransport()).get(URL), httpx.Response)
    assert_type(PolitePoolManager().request("GET", URL), urllib3.BaseHTTPResponse)
    plain = requests.Session()
    plain.mount("https://", PoliteAdapter(ua=UA, max_retries=3, pool_block=True))


async def one_line_changed_async() -> None:
    async with httpx.AsyncClient(transport=AsyncPoliteTransport()) as client:
        assert_type(await client.get(URL), httpx.Response)


def every_client_takes_the_same_three(store: Store) -> None:
    policy = Policy(min_delay=1, max_wait=None, exempt_hosts=[".example.org"])
    PoliteSession(ua=UA, policy=policy, store=store)
    PoliteAdapter(ua=UA, policy=policy, store=store)
    PoliteTransport(ua=UA, policy=policy, store=store)
    AsyncPoliteTransport(ua=UA, policy=policy, store=store)
    PolitePoolManager(4, ua=UA, policy=policy, store=store, block=True)
    PoliteProxyManager("http://proxy.example:3128", ua=UA, policy=policy, store=store)


def every_store_is_one(servers: Iterable[str]) -> list[Store]:
    stores: list[Store] = [MemoryStore(), MemoryStore(copies_bytes=2**20), SQLiteStore("a.sqlite")]
    stores += [RedisStore(server) for server in servers]
    return stores


def what_httpx_transports_take() -> None:
    PoliteTransport(
        verify=ssl.create_default_context(),
        cert=("cert.pem", "key.pem"),
        trust_env=False,
        http1=True,
        http2=True,
        limits=httpx.Limits(max_connections=10),
        proxy=httpx.Proxy("http://proxy.example:3128"),
        uds=None,
        local_address="127.0.0.1",
        retries=2,
        socket_options=[],
    )
    PoliteTransport(httpx.HTTPTransport(), ua=UA)
    AsyncPoliteTransport(transport=httpx.AsyncHTTPTransport(), ua=UA)
    httpx.Client(mounts={"https://": PoliteTransport(proxy="http://proxy.example:3128")})


def policies() -> Policy:
    own = Policy(pace_from="body", on_unreachable="allow", robots_redirects="same-host")
    return Policy(
        max_delay=60,
        turn_limit=30.0,
        obey_disallow=False,
        obey_visit_time=True,
        on_forbidden="disallow",
        on_too_many_requests="allow",
        on_html="disallow",
        product_token="MyBot",
        overrides={"example.org": own},
        robots_ttl=3600,
        robots_max_bytes=512_000,
        robots_timeout=5,
    )


def asking_without_sending(session: PoliteSession, pools: PolitePoolManager) -> None:
    assert_type(session.check(URL), Decision)
    assert_type(session.check(URL, "POST"), Decision)
    assert_type(pools.check(URL), Decision)
    assert_type(PoliteTransport().check(httpx.URL(URL), user_agent=UA), Decision)


async def asking_without_sending_async(transport: AsyncPoliteTransport) -> Decision:
    return assert_type(await transport.check(URL), Decision)


def what_a_decision_says(decision: Decision) -> None:
    assert_type(decision.url, str)
    assert_type(decision.method, str)
    assert_type(decision.allowed, bool)
    assert_type(decision.reason, Reason)
    assert_type(decision.rule, Rule | None)
    assert_type(decision.product_token, str)
    assert_type(decision.user_agent, str)
    assert_type(decision.robots_url, str | None)
    assert_type(decision.robots_status, int | None)
    assert_type(decision.robots_fetched_at, float | None)
    assert_type(decision.robots_digest, str | None)
    assert_type(decision.delay, float)
    assert_type(decision.waited, float)
    if decision.group is not None:
        assert_type(str(decision.group), str)


def refusals(session: PoliteSession) -> float | None:
    try:
        session.get(URL)
    except DisallowedByRobots as error:
        assert_type(error.decision, Decision)
        return None
    except RobotsUnreachable as error:
        return assert_type(error.retry_in, float)
    except WaitTooLong as error:
        assert_type(error.why, WaitReason)
        assert_type(error.retry_in, float | None)
        return assert_type(error.wait, float)
    except StoreUnavailable as error:
        assert_type(error.decision, Decision)
    except InvalidURL as error:
        assert_type(error.cause, str)
    except PoliteError as error:
        assert_type(error.decision, Decision)
    except requests.RequestException:
        raise
    return 0.0


def existing_clients(manager: urllib3.PoolManager) -> None:
    assert_type(politely(requests.Session()), requests.Session)
    assert_type(politely(httpx.Client(proxy="http://proxy.example"), ua=UA), httpx.Client)
    assert_type(politely(httpx.AsyncClient(), policy=Policy()), httpx.AsyncClient)
    assert_type(politely(manager, store=MemoryStore()), urllib3.PoolManager)
    with install(ua=UA):
        requests.get(URL, timeout=10)


def the_engine_alone(body: bytes) -> None:
    robots = assert_type(parse_robots(body), Robots)
    verdict = assert_type(robots.check("/page?q=1", "MyBot"), Verdict)
    assert_type(verdict.allowed, bool)
    if verdict.rule is not None:
        assert_type(verdict.rule.allow, bool)
        assert_type(verdict.rule.pattern, str)
        assert_type(verdict.rule.line, int)
    assert_type(robots.crawl_delay("MyBot"), float | None)
    assert_type(robots.request_rate("MyBot"), float | None)
    assert_type(robots.sitemaps, tuple[str, ...])
    assert_type(product_token(UA), str)
    assert_type(polite_transport.parse_robots(b""), Robots)
