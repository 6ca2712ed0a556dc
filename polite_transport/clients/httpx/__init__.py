"""httpx: ``PoliteTransport`` and ``AsyncPoliteTransport``."""

from polite_transport.clients.httpx.beneath import transports_beneath
from polite_transport.clients.httpx.sending import send_politely, send_politely_async
from polite_transport.clients.httpx.transport import AsyncPoliteTransport, PoliteTransport
from polite_transport.clients.httpx.ways import way_of

__all__ = [
    "AsyncPoliteTransport",
    "PoliteTransport",
    "send_politely",
    "send_politely_async",
    "transports_beneath",
    "way_of",
]
