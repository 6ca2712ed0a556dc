"""What a program decides for itself within what robots.txt asks: one frozen value."""

import re
import sys
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeGuard, cast

from polite_transport.options import NAMES, Takes, check_options, one_of
from polite_transport.url import InvalidURL, matches_host, target

DAY = 86_400.0


@dataclass(frozen=True, kw_only=True, slots=True)
class Policy:
    """How polite to be. Every default keeps robots.txt to the letter of RFC 9309.

    All times are seconds.

    Pacing
        min_delay: least time between two requests to a host; 0 = only what the site asks.
        max_delay: a site that asks for more, or a Retry-After beyond it, raises WaitTooLong.
        max_wait: a turn further away raises WaitTooLong at once; None = wait as long as it takes.
            It bounds the wait for each turn, and not that for the answer of robots.txt: see
            robots_timeout.
        turn_limit: how long one unanswered request may keep the others of its host waiting.
        pace_from: the delay starts when the response's ``"headers"`` are in, or its ``"body"``
            (for sites whose log stamps completion).
        obey_crawl_delay: keep Crawl-delay and Request-rate.
        obey_visit_time: wait for the start of the site's Visit-time window (UTC).

    Access
        product_token: our name in robots.txt where the User-Agent's own is unusual; must occur
            in the User-Agent sent (RFC 9309 section 2.2.1).
        obey_disallow: refuse what robots.txt disallows; False only logs it (dry runs, owners).
            With obey_crawl_delay also off, robots.txt is not fetched at all.
        on_forbidden: robots.txt answered 401 or 403.
        on_too_many_requests: robots.txt answered 429; ``"disallow"`` raises RobotsUnreachable.
        on_unreachable: robots.txt answered 5xx, or not at all; ``"disallow"`` raises
            RobotsUnreachable (or the client's own exception where there was no answer).
        on_html: robots.txt is an HTML page without one record.
        exempt_hosts: one's own hosts, neither checked nor paced: ``example.org``, ``.example.org``
            for a whole domain, ``example.org:8080`` for one port.
        overrides: policies for single hosts, named as in exempt_hosts. One counts in place of this
            policy and takes nothing over from it.

    Fetching robots.txt
        robots_redirects: ``"follow"`` up to five hops, or ``"same-host"`` only (http to https
            of the same host included).
        robots_ttl: how long a copy counts; Cache-Control may shorten it to 30 minutes.
        robots_max_bytes: what is read of a file; the rest is not downloaded.
        robots_timeout: for one fetch with its hops and body. A fetch that fails is tried once more,
            after a pause that is no longer.

    Raises ValueError where a value is of the wrong type or makes no sense, naming it.
    """

    min_delay: float = 0.0
    max_delay: float = 300.0
    max_wait: float | None = None
    turn_limit: float = 60.0
    pace_from: Literal["headers", "body"] = "headers"
    obey_crawl_delay: bool = True
    obey_visit_time: bool = False

    product_token: str | None = None
    obey_disallow: bool = True
    on_forbidden: Literal["allow", "disallow"] = "allow"
    on_too_many_requests: Literal["allow", "disallow"] = "disallow"
    on_unreachable: Literal["allow", "disallow"] = "disallow"
    on_html: Literal["allow", "disallow"] = "allow"
    exempt_hosts: Collection[str] = ()
    overrides: Mapping[str, "Policy"] = field(default_factory=dict[str, "Policy"], hash=False)

    robots_redirects: Literal["follow", "same-host"] = "follow"
    robots_ttl: float = DAY
    robots_max_bytes: int = 512_000  # RFC 9309 section 2.5 asks for at least 500 KiB
    robots_timeout: float = 10.0

    def __post_init__(self) -> None:
        check_options(TAKES, self.__getattribute__, "Policy")
        object.__setattr__(self, "robots_max_bytes", int(self.robots_max_bytes))
        if self.min_delay > self.max_delay:
            raise ValueError(
                f"Policy(min_delay={self.min_delay}) is above max_delay={self.max_delay}, "
                "so that no request could ever be sent"
            )
        object.__setattr__(
            self, "exempt_hosts", host_names("Policy(exempt_hosts=…)", self.exempt_hosts)
        )
        named = host_names("Policy(overrides=…)", self.overrides)
        object.__setattr__(
            self, "overrides", dict(zip(named, self.overrides.values(), strict=True))
        )
        for name, own in self.overrides.items():
            for option in ("overrides", "exempt_hosts"):
                if getattr(own, option):
                    raise ValueError(f"the policy for {name!r} cannot hold {option} of its own")

    def exempts(self, host: str, origin: str) -> bool:
        """Whether a host is exempt."""
        return any(matches_host(name, host, origin) for name in self.exempt_hosts)

    def for_host(self, host: str, origin: str) -> "Policy":
        """Return the policy in force for one host that is not exempt."""
        for name, own in self.overrides.items():
            if matches_host(name, host, origin):
                return own
        return self

    @property
    def asks_nothing(self) -> bool:
        """Whether robots.txt could change nothing, so that it need not be fetched."""
        return not (self.obey_disallow or self.obey_crawl_delay or self.obey_visit_time)


_LARGEST = sys.float_info.max  # of an int, what lies above is no time that can be reckoned with
_TOKEN = re.compile(r"[A-Za-z0-9_.-]+")


def _is_number(value: object) -> TypeGuard[float]:
    return isinstance(value, int | float) and not isinstance(value, bool) and value <= _LARGEST


def _are_policies(value: object) -> bool:
    if not isinstance(value, Mapping):
        return False
    named = cast("Mapping[object, object]", value).items()
    return all(isinstance(name, str) and isinstance(own, Policy) for name, own in named)


_AT_LEAST_0 = Takes("a finite number, at least 0", lambda value: _is_number(value) and value >= 0)
_ABOVE_0 = Takes("a finite number, above 0", lambda value: _is_number(value) and value > 0)
_YES_OR_NO = Takes("True or False", lambda value: isinstance(value, bool))

TAKES: dict[str, Takes] = {
    **dict.fromkeys(("min_delay", "max_delay"), _AT_LEAST_0),
    "max_wait": _AT_LEAST_0.or_none(),
    **dict.fromkeys(("turn_limit", "robots_ttl", "robots_timeout"), _ABOVE_0),
    "robots_max_bytes": Takes(
        "a whole number, above 0", lambda value: _is_number(value) and value == int(value) > 0
    ),
    **dict.fromkeys(("obey_disallow", "obey_crawl_delay", "obey_visit_time"), _YES_OR_NO),
    **dict.fromkeys(
        ("on_forbidden", "on_too_many_requests", "on_unreachable", "on_html"),
        one_of("allow", "disallow"),
    ),
    "pace_from": one_of("headers", "body"),
    "robots_redirects": one_of("follow", "same-host"),
    "product_token": Takes(
        "a name that a group of robots.txt can have, of letters, digits, '_', '-' and '.'",
        lambda value: isinstance(value, str) and bool(_TOKEN.fullmatch(value)),
    ).or_none(),
    "exempt_hosts": NAMES,
    "overrides": Takes(
        "a mapping from host names to policies, such as {'example.org': Policy(min_delay=5)}",
        _are_policies,
    ),
}


def host_names(option: str, names: Collection[str]) -> tuple[str, ...]:
    """Return each name in its one spelling; international names become punycode.

    option: of what they are the value, for the ValueError where one is no name of a host.
    """
    return tuple(_host_name(option, name) for name in names)


def _host_name(option: str, name: str) -> str:
    pattern = f"[{name}]" if name.count(":") > 1 and "[" not in name else name
    dot = "." if pattern.startswith(".") else ""
    try:
        place = target(f"http://{pattern.removeprefix('.')}")
    except InvalidURL:
        place = None
    if place is None or place.path != "/" or set("@*") & set(pattern) or pattern[-1] in "/:":
        raise ValueError(
            f"{option}: {name!r} is no name of a host, such as 'example.org', '.example.org' for a "
            "whole domain, 'example.org:8080' for one port"
        )
    port = ":80" if pattern.endswith(":80") else ""  # else it would not show
    return dot + place.origin.removeprefix("http://") + port
