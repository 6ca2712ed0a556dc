"""Reading a robots.txt from a response of urllib3; requests builds on this."""

import time
from collections.abc import Mapping
from typing import Any

import urllib3

from polite_transport.robots.access import Reply
from polite_transport.robots.body import Body, BrokenBody

_CHUNK = 65_536


def read_reply(
    response: Any,
    status: int,
    headers: Mapping[str, str],
    started: float,
    seconds: float,
    limit: int,
) -> Reply:
    """Read a robots.txt to its end, or as far as it is wanted.

    response: urllib3's, not read yet; it is closed unless it came to its end.
    started, seconds: monotonic start of the request, and what it may take in all.
    limit: bytes wanted.
    """
    content, broken = b"", None
    try:
        body = Body(limit, headers.get("Content-Encoding"))
        # Whatever has come in: waiting for more would let a slow site stretch the deadline.
        while chunk := response.read1(_CHUNK, decode_content=False):
            if not body.feed(chunk):
                response.close()
                break
            if time.monotonic() > started + seconds:
                raise BrokenBody("its body takes too long")
        content = body.content()
    except BrokenBody as error:
        broken = str(error)
        response.close()
    except (urllib3.exceptions.HTTPError, OSError) as error:
        broken = f"its body ends early ({error})"
        response.close()
    return Reply(
        status=status,
        headers={name.lower(): value for name, value in headers.items()},
        body=content,
        broken=broken,
        elapsed=time.monotonic() - started,
    )


def capped(timeout: Any, seconds: float) -> tuple[float, float]:
    """Return a script's own connect and read timeouts, each no longer than ``seconds``."""
    if isinstance(timeout, urllib3.Timeout):
        timeout = (timeout.connect_timeout, timeout.read_timeout)
    elif not isinstance(timeout, tuple):
        timeout = (timeout, timeout)
    return _least(timeout[0], seconds), _least(timeout[1], seconds)


def _least(timeout: Any, seconds: float) -> float:
    return min(timeout, seconds) if isinstance(timeout, int | float) else seconds
