"""Fixtures of the whole suite: loopback sites that log arrivals, stores, both event loops."""

import os
from collections.abc import Callable

import pytest
from hypothesis import settings

from polite_transport import MemoryStore
from polite_transport.testing import Site


@pytest.fixture
def site(polite_site: Callable[..., Site]) -> Callable[..., Site]:
    """Start sites: ``site(robots=..., **options)`` is a running Site, stopped after the test."""
    return polite_site


@pytest.fixture
def store() -> MemoryStore:
    """Return turns and copies of the test's own: ports and hosts come back from test to test."""
    return MemoryStore()


@pytest.fixture(scope="module", params=["asyncio", "trio"])
def anyio_backend(request: pytest.FixtureRequest) -> str:
    """Run every test that is marked anyio on both event loops."""
    backend: str = request.param
    return backend


# In CI the drawn examples are the same each time: what a search finds is found at a desk.
settings.register_profile("ci", derandomize=True)
if os.environ.get("CI"):
    settings.load_profile("ci")
