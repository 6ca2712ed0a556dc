"""requests: ``PoliteSession`` and ``PoliteAdapter``."""

from polite_transport.clients.requests.adapter import PoliteAdapter, polite_adapter
from polite_transport.clients.requests.session import PoliteSession

__all__ = ["PoliteAdapter", "PoliteSession", "polite_adapter"]
