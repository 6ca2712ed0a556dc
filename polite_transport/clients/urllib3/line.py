"""What a pool of urllib3 puts into the request line.

It takes what begins with a slash for a path of its own origin, whatever stands further in, and
sends an absolute URL as it is, as proxies want it.
"""

from functools import lru_cache

from urllib3 import HTTPConnectionPool
from urllib3.exceptions import LocationParseError

from polite_transport.sending.hand import IN_HAND
from polite_transport.url import InvalidURL, is_absolute, presentable, target


def sent_url(pool: HTTPConnectionPool, url: str) -> str:
    """Return the absolute URL of what a pool sends for ``url``.

    Raises LocationParseError for what is neither a path nor an absolute http or https URL. urllib3
    would send ``private/x``, where it is told not to look at the host, with no slash before it: one
    server answers that with an error, and another as if the slash were there.
    """
    if url.startswith("/"):
        return origin_of(pool) + url
    if is_absolute(url):
        return url
    shown = presentable(url)
    raise LocationParseError(f"{shown!r}, neither a path nor an http(s) URL: nothing was sent")


def is_under_way(pool: HTTPConnectionPool, method: str, url: str) -> bool:
    """Whether a layer above has this very request in hand, as far as a glance can tell."""
    hand = IN_HAND.get()
    return (
        hand is not None
        and hand.is_open
        and not hand.on_wire
        and url == hand.target.path
        and method == hand.method
        and origin_of(pool) == hand.target.origin
    )


def origin_of(pool: HTTPConnectionPool) -> str:
    """Return the origin of a pool, spelt as in a Target; as it is where it cannot be read."""
    return _origin(pool.scheme, pool.host, pool.port)


@lru_cache(maxsize=4096)
def _origin(scheme: str | None, host: str, port: int | None) -> str:
    place = f"[{host}]" if ":" in host else host
    url = f"{scheme}://{place}" + (f":{port}" if port else "")
    try:
        where = target(url)
    except InvalidURL:
        return url
    return url if where is None else where.origin
