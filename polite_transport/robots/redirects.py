"""Where a redirected robots.txt may lead; pure. Source: RFC 9309 section 2.3.1.2."""

import re
from ipaddress import ip_address
from typing import Literal
from urllib.parse import quote, urljoin

from polite_transport.url import InvalidURL, Target, presentable, target

MOST_HOPS = 5
_SENT_AS_IT_IS = "".join(map(chr, range(0x21, 0x7F)))


class BadRedirect(Exception):
    """A redirect of robots.txt that is not followed; the message says why."""


def next_hop(here: Target, location: str | None, allowed: Literal["follow", "same-host"]) -> Target:
    """Return where a 3xx answer to robots.txt leads.

    here: the URL that answered.
    location: its Location header.
    allowed: Policy.robots_redirects.

    Raises BadRedirect where it leads nowhere we would go.
    """
    if not location:
        raise BadRedirect("it redirects without a Location")
    try:
        there = target(_absolute(here, location))
    except (InvalidURL, ValueError):
        there = None
    if there is None:
        raise BadRedirect(f"it redirects to {presentable(location)!r}, which is no http(s) URL")
    path = _encoded(there.path)
    there = there._replace(url=there.origin + path, path=path)
    if _is_local(there.host) and not _is_local(here.host):
        raise BadRedirect(f"it redirects into a private network, to {there.url}")
    if allowed == "same-host" and not _same_host(here, there):
        raise BadRedirect(f"it redirects to {there.url}; the policy stays on the same host")
    return there


def _absolute(here: Target, location: str) -> str:
    """Return a Location as an absolute URL.

    urljoin takes one that has lost its host, such as ``http://``, for a way of saying ``here``.
    """
    scheme = here.url.partition(":")[0]
    if location.startswith("//"):
        return f"{scheme}:{location}"
    if location.lower().startswith(("http:", "https:")):
        return location
    return urljoin(here.url, location)


def _encoded(path: str) -> str:
    """Return a path and query as they may be sent, whatever the site has put into its header.

    RFC 3986 section 2.1. A header is bytes, and a client may have read them as Latin-1.
    """
    try:
        octets = path.encode("latin-1")
        octets.decode("utf-8")
    except UnicodeError:
        octets = path.encode("utf-8", "surrogatepass")
    return quote(octets, safe=_SENT_AS_IT_IS)


def _same_host(here: Target, there: Target) -> bool:
    """Whether a hop stays on its origin, or only goes from http to https of its host."""
    upgrade = here.url.startswith("http://") and there.url.startswith("https://")
    return here.host == there.host and (upgrade or here.origin == there.origin)


def _is_local(host: str) -> bool:
    """Whether a host is localhost or an address that is not reachable from the whole Internet.

    A site elsewhere must not be able to send us there. Names are not resolved: what they mean
    to us is the business of our own resolver.
    """
    try:
        return not ip_address(host).is_global
    except ValueError:
        # What ends in a number is no name of the Internet. It is no address to our own resolver,
        # but what another makes of 1.0x or 010.0.0.08 is not certain: a doubt is a no.
        number = re.fullmatch(r"\d+|0x[0-9a-f]*", host.rpartition(".")[2])
        return host == "localhost" or host.endswith(".localhost") or number is not None
