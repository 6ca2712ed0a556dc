"""Transports that stand on another transport: caches, retries, routers.

What such a one sends again, or somewhere else, a layer above it cannot see. So politeness goes
beneath it, directly on the transport that opens connections.
"""

from typing import Any

import httpx

_Any = httpx.BaseTransport | httpx.AsyncBaseTransport


def transports_beneath(transport: _Any) -> dict[str, _Any]:
    """Return the transports that one holds, by the attributes that hold them."""
    held: dict[str, Any] = getattr(transport, "__dict__", {})
    return {name: each for name, each in held.items() if isinstance(each, _Any)}


def refuse_wrapper(transport: _Any, polite: str) -> None:
    """Raise TypeError for a transport that stands on another.

    polite: the name of our class, for the message.
    """
    if transports_beneath(transport):
        name = type(transport).__name__
        raise TypeError(
            f"{name} stands on another transport, and what it sends again by itself would go out "
            f"unchecked and unpaced. Turn them round: {name} outside, standing on {polite}(). "
            "For a client that exists already, politely(client) does so."
        )
