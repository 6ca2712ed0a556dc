"""Which httpx transport a URL goes through: directly, or through a proxy of the environment.

``httpx.Client(transport=…)`` switches the environment's proxies off; this keeps them.
"""

from collections.abc import Callable, Iterator
from typing import Generic, TypeVar
from urllib.request import getproxies, proxy_bypass

import httpx

from polite_transport.clients.httpx.ways import way_of

Transport = TypeVar("Transport", bound=httpx.BaseTransport | httpx.AsyncBaseTransport)


class Routes(Generic[Transport]):
    """The transports beneath a polite one, each with the name of its way to the sites.

    direct: for all that goes through no proxy of the environment.
    through: makes a transport through a proxy URL; None = the environment does not count.
    """

    def __init__(
        self, direct: Transport, through: Callable[[str], Transport] | None = None
    ) -> None:
        self._direct = direct, way_of(direct)
        self._through = through
        self._proxies = getproxies() if through is not None else {}
        self._proxied: dict[str, tuple[Transport, str]] = {}
        self._of_place: dict[tuple[str, str, int | None], tuple[Transport, str]] = {}

    def to(self, url: httpx.URL) -> tuple[Transport, str]:
        """Return the transport for a URL, and its way."""
        if not self._proxies:
            return self._direct
        place = (url.scheme, url.host, url.port)
        route = self._of_place.get(place)
        if route is None:
            route = self._of_place[place] = self._route(*place)
        return route

    def _route(self, scheme: str, host: str, port: int | None) -> tuple[Transport, str]:
        proxy = self._proxies.get(scheme) or self._proxies.get("all")
        if not proxy or self._through is None or proxy_bypass(f"{host}:{port}" if port else host):
            return self._direct
        if "://" not in proxy:
            proxy = f"http://{proxy}"
        if proxy not in self._proxied:
            made = self._through(proxy)
            # Of two threads that have made one, the first counts: the other one's was never used,
            # so that nothing of it is to be closed. A lock might be held when a process forks.
            return self._proxied.setdefault(proxy, (made, way_of(made)))
        return self._proxied[proxy]

    def __iter__(self) -> Iterator[Transport]:
        """All that may have connections, as of now: another thread may add one meanwhile."""
        return iter([self._direct[0], *(transport for transport, _ in self._proxied.values())])
