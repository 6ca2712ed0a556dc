"""``politely``: one client that exists already.

Its transports, pools, proxies, retries and TLS settings stay the objects that they are. Every
touch of what httpx does not call public stands here: ``Client._transport``, ``Client._mounts``.
"""

from typing import Any, TypeVar

import httpx
import requests
import urllib3

from polite_transport.clients.httpx import AsyncPoliteTransport, PoliteTransport
from polite_transport.clients.requests import make_session_polite
from polite_transport.clients.urllib3 import make_manager_polite
from polite_transport.policy import Policy
from polite_transport.stores.base import Store
from polite_transport.visitor import visitor

C = TypeVar("C", requests.Session, httpx.Client, httpx.AsyncClient, urllib3.PoolManager)


def politely(
    client: C, *, ua: str | None = None, policy: Policy | None = None, store: Store | None = None
) -> C:
    """Make an existing client polite, and return it.

    client: a requests.Session, httpx.Client, httpx.AsyncClient or urllib3.PoolManager.
    ua, policy, store: as for ``PoliteSession``. A client that is polite already takes these on
        where one is given, and else stays as it is.

    This covers what ``httpx.Client(transport=…)`` cannot: clients made with proxy= or mounts=.
    Raises TypeError for anything else; ValueError as ``PoliteSession`` does.
    """
    who = visitor(ua, policy, store)
    anew = not (ua is None and policy is None and store is None)
    found: Any = client
    if isinstance(found, requests.Session):
        make_session_polite(found, who, anew=anew)
    elif isinstance(found, urllib3.PoolManager):
        make_manager_polite(found, who, anew=anew)
    elif isinstance(found, httpx.Client):
        _wrap_transports(found, PoliteTransport, ua, policy, store, anew=anew)
    elif isinstance(found, httpx.AsyncClient):
        _wrap_transports(found, AsyncPoliteTransport, ua, policy, store, anew=anew)
    else:
        raise TypeError(
            f"politely() takes a requests.Session, an httpx.Client or AsyncClient, or a "
            f"urllib3.PoolManager, not {type(client).__name__}"
        )
    return client


def _wrap_transports(
    client: Any,
    polite: type[PoliteTransport] | type[AsyncPoliteTransport],
    ua: str | None,
    policy: Policy | None,
    store: Store | None,
    *,
    anew: bool,
) -> None:
    wrapped: dict[int, Any] = {}  # one transport may be mounted twice

    def wrap(transport: Any) -> Any:
        if transport is None:  # a mount that goes through the client's own transport
            return None
        if isinstance(transport, polite):
            if anew:
                transport.visitor = visitor(ua, policy, store)
            return transport
        if id(transport) not in wrapped:
            wrapped[id(transport)] = polite(transport, ua=ua, policy=policy, store=store)
        return wrapped[id(transport)]

    client._transport = wrap(client._transport)  # noqa: SLF001 - see the module
    client._mounts = {  # noqa: SLF001
        pattern: wrap(transport)
        for pattern, transport in client._mounts.items()  # noqa: SLF001
    }
