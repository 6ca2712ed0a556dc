"""Which store is used, by URL or environment, so that a fleet is configured without code."""

import os
import re
from collections.abc import Callable
from functools import lru_cache
from typing import Any
from urllib.parse import unquote_plus

from polite_transport.stores.base import Store
from polite_transport.stores.memory import PROCESS_STORE

VARIABLE = "POLITE_STORE"
_DRIVE = re.compile(r"/[A-Za-z]:[/\\]")
_REDIS = ("redis", "rediss", "unix", "valkey", "valkeys")


def _truth(text: str) -> bool:
    return {"true": True, "1": True, "false": False, "0": False}[text.lower()]


# Options of both stores that may stand in a URL's query, and how each is read.
_OPTIONS: dict[str, Callable[[str], object]] = {
    "on_error": str,
    "max_processes": int,
    "assume_cold": _truth,
    "timeout": float,
    "lease": float,
}


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
        ``memory:`` is this process's own. Behind a ``?``, options of the store:
        ``?on_error=local&max_processes=8``, also assume_cold, timeout and lease. Others in a Redis
        URL are the client's.

    Raises ValueError for any other.
    """
    scheme, _, rest = url.partition(":")
    scheme = scheme.lower()
    if scheme == "memory":
        return PROCESS_STORE
    if scheme == "sqlite" and re.match(r"///[^?]", rest):
        from polite_transport.stores.sqlite import SQLiteStore

        path, options, others = _options(rest.removeprefix("//"))
        if others:
            name = others[0].partition("=")[0]
            raise ValueError(
                f"a SQLite store's URL has no option {name!r}; it has {', '.join(_OPTIONS)}"
            )
        return SQLiteStore(path[1:] if _DRIVE.match(path) else path, **options)
    if scheme in _REDIS and rest.startswith("//"):
        from polite_transport.stores.redis import RedisStore

        place, _, namespace = url.partition("#")
        if "@" in namespace:
            raise ValueError(
                "a store's URL has a '#' before its '@': in a password it is written %23"
            )
        server, options, others = _options(place)
        if others:
            server += "?" + "&".join(others)
        return RedisStore(server, namespace=namespace or "default", **options)
    # Not the whole of it, which may hold a password; without "//" what stands first may be one.
    shown = f"that begins with {scheme[:20] + ':'!r} " if rest.startswith("//") else ""
    raise ValueError(
        f"a store's URL {shown}is none of sqlite:///path/to/file, "
        "redis://host:6379/0, rediss://, unix:///socket, valkey:// and memory:"
    )


def _options(url: str) -> tuple[str, dict[str, Any], list[str]]:
    """Return a URL without its query, what of that are options of a store, and the other parts.

    Raises ValueError for an option that cannot be read.
    """
    place, _, query = url.partition("?")
    options: dict[str, Any] = {}
    others: list[str] = []
    for part in query.split("&") if query else ():
        name, _, value = part.partition("=")
        if name not in _OPTIONS:
            others.append(part)
            continue
        try:
            options[name] = _OPTIONS[name](unquote_plus(value))
        except (ValueError, KeyError):
            raise ValueError(f"a store's URL with {name}={value!r}, which cannot be read") from None
    return place, options, others
