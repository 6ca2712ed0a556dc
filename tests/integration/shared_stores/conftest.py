"""Fixtures of the stores: each kind of store, and a Redis of the test's own."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from .servers import Crawl, RedisServer, find_redis


@pytest.fixture
def redis_server(tmp_path: Path) -> Iterator[Callable[..., RedisServer]]:
    """Start a redis-server: ``redis_server(*options)``."""
    find_redis()
    with ExitStack() as running:

        def start(*options: str) -> RedisServer:
            server = RedisServer(tmp_path, *options)
            running.callback(server.stop)
            return server.start()

        yield start


@pytest.fixture(scope="session")
def shared_redis(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RedisServer]:
    """One redis-server for all tests that do not stop it; each uses a namespace of its own."""
    find_redis()
    server = RedisServer(tmp_path_factory.mktemp("redis")).start()
    yield server
    server.stop()


@pytest.fixture(params=["sqlite", "redis"])
def shared_place(request: pytest.FixtureRequest, tmp_path: Path) -> dict[str, Any]:
    """Return where a store that processes share is, as ``crawl.py`` takes it."""
    if request.param == "sqlite":
        return {"kind": "sqlite", "place": str(tmp_path / "store.sqlite")}
    server: RedisServer = request.getfixturevalue("shared_redis")
    return {"kind": "redis", "place": server.url, "namespace": tmp_path.name}


@pytest.fixture
def crawl() -> Iterator[Callable[..., Crawl]]:
    """Start processes that crawl; those that are left at the end of the test are killed."""
    with ExitStack() as running:

        def start(*args: Any, **options: Any) -> Crawl:
            one = Crawl(*args, **options)
            running.callback(one.kill)
            return one

        yield start
