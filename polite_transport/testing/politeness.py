"""What in a site's log was impolite; pure."""

from collections.abc import Iterable

from polite_transport.robots import Robots, parse_robots, product_token
from polite_transport.testing.values import Arrival


def impolite(log: Iterable[Arrival], robots_txt: bytes) -> list[str]:
    """Return one sentence for each request that did not keep a robots.txt; none is right.

    log: in order of arrival. robots_txt: what the site served all the time.

    To each address the first request is for robots.txt, none is disallowed, and no two are closer
    than the delay that the file asks of the robot that made the later one.
    """
    robots = parse_robots(robots_txt)
    last: dict[str, Arrival] = {}
    found: list[str] = []
    for each in log:
        token = product_token(each.headers.get("user-agent", ""))
        before = last.get(each.host)
        if before is None and each.target != "/robots.txt":
            found.append(f"{each.target} was asked for before robots.txt")
        verdict = robots.check(each.target, token)
        if not verdict.allowed:
            found.append(f"{each.target} was asked for: {verdict}")
        delay = _delay(robots, token)
        if before is not None and each.time - before.time < delay:
            found.append(
                f"{each.target} came {each.time - before.time:.3f} s after {before.target}, "
                f"and {delay:g} s are asked for"
            )
        last[each.host] = each
    return found


def _delay(robots: Robots, token: str) -> float:
    return max(robots.crawl_delay(token) or 0.0, robots.request_rate(token) or 0.0)
