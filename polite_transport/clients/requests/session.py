"""``PoliteSession``: a requests session, every adapter of which is polite."""

from typing import Any

import requests
from requests.adapters import BaseAdapter

from polite_transport.clients.requests.adapter import polite_adapter
from polite_transport.decision import Decision
from polite_transport.policy import Policy
from polite_transport.stores.base import Store
from polite_transport.visitor import visitor


class PoliteSession(requests.Session):
    """A requests session that keeps robots.txt and each host's Crawl-delay.

    ua: the User-Agent to send, such as ``"MyBot/1.0 (+https://example.org/bot)"``, whatever the
        script sets; None = what each request carries.
    policy: how polite to be.
    store: where turns and robots.txt copies live; None = this process's own.

    Adapters mounted later stay polite: ``mount`` makes them so.
    Requests raise, beside what requests raises, DisallowedByRobots, RobotsUnreachable,
    WaitTooLong, StoreUnavailable; all are requests.RequestException too.
    """

    __attrs__ = [*requests.Session.__attrs__, "visitor"]  # noqa: RUF012 - as requests declares it

    def __init__(
        self,
        *,
        ua: str | None = None,
        policy: Policy | None = None,
        store: Store | None = None,
    ) -> None:
        self.visitor = visitor(ua, policy, store)  # before requests mounts its adapters
        super().__init__()

    def mount(self, prefix: str | bytes, adapter: BaseAdapter) -> None:
        """Mount an adapter, made polite. It stays the same object where it is an HTTPAdapter."""
        super().mount(prefix, polite_adapter(adapter, self.visitor))

    def check(self, url: str, method: str = "GET") -> Decision:
        """Return what would be decided about a request to ``url``, without sending it.

        Raises what requests raises where robots.txt gets no answer; WaitTooLong.
        """
        request = self.prepare_request(requests.Request(method, url))
        settings = self.merge_environment_settings(request.url, {}, None, None, None)
        adapter: Any = self.get_adapter(str(request.url))
        decision: Decision = adapter.check(request, **settings)
        return decision
