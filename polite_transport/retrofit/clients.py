"""``politely``: one client that exists already.

Its transports, pools, proxies, retries and TLS settings stay the objects that they are. Every
touch of what httpx does not call public stands here: ``Client._transport``, ``Client._mounts``.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar

import httpx
import requests
import urllib3

from polite_transport.clients.httpx import (
    AsyncPoliteTransport,
    PoliteTransport,
    transports_beneath,
)
from polite_transport.clients.requests import make_session_polite
from polite_transport.clients.urllib3.manager import make_manager_polite
from polite_transport.policy import Policy
from polite_transport.stores.base import Store
from polite_transport.visitor import Visitor, visitor

C = TypeVar("C", requests.Session, httpx.Client, httpx.AsyncClient, urllib3.PoolManager)


def politely(
    client: C, *, ua: str | None = None, policy: Policy | None = None, store: Store | None = None
) -> C:
    """Make an existing client polite, and return it.

    client: a requests.Session, httpx.Client, httpx.AsyncClient or urllib3.PoolManager.
    ua, policy, store: as for ``PoliteSession``. A client that is polite already takes these on
        where one is given, and else stays as it is.

    This covers what ``httpx.Client(transport=…)`` cannot: clients made with proxy= or mounts=.
    Raises TypeError for any other client; ValueError as ``PoliteSession`` does. Requests raise what
    those of ``PoliteSession``, ``PoliteTransport`` and ``PolitePoolManager`` do.
    """
    who = visitor(ua, policy, store)
    anew = not (ua is None and policy is None and store is None)
    found: Any = client
    if isinstance(found, requests.Session):
        make_session_polite(found, who, anew=anew)
    elif isinstance(found, urllib3.PoolManager):
        make_manager_polite(found, who, anew=anew)
    elif isinstance(found, httpx.Client | httpx.AsyncClient):
        _wrap_transports(
            found, partial(_over, ua=ua, policy=policy, store=store), who if anew else None
        )
    else:
        raise TypeError(
            f"politely() takes a requests.Session, an httpx.Client or AsyncClient, or a "
            f"urllib3.PoolManager, not {type(client).__name__}"
        )
    return client


Polite = PoliteTransport | AsyncPoliteTransport


def _wrap_transports(
    client: httpx.Client | httpx.AsyncClient,
    over: Callable[[Any, bool], Polite],
    anew: Visitor | None,
) -> None:
    """Put a polite transport over each that opens connections.

    over: makes one over a transport, for asynchronous requests or not.
    anew: what those take on that are polite already; None = they stay as they are.
    """
    is_async = isinstance(client, httpx.AsyncClient)
    wrapped: dict[int, Any] = {}  # one transport may be mounted twice

    def wrap(transport: Any) -> Any:
        if transport is None:  # a mount that goes through the client's own transport
            return None
        if isinstance(transport, Polite):
            if anew is not None:
                transport.visitor = anew
            return transport
        beneath = transports_beneath(transport)
        for name, each in beneath.items():  # of a cache, or of one that retries
            setattr(transport, name, wrap(each))
        if beneath:
            return transport
        if id(transport) not in wrapped:
            wrapped[id(transport)] = over(transport, is_async)
        return wrapped[id(transport)]

    private: Any = client
    private._transport = wrap(private._transport)  # noqa: SLF001 - see the module
    private._mounts = {pattern: wrap(each) for pattern, each in private._mounts.items()}  # noqa: SLF001


def _over(
    transport: Any,
    is_async: bool,
    *,
    ua: str | None,
    policy: Policy | None,
    store: Store | None,
) -> Polite:
    # One that retries may hold a transport of each kind, and a mock is of both kinds.
    kind = httpx.AsyncBaseTransport if is_async else httpx.BaseTransport
    if isinstance(transport, kind) == is_async:
        return AsyncPoliteTransport(transport, ua=ua, policy=policy, store=store)
    return PoliteTransport(transport, ua=ua, policy=policy, store=store)
