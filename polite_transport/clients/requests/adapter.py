"""Adapters of requests that check what they send.

``HTTPAdapter.send`` sees every redirect hop; urllib3's pool beneath it sees every attempt, and
that is where turns are taken.
"""

from collections.abc import Callable, Mapping
from functools import cache, partial
from typing import Any

import requests
from requests.adapters import BaseAdapter, HTTPAdapter
from requests.exceptions import InvalidURL
from requests.models import PreparedRequest, Response
from requests.utils import select_proxy
from urllib3 import ProxyManager
from urllib3.util import SKIP_HEADER

from polite_transport.clients.requests.errors import native_for
from polite_transport.clients.requests.response import with_decision
from polite_transport.clients.requests.robots import get_robots, has_content
from polite_transport.clients.urllib3.exchange import URLLIB3_UA, host_in
from polite_transport.clients.urllib3.manager import make_manager_polite
from polite_transport.decision import Decision
from polite_transport.flow import UNANSWERED, Call, answered
from polite_transport.policy import Policy
from polite_transport.sending.body_end import leave_at_end
from polite_transport.sending.checked import decided, send_checked
from polite_transport.sending.hand import IN_HAND, is_in_hand
from polite_transport.stores.base import Store
from polite_transport.url import InvalidURL as UnreadableURL
from polite_transport.url import target
from polite_transport.visitor import Visitor, unreadable, visitor, way


class _Checking(BaseAdapter):
    """What every polite adapter does around the send of the one beneath it."""

    visitor: Visitor

    def _decided(
        self, send: Callable[..., Response], request: PreparedRequest, settings: dict[str, Any]
    ) -> Decision:
        call = _call(self.visitor, request)
        if isinstance(call, Decision):
            return call
        call.via = _way(request, settings)
        store = self.visitor.store
        get = partial(get_robots, send, call, settings, store)
        return decided(call, store, get, partial(native_for, request))


class PoliteSending(_Checking, HTTPAdapter):
    """What is mixed into an adapter class: its requests are checked, and paced at its pools."""

    def init_poolmanager(self, *args: Any, **kwargs: Any) -> None:
        """Make the pools polite, at first and after unpickling."""
        super().init_poolmanager(*args, **kwargs)
        make_manager_polite(self.poolmanager, self.visitor, anew=True)

    def proxy_manager_for(self, *args: Any, **kwargs: Any) -> ProxyManager:
        """Make a proxy's pools polite too."""
        manager: ProxyManager = super().proxy_manager_for(*args, **kwargs)
        make_manager_polite(manager, self.visitor, anew=False)
        return manager

    def send(
        self,
        request: PreparedRequest,
        stream: bool = False,
        timeout: Any = None,
        verify: Any = True,
        cert: Any = None,
        proxies: Mapping[str, str] | None = None,
    ) -> Response:
        """Check one request, send it, and put the Decision on its response as ``polite``.

        Raises DisallowedByRobots, RobotsUnreachable, WaitTooLong, StoreUnavailable, InvalidURL,
        each also a requests.RequestException; and what requests itself raises.
        """
        settings = {
            "stream": stream,
            "timeout": timeout,
            "verify": verify,
            "cert": cert,
            "proxies": proxies,
        }
        return send_politely(self.visitor, super().send, request, settings)

    def check(self, request: PreparedRequest, **settings: Any) -> Decision:
        """Return what would be decided about a request, without sending it.

        settings: as for ``send``; robots.txt is read through them where no copy of it counts.
        Raises what requests raises where robots.txt gets no answer; WaitTooLong.
        """
        return self._decided(super().send, request, settings)

    def __getstate__(self) -> dict[str, Any]:
        state: Any = super().__getstate__()
        return {**state, "visitor": self.visitor}


class PoliteAdapter(PoliteSending):
    """A requests adapter that keeps robots.txt and paces every attempt.

    ua: the User-Agent to send, whatever the script sets; None = what each request carries.
    policy: how polite to be.
    store: where turns and robots.txt copies live; None = this process's own.
    adapter_options: of ``requests.adapters.HTTPAdapter``, such as max_retries.

    Raises ValueError as ``PoliteSession`` does.
    """

    def __init__(
        self,
        *,
        ua: str | None = None,
        policy: Policy | None = None,
        store: Store | None = None,
        **adapter_options: Any,
    ) -> None:
        self.visitor = visitor(ua, policy, store)
        super().__init__(**adapter_options)


class _PoliteOver(_Checking):
    """An adapter over one that is no HTTPAdapter, so that its attempts cannot be seen.

    Each of its sends takes one turn. Where it sends through what is polite itself, that one goes on
    with the turn, and takes another for each further attempt.
    """

    def __init__(self, inner: BaseAdapter, visitor: Visitor) -> None:
        super().__init__()
        self.inner = inner
        self.visitor = visitor

    def send(self, request: PreparedRequest, *arguments: Any, **settings: Any) -> Response:
        """Check one request and send it in its turn."""
        named = dict(zip(_SEND_ARGUMENTS, arguments, strict=False))
        response = send_politely(self.visitor, self._paced, request, {**named, **settings})
        response.connection = self  # type: ignore[assignment] # where digest auth sends its second leg
        return response

    def check(self, request: PreparedRequest, **settings: Any) -> Decision:
        """Return what would be decided about a request, without sending it."""
        return self._decided(self._paced, request, settings)

    def _paced(self, request: PreparedRequest, **settings: Any) -> Response:
        hand, where = IN_HAND.get(), target(str(request.url))
        if hand is None or where is None or not hand.carries(_method(request), where, request):
            return self.inner.send(request, **settings)
        if not hand.target.path.isprintable():
            # urlsplit drops some of these characters; what this adapter does cannot be seen.
            raise InvalidURL(f"{hand.target.url!r} can be read in two ways", request=request)
        if not hand.is_paced_by(self):
            return self.inner.send(request, **settings)
        hand.leave(UNANSWERED)  # of an attempt before: the adapter comes here again by itself
        hand.lend()
        attempt = UNANSWERED
        try:
            response = self.inner.send(request, **settings)
            if hand.is_paced_by(self):
                attempt = answered(response.status_code, response.headers)
                from_body = hand.call is not None and hand.call.policy.pace_from == "body"
                if from_body and not has_content(response):
                    leave_at_end(response.raw, hand, attempt)
                else:
                    hand.leave(attempt)
        except BaseException:
            hand.leave(attempt)
            raise
        return response

    def close(self) -> None:
        """Close the adapter beneath."""
        self.inner.close()


_SEND_ARGUMENTS = ("stream", "timeout", "verify", "cert", "proxies")


def send_politely(
    who: Visitor,
    send: Callable[..., Response],
    request: PreparedRequest,
    settings: dict[str, Any],
) -> Response:
    """Check one request, let ``send`` send it, and put the Decision on its response.

    send: an adapter's own, with its pools paced. settings: its other arguments, by name.
    """
    call = _call(who, request)
    if isinstance(call, Decision):
        return with_decision(send(request, **settings), call, 0.0)
    if is_in_hand(call.method, call.target, request):
        return send(request, **settings)
    call.via = _way(request, settings)
    get = partial(get_robots, send, call, settings, who.store)
    native = partial(native_for, request)
    response = send_checked(
        call, who.store, get, partial(send, request, **settings), native, request=request
    )
    return with_decision(response, call.decision, call.waited)


def _way(request: PreparedRequest, settings: dict[str, Any]) -> str:
    proxies = settings.get("proxies")
    proxy = select_proxy(str(request.url), proxies) if proxies else None
    return way(verified=settings.get("verify") is not False, proxy=proxy)


def polite_adapter(adapter: BaseAdapter, who: Visitor, *, anew: bool = False) -> BaseAdapter:
    """Make an adapter polite.

    An HTTPAdapter stays the object that it is, with its pools, retries and proxies, and gets a
    class of its own. Any other is wrapped.

    anew: whether one that is polite already takes on this visitor.
    """
    if isinstance(adapter, _Checking):
        if anew:
            adapter.visitor = who
            _make_managers_polite(adapter, who)
        return adapter
    if not isinstance(adapter, HTTPAdapter):
        return _PoliteOver(adapter, who)
    polite: Any = adapter
    adapter_class: Any = type(adapter)
    polite.__class__ = _polite_class(adapter_class)
    polite.visitor = who
    _make_managers_polite(adapter, who)
    return adapter


def _make_managers_polite(adapter: BaseAdapter, who: Visitor) -> None:
    if isinstance(adapter, HTTPAdapter):
        for manager in (adapter.poolmanager, *adapter.proxy_manager.values()):
            make_manager_polite(manager, who, anew=True)


# Adapters that answer from a cache, and reach the wire through HTTPAdapter.send alone. Politeness
# goes beneath these: a hit needs no robots.txt. Of others it is not known how they send.
_CACHES = {("cachecontrol", "CacheControlAdapter"), ("hishel", "CacheAdapter")}


def _is_cache(adapter_class: Any) -> bool:
    classes = ((each.__module__.partition(".")[0], each.__name__) for each in adapter_class.__mro__)
    return not _CACHES.isdisjoint(classes)


@cache
def _polite_class(adapter_class: Any) -> type[HTTPAdapter]:
    def reduce(self: PoliteSending) -> tuple[Any, ...]:
        return _unpickled, (adapter_class,), self.__getstate__()

    name = f"Polite{adapter_class.__name__}"
    bases = (PoliteSending, adapter_class)
    if _is_cache(adapter_class):
        bases = bases[::-1]
    return type(name, bases, {"__reduce__": reduce})


def _unpickled(adapter_class: Any) -> HTTPAdapter:
    polite: Any = _polite_class(adapter_class)
    unpickled: HTTPAdapter = polite.__new__(polite)
    return unpickled


def _call(visitor: Visitor, request: PreparedRequest) -> Call | Decision:
    """Return the call of a request, with the User-Agent written that it will be sent with."""
    headers: Any = request.headers
    sent = headers.get("User-Agent")
    method, url = _method(request), str(request.url)
    ua = visitor.instead_of(sent, url, chosen=sent not in (_REQUESTS_UA, SKIP_HEADER))
    if ua is not None:
        sent = headers["User-Agent"] = ua
    elif sent is None:
        # urllib3 would add this further down, unchecked.
        sent = headers["User-Agent"] = URLLIB3_UA
    elif sent == SKIP_HEADER:
        sent = None
    try:
        return visitor.call(method, url, sent, host_in(headers) if "Host" in headers else None)
    except UnreadableURL as error:
        raise native_for(request, unreadable(error, method, url, sent)) from None


def _method(request: PreparedRequest) -> str:
    return request.method or "GET"


_REQUESTS_UA = requests.utils.default_user_agent()
