"""requests: ``PoliteSession`` and ``PoliteAdapter``."""

from polite_transport.clients.requests.adapter import PoliteAdapter, send_politely
from polite_transport.clients.requests.session import PoliteSession, make_session_polite

__all__ = ["PoliteAdapter", "PoliteSession", "make_session_polite", "send_politely"]
