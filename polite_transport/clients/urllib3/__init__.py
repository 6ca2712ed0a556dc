"""urllib3: ``PolitePoolManager`` and ``PoliteProxyManager``."""

from polite_transport.clients.urllib3.bare import pool_make_request, pool_urlopen
from polite_transport.clients.urllib3.manager import (
    PolitePoolManager,
    PoliteProxyManager,
    make_manager_polite,
)

__all__ = [
    "PolitePoolManager",
    "PoliteProxyManager",
    "make_manager_polite",
    "pool_make_request",
    "pool_urlopen",
]
