"""Which httpx transport a URL goes through: directly, or through a proxy of the environment.

``httpx.Client(transport=…)`` switches the environment's proxies off; this keeps them.
"""

from collections.abc import Callable, Iterator
from typing import Generic, TypeVar
from urllib.request import getproxies, proxy_bypass

import httpx

Transport = TypeVar("Transport", bound=httpx.BaseTransport | httpx.AsyncBaseTransport)


class Routes(Generic[Transport]):
    """The transports beneath a polite one.

    direct: for all that goes through no proxy of the environment.
    through: makes a transport through a proxy URL; None = the environment does not count.
    """

    def __init__(
        self, direct: Transport, through: Callable[[str], Transport] | None = None
    ) -> None:
        self._direct = direct
        self._through = through
        self._proxies = getproxies() if through is not None else {}
        self._proxied: dict[str, Transport] = {}
        self._of_place: dict[tuple[str, str, int | None], Transport] = {}

    def to(self, url: httpx.URL) -> Transport:
        """Return the transport for a URL."""
        if not self._proxies:
            return self._direct
        place = (url.scheme, url.host, url.port)
        transport = self._of_place.get(place)
        if transport is None:
            transport = self._of_place[place] = self._route(*place)
        return transport

    def _route(self, scheme: str, host: str, port: int | None) -> Transport:
        proxy = self._proxies.get(scheme) or self._proxies.get("all")
        if not proxy or self._through is None or proxy_bypass(f"{host}:{port}" if port else host):
            return self._direct
        if "://" not in proxy:
            proxy = f"http://{proxy}"
        if proxy not in self._proxied:
            self._proxied[proxy] = self._through(proxy)
        return self._proxied[proxy]

    def __iter__(self) -> Iterator[Transport]:
        yield self._direct
        yield from self._proxied.values()
