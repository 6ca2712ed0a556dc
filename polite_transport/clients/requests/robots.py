"""Fetching robots.txt through an adapter of requests."""

import time
from collections.abc import Callable
from typing import Any

import requests
import urllib3
from requests.models import Response
from urllib3.util import SKIP_HEADER

from polite_transport.flow import Call
from polite_transport.in_hand import Hand
from polite_transport.robots.access import Reply
from polite_transport.robots.body import Body, BrokenBody
from polite_transport.steps import Fetch
from polite_transport.stores.base import Store

_CHUNK = 65_536


def get_robots(
    send: Callable[..., Response],
    call: Call,
    settings: dict[str, Any],
    store: Store,
    step: Fetch,
) -> Reply:
    """GET one robots.txt URL through the page's own adapter, proxies and TLS settings.

    Nothing of the script goes along: no cookie, no credential, no header but its User-Agent.
    """
    started = time.monotonic()
    headers = {**step.headers, "User-Agent": call.user_agent or SKIP_HEADER}
    request = requests.Request("GET", step.target.url, headers=headers).prepare()
    timeout = _capped(settings.get("timeout"), step.timeout)
    with Hand(step.target, "GET", store, None):
        try:
            response = send(request, **{**settings, "stream": True, "timeout": timeout})
        except requests.RequestException as error:
            return Reply(None, error=error, elapsed=time.monotonic() - started)
        with response:
            body, broken = _read(response, step.max_bytes, started + step.timeout)
    return Reply(
        status=response.status_code,
        headers={name.lower(): value for name, value in response.headers.items()},
        body=body,
        broken=broken,
        elapsed=time.monotonic() - started,
    )


def _read(response: Response, max_bytes: int, deadline: float) -> tuple[bytes, str | None]:
    """Return as much of a body as is wanted, and what is wrong with it."""
    try:
        body = Body(max_bytes, response.headers.get("Content-Encoding"))
        # Whatever has come in: waiting for more would let a slow site stretch the deadline.
        while chunk := response.raw.read1(_CHUNK, decode_content=False):
            if not body.feed(chunk):
                break
            if time.monotonic() > deadline:
                return b"", "its body takes too long"
        return body.content(), None
    except BrokenBody as broken:
        return b"", str(broken)
    except (urllib3.exceptions.HTTPError, OSError) as error:
        return b"", f"its body ends early ({error})"


def _capped(timeout: Any, seconds: float) -> tuple[float, float]:
    """Return the script's own connect and read timeouts, each no longer than ``seconds``."""
    if isinstance(timeout, urllib3.Timeout):
        timeout = (timeout.connect_timeout, timeout.read_timeout)
    elif not isinstance(timeout, tuple):
        timeout = (timeout, timeout)
    return _least(timeout[0], seconds), _least(timeout[1], seconds)


def _least(timeout: Any, seconds: float) -> float:
    return min(timeout, seconds) if isinstance(timeout, int | float) else seconds
