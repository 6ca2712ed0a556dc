"""The first example: a home-made crawler that checks robots.txt before each request."""

from collections.abc import Callable

import pytest

from polite_transport import DisallowedByRobots, MemoryStore, Policy, PoliteSession
from polite_transport.testing import Answer, Site

UA = "MyBot/1.0 (+https://example.org/bot)"
ROBOTS = """\
User-agent: *
Disallow: /lp/
Disallow: /resources/fonts/
Disallow: /*?utm_source=*
Disallow: /admin/includes/
"""


@pytest.mark.parametrize(
    ("path", "allowed"),
    [
        ("/locations/", True),
        ("/locations/?page=2", True),
        ("/lp/share002/", False),
        ("/lp/share002/foo", False),
        ("/resources/fonts/x.woff", False),
        ("/locations/?utm_source=x", False),
    ],
)
def test_its_table(site: Callable[..., Site], store: MemoryStore, path: str, allowed: bool) -> None:
    place = site(ROBOTS)
    with PoliteSession(ua=UA, store=store) as session:
        if allowed:
            assert session.get(place.url(path)).status_code == 200
        else:
            with pytest.raises(DisallowedByRobots):
                session.get(place.url(path))
    assert place.targets() == ["/robots.txt", *([path] if allowed else [])]


def test_its_looser_reading_of_an_unreadable_file_is_an_option(
    site: Callable[..., Site], store: MemoryStore
) -> None:
    place = site(Answer(status=500))
    policy = Policy(on_unreachable="allow")
    with PoliteSession(ua=UA, store=store, policy=policy) as session:
        assert session.get(place.url("/lp/share002/")).status_code == 200
