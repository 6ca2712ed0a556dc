"""What a robots.txt asks of the crawler that is surveyed; pure.

Of the survey's own files it is known by heart (``pages.py``), so that no engine judges itself. Only
a file that somebody brings along has to be read, and polite_transport's engine reads it.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from polite_transport.robots import parse_robots, product_token
from polite_transport.testing.values import Arrival


@dataclass(frozen=True, slots=True)
class Asked:
    """What is asked in one run.

    forbids: whether a path, with its query, is forbidden.
    delay: the Crawl-delay, in seconds; 0.0 = none.
    """

    forbids: Callable[[str], bool]
    delay: float


def asked_by(robots_txt: str, token: str | None, log: Sequence[Arrival]) -> Asked:
    """Return what a robots.txt asks of a crawler.

    token: its product token; None = that of the User-Agent with which it asked for pages.
    """
    # Some ask for robots.txt with a library's own User-Agent, and for pages with theirs.
    visits = [each for each in log if each.target != "/robots.txt"] or log
    sent = visits[0].headers.get("user-agent", "") if visits else ""
    name = product_token(sent) if token is None else token
    robots = parse_robots(robots_txt.encode())
    return Asked(
        lambda target: not robots.check(target, name).allowed, robots.crawl_delay(name) or 0.0
    )
