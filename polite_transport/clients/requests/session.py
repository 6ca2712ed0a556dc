"""``PoliteSession``: a requests session, every adapter of which is polite."""

from functools import cache
from typing import Any

import requests
from requests.adapters import BaseAdapter

from polite_transport.clients.requests.adapter import polite_adapter
from polite_transport.decision import Decision
from polite_transport.policy import Policy
from polite_transport.stores.base import Store
from polite_transport.visitor import Visitor, visitor


class PoliteMounting(requests.Session):
    """What is mixed into a session class: its adapters are polite, those mounted later too."""

    visitor: Visitor

    def mount(self, prefix: Any, adapter: BaseAdapter) -> None:
        """Mount an adapter, made polite. It stays the same object where it is an HTTPAdapter."""
        super().mount(prefix, polite_adapter(adapter, self.visitor))

    def check(self, url: str, method: str = "GET") -> Decision:
        """Return what would be decided about a request to ``url``, without sending it.

        Raises what requests raises where robots.txt gets no answer; WaitTooLong.
        """
        request = self.prepare_request(requests.Request(method, url))
        settings = self.merge_environment_settings(str(request.url), {}, None, None, None)
        adapter: Any = self.get_adapter(str(request.url))
        decision: Decision = adapter.check(request, **settings)
        return decision

    def __getstate__(self) -> dict[str, Any]:
        state: Any = super().__getstate__()
        return {**state, "visitor": self.visitor}


class PoliteSession(PoliteMounting):
    """A requests session that keeps robots.txt and each host's Crawl-delay.

    ua: the User-Agent to send, such as ``"MyBot/1.0 (+https://example.org/bot)"``, whatever the
        script sets; None = what each request carries.
    policy: how polite to be.
    store: where turns and robots.txt copies live; None = this process's own.

    Raises ValueError for an option of the wrong type, a ua that cannot be sent or does not hold the
    policy's product token, and a POLITE_STORE in the environment that names no store.
    Requests raise, beside what requests raises, DisallowedByRobots, RobotsUnreachable,
    WaitTooLong, StoreUnavailable, InvalidURL; all are requests.RequestException too. They raise
    ValueError for a User-Agent of their own that does not hold the policy's product token. Each
    response carries its Decision as ``response.polite``.
    """

    def __init__(
        self,
        *,
        ua: str | None = None,
        policy: Policy | None = None,
        store: Store | None = None,
    ) -> None:
        self.visitor = visitor(ua, policy, store)  # before requests mounts its adapters
        super().__init__()


def make_session_polite(session: requests.Session, who: Visitor, *, anew: bool) -> None:
    """Make a session and its adapters polite; they stay the objects that they are.

    anew: whether one that is polite already takes on this visitor.
    """
    polite: Any = session
    if not isinstance(session, PoliteMounting):
        session_class: Any = type(session)
        polite.__class__ = _polite_class(session_class)
    elif not anew:
        return
    polite.visitor = who
    for prefix, adapter in session.adapters.items():
        session.adapters[prefix] = polite_adapter(adapter, who, anew=anew)


@cache
def _polite_class(session_class: Any) -> type[requests.Session]:
    def reduce(self: PoliteMounting) -> tuple[Any, ...]:
        return _unpickled, (session_class,), self.__getstate__()

    name = session_class.__name__
    return type(name, (PoliteMounting, session_class), {"__reduce__": reduce})


def _unpickled(session_class: Any) -> requests.Session:
    polite: Any = _polite_class(session_class)
    unpickled: requests.Session = polite.__new__(polite)
    return unpickled
