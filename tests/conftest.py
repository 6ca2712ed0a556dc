"""Fixtures of the whole suite: the loopback site that logs arrivals, stores, and both event loops."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from polite_transport import MemoryStore
from polite_transport.testing import Site


@pytest.fixture
def site() -> Iterator[Callable[..., Site]]:
    """Start sites: ``site(robots=..., **options)`` is a running Site, stopped after the test."""
    with ExitStack() as running:

        def start(*args: Any, **options: Any) -> Site:
            return running.enter_context(Site(*args, **options))

        yield start


@pytest.fixture
def store() -> MemoryStore:
    """Return turns and copies of the test's own: ports and hosts come back from test to test."""
    return MemoryStore()


@pytest.fixture(scope="module", params=["asyncio", "trio"])
def anyio_backend(request: pytest.FixtureRequest) -> str:
    """Run every test that is marked anyio on both event loops."""
    backend: str = request.param
    return backend
