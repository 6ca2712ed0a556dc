"""Which store is used, by URL or environment, so that a fleet is configured without code."""

import os
import re
from functools import lru_cache

from polite_transport.stores.base import Store
from polite_transport.stores.memory import PROCESS_STORE

VARIABLE = "POLITE_STORE"
_DRIVE = re.compile(r"/[A-Za-z]:[/\\]")
_REDIS = ("redis", "rediss", "unix", "valkey", "valkeys")


def process_store() -> Store:
    """Return what all clients of this process share unless they are given another store.

    That is the store which the environment's POLITE_STORE names, else one in memory.
    Raises ValueError where it names none.
    """
    url = os.environ.get(VARIABLE)
    if not url:
        return PROCESS_STORE
    try:
        return open_store(url)
    except ValueError as error:
        raise ValueError(f"the environment's {VARIABLE}: {error}") from error


@lru_cache(maxsize=16)
def open_store(url: str) -> Store:
    """Return the store that a URL names; the same one each time.

    url: ``sqlite:///var/lib/bot/store.sqlite``, ``redis://host:6379/0``, ``rediss://…``,
        ``unix:///run/redis.sock``, ``valkey://…``; with ``#name`` at its end a Redis namespace.
        ``memory:`` is this process's own.

    Raises ValueError for any other.
    """
    scheme, _, rest = url.partition(":")
    scheme = scheme.lower()
    if scheme == "memory":
        return PROCESS_STORE
    if scheme == "sqlite" and rest.startswith("///") and len(rest) > len("///"):
        from polite_transport.stores.sqlite import SQLiteStore

        path = rest.removeprefix("//")
        return SQLiteStore(path[1:] if _DRIVE.match(path) else path)
    if scheme in _REDIS and rest.startswith("//"):
        from polite_transport.stores.redis import RedisStore

        server, _, namespace = url.partition("#")
        return RedisStore(server, namespace=namespace or "default")
    # Not the whole of it, which may hold a password.
    raise ValueError(
        f"a store's URL that begins with {scheme[:20] + ':'!r} is none of sqlite:///path/to/file, "
        "redis://host:6379/0, rediss://, unix:///socket, valkey:// and memory:"
    )
