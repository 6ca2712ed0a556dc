"""Fixtures of the tests that run on every client."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from polite_transport import MemoryStore, Policy

from .faces import FACES, UA, Visitor


# What runs alike on both event loops is tried on one of them.
@pytest.fixture(params=[name for name in FACES if name != "asyncio"])
def visit(request: pytest.FixtureRequest, store: MemoryStore) -> Iterator[Callable[..., Visitor]]:
    """Start polite clients: ``visit(min_delay=1)`` has that policy, and the test's own store.

    Where the loop matters, a test names all FACES itself.
    """
    with ExitStack() as running:

        def start(
            *,
            policy: Policy | None = None,
            ua: str | None = UA,
            store: MemoryStore = store,
            options: dict[str, Any] | None = None,
            **rules: Any,
        ) -> Visitor:
            rules_given = policy if policy is not None else Policy(**rules)
            return running.enter_context(
                Visitor(request.param, store, rules_given, ua, options or {})
            )

        yield start
