"""Transports that stand on another transport: caches, retries, routers.

What such a one sends again, or somewhere else, a layer above it cannot see. So politeness goes
beneath it, directly on the transport that opens connections.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import httpx

_Any = httpx.BaseTransport | httpx.AsyncBaseTransport


def transports_beneath(transport: object) -> dict[str, _Any]:
    """Return the transports that one holds, by the attributes that hold them."""
    held: dict[str, Any] = getattr(transport, "__dict__", {})
    return {name: each for name, each in held.items() if isinstance(each, _Any)}


def opens_connections(send: Callable[..., object]) -> bool:
    """Whether what sends a request is one of httpx's own transports, which opens connections.

    send: bound to its transport, as a method or with ``partial``.
    """
    transport = send.args[0] if isinstance(send, partial) else getattr(send, "__self__", None)
    return isinstance(transport, httpx.HTTPTransport | httpx.AsyncHTTPTransport)


def refuse_unfit(transport: object, method: str, polite: str) -> None:
    """Raise TypeError for a transport that lacks a method, or that stands on another.

    method: by which ours sends. polite: the name of our class, for the message.
    """
    name = type(transport).__name__
    if not callable(getattr(transport, method, None)):
        raise TypeError(
            f"{polite} sends through {method}, which {name} does not have. PoliteTransport takes "
            "what httpx.Client does, AsyncPoliteTransport what httpx.AsyncClient does."
        )
    if transports_beneath(transport):
        raise TypeError(
            f"{name} stands on another transport, and what it sends again by itself would go out "
            f"unchecked and unpaced. Turn them round: {name} outside, standing on {polite}(). "
            "For a client that exists already, politely(client) does so."
        )
