"""What an httpx request asks for in its request line: its URL, or its ``target`` extension.

httpcore puts that extension in the place of the URL's path.
Source: RFC 9112 section 3.2.
"""

import re
from collections.abc import Callable

import httpx

from polite_transport.clients.httpx.beneath import opens_connections
from polite_transport.url import InvalidURL, presentable, target

# What reads in one way only. "#" stands in no request target: one server cuts there, another not.
_PLAIN = re.compile(rb"[\x21\x22\x24-\x7e]+")


def asked_url(request: httpx.Request, send: Callable[..., object]) -> str:
    """Return the URL of what a request with a ``target`` extension really asks for.

    send: what sends it beneath.
    Raises InvalidURL where that is no page of the host that it goes to, or cannot be known.
    """
    line = request.extensions["target"]
    origin = f"{request.url.scheme}://{request.url.netloc.decode('ascii')}"
    if not opens_connections(send):
        raise InvalidURL(
            f"only httpx's own transports are known to send the request target {_shown(line)} in "
            "the place of the URL"
        )
    if isinstance(line, str):
        line = line.encode()
    if isinstance(line, bytes) and _PLAIN.fullmatch(line):
        form = line.decode("ascii")
        if form.startswith("/"):
            return origin + form
        if form == "*" and request.method == "OPTIONS":
            return f"{origin}/"  # the site as a whole
        there, here = target(form), target(origin)
        if there is not None and here is not None and there.origin == here.origin:
            return there.url
    raise InvalidURL(
        f"its request target {_shown(line)} is no page of {origin}; it is to be a path, a URL of "
        "that host, or '*' with OPTIONS (for a proxy, give proxy= to the client and the site's own "
        "URL to the request)"
    )


def _shown(line: object) -> str:
    text = line.decode("latin-1") if isinstance(line, bytes) else str(line)
    return repr(presentable(text))
