"""The way on which urllib3's pools and pool managers reach the sites, as ``Call.via`` has it."""

import ssl
from collections.abc import Mapping
from typing import Any

from urllib3 import HTTPConnectionPool, PoolManager
from urllib3.util import parse_url
from urllib3.util.ssl_ import resolve_cert_reqs

from polite_transport.clients.urllib3.line import origin_of
from polite_transport.url import Target
from polite_transport.visitor import verifies, way


def way_of_pool(pool: HTTPConnectionPool, where: Target) -> str:
    """Name the way of a pool to ``where``.

    A pool that is asked for another origin, by an absolute URL, is one of a proxy.
    """
    proxy: Any = pool.proxy
    if proxy is None and where.origin != origin_of(pool):
        proxy = parse_url(origin_of(pool))
    # requests writes CERT_NONE on pools that go without TLS.
    options = {**pool.conn_kw, **vars(pool)} if pool.scheme == "https" else {}
    return _way(proxy, pool.proxy_config, options)


def way_of_manager(manager: PoolManager) -> str:
    """Name the way of a pool manager's pools."""
    return _way(manager.proxy, manager.proxy_config, manager.connection_pool_kw)


def _way(proxy: Any, config: Any, options: Mapping[str, Any]) -> str:
    """Name a way. options: of ``urllib3.PoolManager``. config: of the proxy."""
    verified = _verifies(options)
    if proxy is None:
        return "" if verified else way(verified=False, proxy=None)
    verified = verified and (config is None or verifies(config.ssl_context))
    return way(verified=verified, proxy=proxy.url)


def _verifies(options: Mapping[str, Any]) -> bool:
    required, context = options.get("cert_reqs"), options.get("ssl_context")
    # Names are matched by urllib3 itself where the context does not.
    if options.get("assert_hostname") is False:
        return False
    if required is None:
        return context is None or context.verify_mode is not ssl.CERT_NONE
    return resolve_cert_reqs(required) is not ssl.CERT_NONE
