"""What a program decides for itself within what robots.txt asks: one frozen value."""

import math
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, fields
from typing import Literal

from polite_transport.url import matches_host, target

DAY = 86_400.0


@dataclass(frozen=True, kw_only=True, slots=True)
class Policy:
    """How polite to be. Every default keeps robots.txt to the letter of RFC 9309.

    All times are seconds.

    Pacing
        min_delay: least time between two requests to a host; 0 = only what the site asks.
        max_delay: a site that asks for more, or a Retry-After beyond it, raises WaitTooLong.
        max_wait: a turn further away raises WaitTooLong at once; None = wait as long as it takes.
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
        overrides: policies for single hosts, named as in exempt_hosts.

    Fetching robots.txt
        robots_redirects: ``"follow"`` up to five hops, or ``"same-host"`` only (http to https
            of the same host included).
        robots_ttl: how long a copy counts; Cache-Control may shorten it to 30 minutes.
        robots_max_bytes: what is read of a file; the rest is not downloaded.
        robots_timeout: for one fetch with its hops and body.

    Raises ValueError where a value makes no sense, naming it.
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
        for name in ("min_delay", "max_delay", "max_wait"):
            _number(name, getattr(self, name), least=0.0)
        for name in ("turn_limit", "robots_ttl", "robots_max_bytes", "robots_timeout"):
            _number(name, getattr(self, name), least=0.0, exclusive=True)
        if self.robots_max_bytes != int(self.robots_max_bytes):
            raise ValueError(f"Policy(robots_max_bytes={self.robots_max_bytes}): whole bytes only")
        object.__setattr__(self, "robots_max_bytes", int(self.robots_max_bytes))
        if self.product_token is not None and not _TOKEN.fullmatch(self.product_token):
            raise ValueError(
                f"Policy(product_token={self.product_token!r}): no group of a robots.txt can name "
                "it; letters, digits, '_', '-' and '.' make a name"
            )
        for name, choices in _CHOICES.items():
            if getattr(self, name) not in choices:
                wanted = " or ".join(map(repr, choices))
                raise ValueError(f"Policy({name}={getattr(self, name)!r}): it must be {wanted}")
        if self.min_delay > self.max_delay:
            raise ValueError(
                f"Policy(min_delay={self.min_delay}) is above max_delay={self.max_delay}, "
                "so that no request could ever be sent"
            )
        if isinstance(self.exempt_hosts, str):
            raise ValueError("Policy(exempt_hosts=…) takes a collection of names, not one string")  # noqa: TRY004 - every bad value is a ValueError
        object.__setattr__(self, "exempt_hosts", tuple(map(_host_name, self.exempt_hosts)))
        object.__setattr__(
            self, "overrides", {_host_name(name): own for name, own in self.overrides.items()}
        )
        for name, own in self.overrides.items():
            _check_override(name, own)

    def for_host(self, host: str, origin: str) -> "Policy | None":
        """Return the policy in force for one host, or None where the host is exempt."""
        if any(matches_host(name, host, origin) for name in self.exempt_hosts):
            return None
        for name, own in self.overrides.items():
            if matches_host(name, host, origin):
                return own
        return self

    @property
    def asks_nothing(self) -> bool:
        """Whether robots.txt could change nothing, so that it need not be fetched."""
        return not (self.obey_disallow or self.obey_crawl_delay or self.obey_visit_time)


_TOKEN = re.compile(r"[A-Za-z0-9_.-]+")
_CHOICES: dict[str, tuple[str, ...]] = {
    "pace_from": ("headers", "body"),
    "on_forbidden": ("allow", "disallow"),
    "on_too_many_requests": ("allow", "disallow"),
    "on_unreachable": ("allow", "disallow"),
    "on_html": ("allow", "disallow"),
    "robots_redirects": ("follow", "same-host"),
}
_OPTIONAL = {each.name for each in fields(Policy) if each.default is None}


def _number(name: str, value: object, *, least: float, exclusive: bool = False) -> None:
    if value is None and name in _OPTIONAL:
        return
    if (
        isinstance(value, bool)
        or not isinstance(value, int | float)
        or not math.isfinite(value)
        or value < least
        or (exclusive and value == least)
    ):
        bound = "above" if exclusive else "at least"
        raise ValueError(f"Policy({name}={value!r}): it must be a finite number, {bound} {least:g}")


def _check_override(name: str, own: object) -> None:
    if not isinstance(own, Policy):
        raise ValueError(f"Policy(overrides={{{name!r}: {own!r}}}): it must be a Policy")  # noqa: TRY004 - every bad value is a ValueError
    if own.overrides or own.exempt_hosts:
        raise ValueError(f"the policy for {name!r} cannot hold overrides of its own")


def _host_name(pattern: str) -> str:
    """One spelling for a name in a policy; international names become punycode."""
    if pattern.count(":") > 1 and "[" not in pattern:
        pattern = f"[{pattern}]"
    dot = "." if pattern.startswith(".") else ""
    place = target(f"http://{pattern.removeprefix('.')}")
    if place is None or place.path != "/" or set("@*") & set(pattern) or pattern[-1] in "/:":
        raise ValueError(
            f"{pattern!r} is no name of a host: 'example.org', '.example.org' for a whole domain, "
            "'example.org:8080' for one port"
        )
    port = ":80" if pattern.endswith(":80") else ""  # else it would not show
    return dot + place.origin.removeprefix("http://") + port
