"""What a ready transport of httpx tells of its way to the sites.

Every touch of what httpx and httpcore do not call public stands here: ``HTTPTransport._pool``, and
a pool's ``_ssl_context``, ``_proxy``, ``_proxy_url``, ``_proxy_ssl_context`` and ``_uds``.
"""

from typing import Any

from polite_transport.visitor import verifies, way


def way_of(transport: object) -> str:
    """Name the way on which a transport reaches the sites, as ``Call.via`` has it."""
    pool = getattr(transport, "_pool", None)
    settings: dict[str, Any] = getattr(pool, "__dict__", {})
    if type(pool).__module__.partition(".")[0] != "httpcore" or "_ssl_context" not in settings:
        # A pool of someone else's may go through SOCKS; a transport without one may do anything.
        return way(verified=True, proxy=None, stranger=transport if pool is None else pool)
    proxy = settings.get("_proxy")  # of httpcore's own users; httpx makes pools with a _proxy_url
    url = settings.get("_proxy_url") if proxy is None else proxy.url
    proxy_tls = settings.get("_proxy_ssl_context") if proxy is None else proxy.ssl_context
    return way(
        verified=verifies(settings["_ssl_context"]) and verifies(proxy_tls),
        proxy=_socket(settings) if url is None else _text(url),
    )


def _socket(settings: dict[str, Any]) -> str | None:
    """Return a unix socket as if it were a proxy: it decides what answers, whatever the host."""
    place = settings.get("_uds")
    return None if place is None else f"unix://{place}"


def _text(url: Any) -> str:
    """Return scheme, host and port of a URL of httpcore."""
    host = url.host.decode("ascii")
    port = "" if url.port is None else f":{url.port}"
    return f"{url.scheme.decode('ascii')}://{f'[{host}]' if ':' in host else host}{port}"
