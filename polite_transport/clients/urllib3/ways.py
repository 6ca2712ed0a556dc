"""The way on which urllib3's pools and pool managers reach the sites, as ``Call.via`` has it."""

import ssl
from collections.abc import Mapping
from typing import Any

from urllib3 import HTTPConnectionPool, PoolManager
from urllib3.util.ssl_ import resolve_cert_reqs

from polite_transport.visitor import verifies, way


def way_of_pool(pool: HTTPConnectionPool) -> str:
    """Name the way of a pool."""
    return _way(pool.proxy, pool.proxy_config, {**pool.conn_kw, **vars(pool)})


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
