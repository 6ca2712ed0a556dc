"""Requests that come straight to a pool of urllib3, so that nobody of ours stands above it.

``install`` puts this around every pool; a polite pool manager hands out pools that do so.
"""

from functools import partial
from typing import Any

from urllib3 import HTTPConnectionPool, PoolManager
from urllib3.response import BaseHTTPResponse

from polite_transport.clients.urllib3.errors import native
from polite_transport.clients.urllib3.exchange import with_decision, with_user_agent
from polite_transport.clients.urllib3.pools import Send, paced_request, paced_urlopen
from polite_transport.clients.urllib3.robots import get_robots
from polite_transport.clients.urllib3.ways import way_of_pool
from polite_transport.decision import Decision
from polite_transport.flow import Call
from polite_transport.in_hand import is_in_hand, send_checked
from polite_transport.robots.access import Reply
from polite_transport.steps import Fetch
from polite_transport.url import target
from polite_transport.visitor import Visitor

_LAYER = object()


def pool_urlopen(who: Visitor, original: Send, *args: Any, **kwargs: Any) -> BaseHTTPResponse:
    """Do so for a pool of any class: what stands in the place of its ``urlopen``.

    original: the ``urlopen`` itself; the rest are its arguments, the pool first.
    """
    return check_at_pool(_LAYER, who, original, *args, **kwargs)


def check_at_pool(
    layer: object,
    who: Visitor,
    original: Send,
    pool: HTTPConnectionPool,
    method: str,
    url: str,
    body: Any = None,
    headers: Any = None,
    *args: Any,
    **kwargs: Any,
) -> BaseHTTPResponse:
    """Check a request, and let each attempt take its turn.

    layer: who asks, as for ``paced_urlopen``.
    original: the pool's own ``urlopen``; the rest are its arguments.
    """
    send = partial(original, pool)
    if _is_unix_socket(pool):
        return send(method, url, body, headers, *args, **kwargs)
    absolute = url if "://" in url else _origin(pool) + url
    where = target(absolute)
    if where is not None and is_in_hand(method, where):
        return paced_urlopen(layer, send, method, url, body, headers, *args, **kwargs)
    headers, sent = with_user_agent(who, pool.headers if headers is None else headers)
    call = who.call(method, absolute, sent)
    if isinstance(call, Decision):
        return with_decision(send(method, url, body, headers, *args, **kwargs), call)
    call.via = way_of_pool(pool)
    settings = {"timeout": pool.timeout, "retries": pool.retries, **kwargs}
    get = partial(_get_robots, who, original, pool, call, settings)
    paced = partial(paced_urlopen, layer, send, method, url, body, headers, *args, **kwargs)
    return with_decision(send_checked(call, who.store, get, paced, native), call.decision)


def pool_make_request(
    who: Visitor,  # noqa: ARG001 - as every patch is called
    original: Send,
    pool: HTTPConnectionPool,
    *args: Any,
    **kwargs: Any,
) -> BaseHTTPResponse:
    """Give an attempt's turn back as soon as its headers are in.

    original: the pool's own ``_make_request``; the rest are its arguments.
    """
    return paced_request(_LAYER, partial(original, pool), *args, **kwargs)


def _get_robots(
    who: Visitor,
    original: Send,
    pool: HTTPConnectionPool,
    call: Call,
    settings: dict[str, Any],
    step: Fetch,
) -> Reply:
    """GET robots.txt through the pool itself; one that was moved elsewhere, through a new one."""

    def send(method: str, url: str, **kwargs: Any) -> BaseHTTPResponse:
        if step.target.origin != call.target.origin:
            kwargs["retries"] = False
            return PoolManager().urlopen(method, url, **kwargs)
        where = step.target.path
        if pool.proxy is not None and pool.scheme == "http":
            where = url
            kwargs["assert_same_host"] = False  # the pool's own host is the proxy
        return paced_urlopen(_LAYER, partial(original, pool), method, where, **kwargs)

    return get_robots(send, who.store, call, settings, step)


def _origin(pool: HTTPConnectionPool) -> str:
    host = f"[{pool.host}]" if ":" in pool.host else pool.host
    return f"{pool.scheme}://{host}" + (f":{pool.port}" if pool.port else "")


def _is_unix_socket(pool: HTTPConnectionPool) -> bool:
    """Whether a pool goes to a unix socket, as those of requests-unixsocket and docker do.

    urllib3 has no such thing itself, so that only the names of those classes tell.
    """
    classes = (*type(pool).__mro__, *pool.ConnectionCls.__mro__)
    return any("unix" in each.__name__.lower() for each in classes)
