"""URLs as robots.txt and pacing see them: origin, host, path; pure.

Rules are kept by *origin* (scheme, host, port: RFC 9309 section 2.3), turns by *host*. Both are
taken from the URL that is really sent, never from a header.
"""

import re
from functools import lru_cache
from ipaddress import IPv6Address
from typing import NamedTuple

DEFAULT_PORTS = {"http": 80, "https": 443}

# The authority ends where urllib3, httpx and browsers end it; a backslash is one of those places.
_HTTP_URL = re.compile(r"[\x00-\x20]*(https?)://([^/?#\\]*)([^#]*)", re.IGNORECASE)
# Nothing that a client could read in two ways may stand in a host.
_HOST = re.compile(r"[^\s\x00-\x20\x7f<>\"'`{}|^%,;:/?#@\[\]\\]+")


class InvalidURL(ValueError):
    """An http or https URL whose host or port cannot be read; nothing can be checked for it."""


class Target(NamedTuple):
    """Where one request goes.

    url: absolute, without userinfo and fragment.
    origin: scheme, ASCII host and port in one spelling, such as ``http://example.org:8080``.
    host: ASCII, lower case, without port and brackets.
    path: what stands in the request line, query included.
    """

    url: str
    origin: str
    host: str
    path: str


def target(url: str) -> Target | None:
    """Take apart an absolute URL.

    Returns None where the URL is not http or https: robots.txt says nothing about those.
    Raises InvalidURL where it is, and has no readable host or port.
    """
    match = _HTTP_URL.match(url)
    if match is None:
        return None
    scheme, authority, path = match.groups()
    origin, host = _authority(scheme, authority)
    if not path.startswith("/"):
        path = "/" + path
    return Target(origin + path, origin, host, path)


@lru_cache(maxsize=4096)
def _authority(scheme: str, authority: str) -> tuple[str, str]:
    """Return (origin, host) of one ``userinfo@host:port``; cached: scripts stay on few hosts."""
    scheme = scheme.lower()
    place = authority.rpartition("@")[2]
    bracketed = re.fullmatch(r"\[([^\]]*)\](?::(\d*))?", place)
    if bracketed:
        host, port = _ipv6(bracketed[1], authority), bracketed[2]
        shown = f"[{host}]"
    else:
        name, _, port = place.partition(":")
        host = shown = ascii_host(name)
    if port and not (port.isascii() and port.isdigit() and len(port) <= 5 and int(port) <= 65535):
        raise InvalidURL(f"the port of {place!r} is not a number from 0 to 65535")
    number = int(port) if port else DEFAULT_PORTS[scheme]
    suffix = "" if number == DEFAULT_PORTS[scheme] else f":{number}"
    return f"{scheme}://{shown}{suffix}", host


def ascii_host(name: str) -> str:
    """Return a host name in its one ASCII spelling: lower case, punycode, no trailing dot.

    Raises InvalidURL where there is none.
    """
    if not name.isascii():
        import idna

        try:
            name = idna.encode(name, uts46=True).decode("ascii")
        except UnicodeError as error:
            raise InvalidURL(
                f"the host {name!r} is no valid international name: {error}"
            ) from error
    name = name.lower().removesuffix(".")
    if not _HOST.fullmatch(name):
        raise InvalidURL(f"{name!r} is not a host name")
    return name


def _ipv6(text: str, authority: str) -> str:
    """One spelling for every way to write an IPv6 address."""
    try:
        return str(IPv6Address(text))
    except ValueError as error:
        raise InvalidURL(f"the address in {authority.rpartition('@')[2]!r} is not IPv6") from error


def matches_host(pattern: str, host: str, origin: str) -> bool:
    """Whether a name in a policy means this host.

    pattern: ``example.org`` (that host), ``.example.org`` (it and everything below it), or
        ``example.org:8080`` (that port only).
    """
    pattern = pattern.lower()
    if pattern.startswith("."):
        return host == pattern[1:] or host.endswith(pattern)
    if pattern.strip("[]") == host:
        return True
    scheme, _, place = origin.partition("://")
    if not place.rpartition("]")[2].count(":"):
        place = f"{place}:{DEFAULT_PORTS[scheme]}"
    return pattern == place
