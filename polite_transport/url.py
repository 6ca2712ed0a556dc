"""URLs as robots.txt and pacing see them: origin, host, path; pure.

Rules are kept by *origin* (scheme, host, port: RFC 9309 section 2.3), turns by *host*. Both are
taken from the URL that is really sent, never from a header.
"""

import re
from functools import lru_cache
from ipaddress import IPv4Address, IPv6Address
from typing import NamedTuple

DEFAULT_PORTS = {"http": 80, "https": 443}

# The authority ends where urllib3, httpx and browsers end it; a backslash is one of those places.
_HTTP_URL = re.compile(r"[\x00-\x20]*(https?)://([^/?#\\]*)([^#]*)", re.IGNORECASE)
_WEB_SOCKET_URL = re.compile(r"[\x00-\x20]*ws(?=s?://)", re.IGNORECASE)
# Nothing that a client could read in two ways may stand in a host.
_HOST = re.compile(r"[^\s\x00-\x20\x7f<>\"'`{}|^%,;:/?#@\[\]\\]+")
_IPV4_PART = re.compile(r"0x(?P<hex>[0-9a-f]+)|0(?P<octal>[0-7]*)|(?P<decimal>[1-9][0-9]{0,9})")


class InvalidURL(ValueError):
    """An http or https URL whose host or port cannot be read; nothing can be checked for it."""


class Target(NamedTuple):
    """Where one request goes.

    url: absolute, without userinfo and fragment.
    origin: scheme, ASCII host and port in one spelling, such as ``http://example.org:8080``.
    host: ASCII, lower case, without port and brackets; an address in its usual spelling.
    path: what stands in the request line, query included.
    """

    url: str
    origin: str
    host: str
    path: str


def is_absolute(url: str) -> bool:
    """Whether a URL begins with http:// or https://, so that it names its origin itself."""
    return url[:8].lower().startswith(("http://", "https://"))


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


def handshake_url(url: str) -> str:
    """Return the http or https URL whose GET opens a WebSocket, for a ws or wss one.

    Any other comes back as it is. Source: RFC 6455 section 4.1.
    """
    return _WEB_SOCKET_URL.sub("http", url, count=1) if _WEB_SOCKET_URL.match(url) else url


@lru_cache(maxsize=4096)
def _authority(scheme: str, authority: str) -> tuple[str, str]:
    """Return (origin, host) of one ``userinfo@host:port``; cached: scripts stay on few hosts."""
    scheme = scheme.lower()
    place = authority.rpartition("@")[2]
    bracketed = re.fullmatch(r"\[([^\]]*)\](?::(\d*))?", place)
    if bracketed:
        host, port = _ipv6(bracketed[1], authority), bracketed[2]
        shown = f"[{host}]" if ":" in host else host
    else:
        name, _, port = place.partition(":")
        host = shown = ascii_host(name)
    if port and not (port.isascii() and port.isdigit() and len(port) <= 5 and int(port) <= 65535):
        # Not shown: an unescaped slash in a password makes a "port" of what stands before it.
        raise InvalidURL(
            "no port from 0 to 65535 follows the colon after its host, with '/' before a path"
        )
    number = int(port) if port else DEFAULT_PORTS[scheme]
    suffix = "" if number == DEFAULT_PORTS[scheme] else f":{number}"
    return f"{scheme}://{shown}{suffix}", host


def ascii_host(name: str) -> str:
    """Return a host name in its one ASCII spelling: lower case, punycode, no trailing dot.

    One that resolvers read as an IPv4 address comes back as that, in four decimal numbers.
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
    return _ipv4(name) or name


def _ipv4(name: str) -> str | None:
    """One spelling for every way to write an IPv4 address; None where the name is none.

    One to four numbers, decimal, octal or hexadecimal; the last fills the octets that are left:
    ``127.1`` and ``0x7f000001`` are ``127.0.0.1``. All clients resolve names with getaddrinfo,
    which takes what inet_aton reads for addresses and looks up everything else. So a name that
    ends in a number and is no address (``web.1``, ``1.2.3.256``) stays a name: hosts files and
    container networks have such, and a client reaches them. Browsers refuse them.

    Source: POSIX inet_addr; the WHATWG URL Standard's IPv4 parser, but for a bare ``0x``.
    """
    *parts, last = name.split(".")
    numbers = [_number(part) for part in parts]
    rest = _number(last)
    if len(numbers) > 3 or rest is None or rest >= 256 ** (4 - len(numbers)):
        return None
    value = rest
    for place, number in enumerate(numbers):
        if number is None or number > 255:
            return None
        value += number << (24 - 8 * place)
    return str(IPv4Address(value))


def _number(part: str) -> int | None:
    """Return one number of an IPv4 address as C writes them; None where it is none."""
    found = _IPV4_PART.fullmatch(part)
    if found is None:
        return None
    if found["hex"]:
        return int(found["hex"], 16)
    return int(found["decimal"]) if found["decimal"] else int(found["octal"] or "0", 8)


def _ipv6(text: str, authority: str) -> str:
    """One spelling for every way to write an IPv6 address.

    An IPv4 address that is mapped into IPv6 (``::ffff:127.0.0.1``, RFC 4291 section 2.5.5.2) is
    that IPv4 address: what is sent to it leaves as IPv4, and the site's log shows it so.
    """
    try:
        address = IPv6Address(text)
    except ValueError as error:
        raise InvalidURL(f"the address in {authority.rpartition('@')[2]!r} is not IPv6") from error
    return str(address.ipv4_mapped or address)


# In a URL's authority; where no port follows the colon, everything up to the last "@": passwords
# with an unescaped slash or question mark in them.
_USERINFO = re.compile(
    r"([^/\\?#]*[/\\]{2,})(?:[^/?#\\]*@|[^/?#\\@\[:]*:(?!\d*(?:[/?#\\]|$)).*@)", re.DOTALL
)


def presentable(url: str) -> str:
    """Return a URL that is not taken apart, without userinfo and fragment: to show it."""
    found = _USERINFO.match(url)
    if found is not None:
        url = found[1] + url[found.end() :]
    return url.partition("#")[0]


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
