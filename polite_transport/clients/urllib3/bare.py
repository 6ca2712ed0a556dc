"""Requests that come straight to a pool of urllib3, so that nobody of ours stands above it.

``install`` puts this around every pool; a polite pool manager hands out pools that do so.
"""

from functools import partial
from typing import Any

from urllib3 import HTTPConnectionPool, PoolManager, ProxyManager
from urllib3.response import BaseHTTPResponse

from polite_transport.clients.urllib3.errors import native
from polite_transport.clients.urllib3.exchange import host_in, with_decision, with_user_agent
from polite_transport.clients.urllib3.line import is_under_way, sent_url
from polite_transport.clients.urllib3.pools import Send, paced_request, paced_urlopen
from polite_transport.clients.urllib3.robots import get_robots
from polite_transport.clients.urllib3.ways import way_of_pool
from polite_transport.decision import Decision
from polite_transport.flow import Call
from polite_transport.robots.access import Reply
from polite_transport.sending.checked import send_checked
from polite_transport.sending.hand import IN_HAND, is_in_hand
from polite_transport.sending.local_sockets import is_local_socket
from polite_transport.steps import Fetch
from polite_transport.url import InvalidURL as UnreadableURL
from polite_transport.url import is_absolute, target
from polite_transport.visitor import Visitor, unreadable

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
    if is_under_way(pool, method, url):
        return paced_urlopen(layer, send, method, url, body, headers, *args, **kwargs)
    if is_local_socket(pool) or _refuses_by_itself(pool, url, *args, **kwargs):
        return send(method, url, body, headers, *args, **kwargs)
    absolute = sent_url(pool, url)
    try:
        where = target(absolute)
    except UnreadableURL:
        where = None  # refused further down, where the User-Agent is known
    if where is not None and is_in_hand(method, where):
        return paced_urlopen(layer, send, method, url, body, headers, *args, **kwargs)
    headers, sent = with_user_agent(who, absolute, pool.headers if headers is None else headers)
    try:
        call = who.call(method, absolute, sent, host_in(headers))
    except UnreadableURL as error:
        raise native(unreadable(error, method, absolute, sent)) from None
    if isinstance(call, Decision):
        return with_decision(send(method, url, body, headers, *args, **kwargs), call)
    above = _unsent()
    if above is not None and above.target.origin == call.target.origin:
        call.via = above.via  # the layer above has read robots.txt on this very way
    else:
        call.via = way_of_pool(pool, call.target)
    settings = {"timeout": pool.timeout, "retries": pool.retries, **kwargs}
    get = partial(_get_robots, who, original, pool, is_absolute(url), call, settings)
    paced = partial(paced_urlopen, layer, send, method, url, body, headers, *args, **kwargs)
    try:
        return with_decision(send_checked(call, who.store, get, paced, native), call.decision)
    finally:
        if above is not None:  # which has not waited for a turn itself
            above.waited += call.waited
            above.decision.waited = above.waited


def _unsent() -> Call | None:
    """Return what a layer above has checked and not sent: by another URL than stands here."""
    hand = IN_HAND.get()
    if hand is None or not hand.is_open or hand.call is None or hand.call.attempts:
        return None
    return hand.call


def _refuses_by_itself(
    pool: HTTPConnectionPool,
    url: str,
    retries: Any = None,  # noqa: ARG001 - stands before the one that is wanted
    redirect: bool = True,  # noqa: ARG001
    assert_same_host: bool = True,
    *_: Any,
    **__: Any,
) -> bool:
    """Whether urllib3 raises HostChangedError for this; the rest is as for its ``urlopen``."""
    return assert_same_host and not url.startswith("/") and not pool.is_same_host(url)


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
    absolute: bool,
    call: Call,
    settings: dict[str, Any],
    step: Fetch,
) -> Reply:
    """GET robots.txt through the pool itself; one that was moved elsewhere, through a new one.

    absolute: whether the page is asked for by its absolute URL, as proxies want it. Whoever answers
        that answers for robots.txt too.
    """

    def send(method: str, url: str, **kwargs: Any) -> BaseHTTPResponse:
        if step.target.origin != call.target.origin:
            kwargs["retries"] = False
            return _manager_like(pool).urlopen(method, url, **kwargs)
        where = url if absolute else step.target.path
        kwargs["assert_same_host"] = False  # the host of an absolute URL need not be the pool's
        return paced_urlopen(_LAYER, partial(original, pool), method, where, **kwargs)

    return get_robots(send, who.store, call, settings, step)


def _manager_like(pool: HTTPConnectionPool) -> PoolManager:
    """Return a manager for other hosts, through the same proxy."""
    if pool.proxy is None:
        return PoolManager()
    config = pool.proxy_config
    context = None if config is None else config.ssl_context
    headers: Any = pool.proxy_headers
    return ProxyManager(pool.proxy.url, proxy_headers=headers, proxy_ssl_context=context)
