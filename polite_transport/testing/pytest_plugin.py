"""The ``polite_site`` fixture, for the suites of those who use polite_transport."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from polite_transport.testing.site import Site


@pytest.fixture
def polite_site() -> Iterator[Callable[..., Site]]:
    """Start loopback sites: ``polite_site(robots, **options)`` is a running ``Site``.

    It is stopped after the test. ``site.assert_polite()`` fails where its log shows a request that
    did not keep its robots.txt.
    """
    with ExitStack() as running:

        def start(*args: Any, **options: Any) -> Site:
            return running.enter_context(Site(*args, **options))

        yield start
