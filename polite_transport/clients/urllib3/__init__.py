"""urllib3: ``PolitePoolManager`` and ``PoliteProxyManager``."""

from polite_transport.clients.urllib3.manager import PolitePoolManager, PoliteProxyManager

__all__ = ["PolitePoolManager", "PoliteProxyManager"]
