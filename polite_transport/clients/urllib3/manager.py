"""``PolitePoolManager``: a urllib3 pool manager that checks every redirect hop."""

from functools import cache, partial
from typing import Any

from urllib3 import HTTPConnectionPool, PoolManager, ProxyManager
from urllib3.response import BaseHTTPResponse

from polite_transport.clients.urllib3.bare import check_at_pool
from polite_transport.clients.urllib3.errors import native
from polite_transport.clients.urllib3.exchange import host_in, with_decision, with_user_agent
from polite_transport.clients.urllib3.pools import PolitePool, use_polite_pools
from polite_transport.clients.urllib3.robots import get_robots
from polite_transport.clients.urllib3.ways import way_of_manager
from polite_transport.decision import Decision
from polite_transport.flow import Call
from polite_transport.policy import Policy
from polite_transport.robots.access import Reply
from polite_transport.sending.checked import decided, send_checked
from polite_transport.sending.hand import is_in_hand
from polite_transport.steps import Fetch
from polite_transport.stores.base import Store
from polite_transport.url import InvalidURL as UnreadableURL
from polite_transport.visitor import Visitor, unreadable, visitor


class PoliteManaging(PoolManager):
    """What is mixed into a pool manager class."""

    visitor: Visitor

    def urlopen(  # type: ignore[override] # as PoolManager's own
        self, method: str, url: str, redirect: bool = True, **kw: Any
    ) -> BaseHTTPResponse:
        """Check one hop, send it, and put the Decision on its response as ``polite``.

        Raises DisallowedByRobots, RobotsUnreachable, WaitTooLong, StoreUnavailable, InvalidURL,
        each also a urllib3.exceptions.HTTPError; and what urllib3 itself raises.
        """
        headers, sent = with_user_agent(self.visitor, url, kw.get("headers", self.headers))
        kw["headers"] = headers
        try:
            call = self.visitor.call(method, url, sent, host_in(headers))
        except UnreadableURL as error:
            raise native(unreadable(error, method, url, sent)) from None
        send = partial(super().urlopen, method, url, redirect=redirect, **kw)
        if isinstance(call, Decision):
            return with_decision(send(), call)
        if is_in_hand(method, call.target):
            return send()
        call.via = way_of_manager(self)
        get = partial(self._get_robots, call, kw)
        response = send_checked(call, self.visitor.store, get, send, native)
        return with_decision(response, call.decision)

    def _new_pool(self, *args: Any, **kwargs: Any) -> HTTPConnectionPool:
        """Make a pool that checks what comes straight to it, around ``urlopen`` above."""
        pool = super()._new_pool(*args, **kwargs)
        if isinstance(pool, PolitePool):
            pool.checked = partial(check_at_pool, PolitePool, self.visitor)
        return pool

    def check(self, url: str, method: str = "GET") -> Decision:
        """Return what would be decided about a request to ``url``, without sending it.

        Raises what urllib3 raises where robots.txt gets no answer; WaitTooLong.
        """
        _, sent = with_user_agent(self.visitor, url, self.headers)
        try:
            call = self.visitor.call(method, url, sent)
        except UnreadableURL as error:
            raise native(unreadable(error, method, url, sent)) from None
        if isinstance(call, Decision):
            return call
        call.via = way_of_manager(self)
        return decided(call, self.visitor.store, partial(self._get_robots, call, {}), native)

    def _get_robots(self, call: Call, kw: dict[str, Any], step: Fetch) -> Reply:
        own = self.connection_pool_kw
        settings = {"timeout": own.get("timeout"), "retries": own.get("retries"), **kw}
        return get_robots(super().urlopen, self.visitor.store, call, settings, step)


class PolitePoolManager(PoliteManaging):
    """A urllib3 pool manager that keeps robots.txt and each host's Crawl-delay.

    ua: the User-Agent to send, such as ``"MyBot/1.0 (+https://example.org/bot)"``, whatever the
        script sets; None = what each request carries.
    policy: how polite to be.
    store: where turns and robots.txt copies live; None = this process's own.
    options: of ``urllib3.PoolManager``.

    Raises ValueError for an option of the wrong type, a ua that cannot be sent or does not hold the
    policy's product token, and a POLITE_STORE in the environment that names no store.
    Requests raise, beside what urllib3 raises, DisallowedByRobots, RobotsUnreachable, WaitTooLong,
    StoreUnavailable, InvalidURL; all are urllib3.exceptions.HTTPError too. They raise ValueError
    for a User-Agent of their own that does not hold the policy's product token. Each response
    carries its Decision as ``response.polite``.
    """

    def __init__(
        self,
        num_pools: int = 10,
        *,
        ua: str | None = None,
        policy: Policy | None = None,
        store: Store | None = None,
        **options: Any,
    ) -> None:
        self.visitor = visitor(ua, policy, store)
        super().__init__(num_pools, **options)
        use_polite_pools(self)


class PoliteProxyManager(PoliteManaging, ProxyManager):
    """``PolitePoolManager`` through a proxy; robots.txt is read through it too.

    proxy_url, options: of ``urllib3.ProxyManager``.

    Raises as ``PolitePoolManager`` does.
    """

    def __init__(
        self,
        proxy_url: str,
        *,
        ua: str | None = None,
        policy: Policy | None = None,
        store: Store | None = None,
        **options: Any,
    ) -> None:
        self.visitor = visitor(ua, policy, store)
        super().__init__(proxy_url, **options)
        use_polite_pools(self)


def make_manager_polite(manager: PoolManager, who: Visitor, *, anew: bool) -> None:
    """Make a pool manager polite; it stays the object that it is.

    anew: whether one that is polite already takes on this visitor.
    """
    polite: Any = manager
    if not isinstance(manager, PoliteManaging):
        manager_class: Any = type(manager)
        polite.__class__ = _polite_class(manager_class)
        use_polite_pools(manager)
    elif not anew:
        return
    else:
        manager.clear()  # its pools check for the visitor that was
    polite.visitor = who


@cache
def _polite_class(manager_class: Any) -> type[PoolManager]:
    return type(f"Polite{manager_class.__name__}", (PoliteManaging, manager_class), {})
