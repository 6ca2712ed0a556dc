"""robots.txt and Crawl-delay kept underneath unmodified Python HTTP clients.

Names load when they are first asked for, so that a program pays only for the client it uses.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from polite_transport.clients.httpx import AsyncPoliteTransport, PoliteTransport
    from polite_transport.clients.requests import PoliteAdapter, PoliteSession
    from polite_transport.clients.urllib3.manager import PolitePoolManager, PoliteProxyManager
    from polite_transport.decision import Decision
    from polite_transport.errors import (
        DisallowedByRobots,
        InvalidURL,
        PoliteError,
        RobotsUnreachable,
        StoreUnavailable,
        WaitTooLong,
    )
    from polite_transport.policy import Policy
    from polite_transport.retrofit.clients import politely
    from polite_transport.retrofit.process import install
    from polite_transport.robots import parse_robots
    from polite_transport.stores.memory import MemoryStore
    from polite_transport.stores.redis import RedisStore
    from polite_transport.stores.sqlite import SQLiteStore

__version__ = "0.1.0"

__all__ = [
    "AsyncPoliteTransport",
    "Decision",
    "DisallowedByRobots",
    "InvalidURL",
    "MemoryStore",
    "Policy",
    "PoliteAdapter",
    "PoliteError",
    "PolitePoolManager",
    "PoliteProxyManager",
    "PoliteSession",
    "PoliteTransport",
    "RedisStore",
    "RobotsUnreachable",
    "SQLiteStore",
    "StoreUnavailable",
    "WaitTooLong",
    "install",
    "parse_robots",
    "politely",
]

_HOMES = {
    "AsyncPoliteTransport": "clients.httpx",
    "PoliteTransport": "clients.httpx",
    "PoliteAdapter": "clients.requests",
    "PoliteSession": "clients.requests",
    "PolitePoolManager": "clients.urllib3.manager",
    "PoliteProxyManager": "clients.urllib3.manager",
    "Decision": "decision",
    "DisallowedByRobots": "errors",
    "InvalidURL": "errors",
    "PoliteError": "errors",
    "RobotsUnreachable": "errors",
    "StoreUnavailable": "errors",
    "WaitTooLong": "errors",
    "Policy": "policy",
    "install": "retrofit.process",
    "parse_robots": "robots",
    "politely": "retrofit.clients",
    "MemoryStore": "stores.memory",
    "RedisStore": "stores.redis",
    "SQLiteStore": "stores.sqlite",
}


def __getattr__(name: str) -> object:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'polite_transport' has no attribute {name!r}")
    value = getattr(import_module(f"polite_transport.{home}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
