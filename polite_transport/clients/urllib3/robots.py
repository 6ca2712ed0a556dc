"""Fetching robots.txt through urllib3; requests builds on the reading."""

from collections.abc import Callable, Mapping
from typing import Any

import urllib3
from urllib3.util import SKIP_HEADER

from polite_transport.flow import Call
from polite_transport.robots.access import Reply
from polite_transport.robots.body import Body, BrokenBody
from polite_transport.sending.fetching import Fetching
from polite_transport.steps import Fetch
from polite_transport.stores.base import Store

_CHUNK = 65_536
_TIMEOUTS = (urllib3.exceptions.TimeoutError, TimeoutError)


def get_robots(
    send: Callable[..., Any],
    store: Store,
    call: Call,
    settings: Mapping[str, Any],
    step: Fetch,
) -> Reply:
    """GET one robots.txt URL through the page's own pools, proxy and TLS settings.

    send: ``urlopen`` of a pool manager, or of a pool of that origin.
    settings: the page's own ``timeout`` and ``retries``.
    """
    connect, read = capped(settings.get("timeout"), step.timeout)
    with Fetching(step.target, store, step.timeout) as hand:
        try:
            response = send(
                "GET",
                step.target.url,
                redirect=False,
                retries=settings.get("retries"),
                headers={**step.headers, "User-Agent": call.user_agent or SKIP_HEADER},
                timeout=urllib3.Timeout(connect=connect, read=read),
                preload_content=False,
            )
        except urllib3.exceptions.HTTPError as error:
            return Reply(None, error=error, elapsed=hand.elapsed)
        return read_reply(response, response.status, response.headers, hand, step.max_bytes)


def read_reply(
    response: Any,
    status: int,
    headers: Mapping[str, str],
    hand: Fetching,
    limit: int,
) -> Reply:
    """Read a robots.txt to its end, or as far as it is wanted.

    response: urllib3's, not read yet; it is closed unless it came to its end.
    hand: that it came into.
    limit: bytes wanted.
    """
    content, broken, late = b"", None, False
    try:
        body = Body(limit, headers.get("Content-Encoding"))
        # Whatever has come in: waiting for more would let a slow site stretch the deadline.
        while chunk := response.read1(_CHUNK, decode_content=False):
            if not body.feed(chunk):
                response.close()
                break
            if hand.time_is_up:
                late = True
                break
        else:
            late = hand.time_is_up  # the end that came is perhaps one that we have made
        content = b"" if late else body.content()
    except BrokenBody as error:
        broken = str(error)
    except (urllib3.exceptions.HTTPError, OSError) as error:
        late = hand.time_is_up or isinstance(error, _TIMEOUTS)
        broken = f"its body ends early ({error})"
    if late or broken is not None:
        response.close()
    return Reply(
        status=status,
        headers={name.lower(): value for name, value in headers.items()},
        body=content,
        broken=broken,
        late=late,
        elapsed=hand.elapsed,
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
