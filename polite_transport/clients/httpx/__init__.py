"""httpx: ``PoliteTransport`` and ``AsyncPoliteTransport``."""

from polite_transport.clients.httpx.transport import AsyncPoliteTransport, PoliteTransport

__all__ = ["AsyncPoliteTransport", "PoliteTransport"]
