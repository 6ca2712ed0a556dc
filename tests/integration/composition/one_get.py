"""One GET through a client of its own, on a way to the site that is given.

With the CA that is trusted, or None for whoever answers; through a proxy, or directly.
"""

import asyncio
import ssl
from collections.abc import Callable
from typing import Any
from urllib.request import HTTPSHandler, ProxyHandler, Request, build_opener

import aiohttp
import httpx
import requests
import urllib3

from polite_transport import (
    AsyncPoliteTransport,
    MemoryStore,
    PoliteTransport,
    install,
    politely,
)

UA = "MyBot/1.0 (+https://example.org/bot)"
# (URL, store, path of the CA or None, proxy or None)
Get = Callable[[str, MemoryStore, str | None, str | None], None]


def verify(ca: str | None) -> ssl.SSLContext | bool:
    return ssl.create_default_context(cafile=ca) if ca else False


def politely_client(url: str, store: MemoryStore, ca: str | None, proxy: str | None) -> None:
    client = httpx.Client(verify=verify(ca), proxy=proxy, trust_env=False)
    with politely(client, ua=UA, store=store):
        client.get(url)


def politely_mounts(url: str, store: MemoryStore, ca: str | None, proxy: str | None) -> None:
    mounts = {"all://": httpx.HTTPTransport(verify=verify(ca), proxy=proxy)}
    with politely(httpx.Client(mounts=mounts), ua=UA, store=store) as client:
        client.get(url)


def politely_async(url: str, store: MemoryStore, ca: str | None, proxy: str | None) -> None:
    async def main() -> None:
        client = httpx.AsyncClient(verify=verify(ca), proxy=proxy, trust_env=False)
        async with politely(client, ua=UA, store=store):
            await client.get(url)

    asyncio.run(main())


def ready_transport(url: str, store: MemoryStore, ca: str | None, proxy: str | None) -> None:
    ready = httpx.HTTPTransport(verify=verify(ca), proxy=proxy)
    with httpx.Client(transport=PoliteTransport(ready, ua=UA, store=store)) as client:
        client.get(url)


def ready_async(url: str, store: MemoryStore, ca: str | None, proxy: str | None) -> None:
    async def main() -> None:
        ready = httpx.AsyncHTTPTransport(verify=verify(ca), proxy=proxy)
        polite = AsyncPoliteTransport(ready, ua=UA, store=store)
        async with httpx.AsyncClient(transport=polite) as client:
            await client.get(url)

    asyncio.run(main())


def transport_options(url: str, store: MemoryStore, ca: str | None, proxy: str | None) -> None:
    polite = PoliteTransport(ua=UA, store=store, verify=verify(ca), proxy=proxy, trust_env=False)
    with httpx.Client(transport=polite) as client:
        client.get(url)


def installed_httpx(url: str, store: MemoryStore, ca: str | None, proxy: str | None) -> None:
    with (
        install(ua=UA, store=store),
        httpx.Client(verify=verify(ca), proxy=proxy, trust_env=False) as client,
    ):
        client.get(url)


def installed_async(url: str, store: MemoryStore, ca: str | None, proxy: str | None) -> None:
    async def main() -> None:
        client = httpx.AsyncClient(verify=verify(ca), proxy=proxy, trust_env=False)
        async with client:
            await client.get(url)

    with install(ua=UA, store=store):
        asyncio.run(main())


def installed_urllib(url: str, store: MemoryStore, ca: str | None, proxy: str | None) -> None:
    context = ssl.create_default_context(cafile=ca)
    if ca is None:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    proxies = {} if proxy is None else {"http": proxy, "https": proxy}
    opener = build_opener(ProxyHandler(proxies), HTTPSHandler(context=context))
    with install(ua=UA, store=store), opener.open(url, timeout=10):
        pass


def installed_set_proxy(url: str, store: MemoryStore, ca: str | None, proxy: str | None) -> None:
    context = ssl.create_default_context(cafile=ca)
    context.check_hostname = ca is not None  # enough for anyone's certificate to pass
    if ca is None:
        context.verify_mode = ssl.CERT_NONE
    request = Request(url)
    if proxy is not None:
        request.set_proxy(proxy.removeprefix("http://"), "http")
    opener = build_opener(ProxyHandler({}), HTTPSHandler(context=context))
    with install(ua=UA, store=store), opener.open(request, timeout=10):
        pass


def installed_aiohttp(url: str, store: MemoryStore, ca: str | None, proxy: str | None) -> None:
    async def main() -> None:
        async with (
            aiohttp.ClientSession() as session,
            session.get(url, proxy=proxy, ssl=verify(ca)),
        ):
            pass

    with install(ua=UA, store=store):
        asyncio.run(main())


def installed_connector(url: str, store: MemoryStore, ca: str | None, proxy: str | None) -> None:
    async def main() -> None:
        connector = aiohttp.TCPConnector(ssl=verify(ca))
        async with (
            aiohttp.ClientSession(connector=connector, proxy=proxy) as session,
            session.get(url),
        ):
            pass

    with install(ua=UA, store=store):
        asyncio.run(main())


def politely_session(url: str, store: MemoryStore, ca: str | None, proxy: str | None) -> None:
    session = requests.Session()
    session.trust_env = False
    session.proxies = {} if proxy is None else {"all": proxy}
    session.verify = ca or False
    with politely(session, ua=UA, store=store):
        session.get(url)


def politely_manager(url: str, store: MemoryStore, ca: str | None, proxy: str | None) -> None:
    options: dict[str, Any] = {"ca_certs": ca} if ca else {"cert_reqs": "CERT_NONE"}
    bare = urllib3.ProxyManager(proxy, **options) if proxy else urllib3.PoolManager(**options)
    with politely(bare, ua=UA, store=store) as manager:
        manager.request("GET", url)


def installed_manager(url: str, store: MemoryStore, ca: str | None, proxy: str | None) -> None:
    options: dict[str, Any] = {"ca_certs": ca} if ca else {"cert_reqs": "CERT_NONE"}
    bare = urllib3.ProxyManager(proxy, **options) if proxy else urllib3.PoolManager(**options)
    with install(ua=UA, store=store), bare as manager:
        manager.request("GET", url)


def manager_context(url: str, store: MemoryStore, ca: str | None, proxy: str | None) -> None:
    context = ssl.create_default_context(cafile=ca)
    if ca is None:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    options: dict[str, Any] = {"ssl_context": context}
    bare = urllib3.ProxyManager(proxy, **options) if proxy else urllib3.PoolManager(**options)
    with politely(bare, ua=UA, store=store) as manager:
        manager.request("GET", url)


CLIENTS: list[Get] = [
    politely_client,
    politely_mounts,
    politely_async,
    ready_transport,
    ready_async,
    transport_options,
    installed_httpx,
    installed_async,
    installed_urllib,
    installed_set_proxy,
    installed_aiohttp,
    installed_connector,
    politely_session,
    politely_manager,
    installed_manager,
    manager_context,
]
