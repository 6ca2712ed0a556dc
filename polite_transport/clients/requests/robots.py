"""Fetching robots.txt through an adapter of requests."""

from collections.abc import Callable, Mapping
from io import BytesIO
from typing import Any

import requests
from requests.models import Response
from urllib3.response import BaseHTTPResponse
from urllib3.util import SKIP_HEADER

from polite_transport.clients.urllib3.robots import capped, read_reply
from polite_transport.flow import Call
from polite_transport.robots.access import Reply
from polite_transport.sending.fetching import Fetching
from polite_transport.steps import Fetch
from polite_transport.stores.base import Store


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
    headers = {**step.headers, "User-Agent": call.user_agent or SKIP_HEADER}
    request = requests.Request("GET", step.target.url, headers=headers).prepare()
    timeout = capped(settings.get("timeout"), step.timeout)
    with Fetching(step.target, store, step.timeout) as hand:
        try:
            response = send(request, **{**settings, "stream": True, "timeout": timeout})
        except requests.RequestException as error:
            return Reply(None, error=error, elapsed=hand.elapsed)
        raw: Any = response.raw
        if has_content(response):
            raw = _Foreign(BytesIO(response.content or b""), None)
        elif not isinstance(raw, BaseHTTPResponse):
            raw = _Foreign(raw, response.headers)
        return read_reply(raw, response.status_code, response.headers, hand, step.max_bytes)


def has_content(response: Response) -> bool:
    """Whether an adapter has read the body already, so that nothing of it is still to come."""
    return response.raw is None or vars(response).get("_content", False) is not False


class _Foreign:
    """A body that is not read from urllib3, with as much of urllib3's face as is needed.

    headers: those that tell how long it is; None where it is known to be whole.
    """

    def __init__(self, file: Any, headers: Mapping[str, str] | None) -> None:
        self._file = file
        announced = "" if headers is None else headers.get("Content-Length", "")
        # What was encoded may have been decoded on the way, and is as long as it likes.
        counts = headers is not None and "Content-Encoding" not in headers and announced.isdigit()
        self._missing = int(announced) if counts else 0

    def read1(self, size: int, *, decode_content: bool) -> bytes:  # noqa: ARG002 - it is never done
        chunk: bytes = self._file.read(size)
        self._missing -= len(chunk)
        if not chunk and self._missing > 0:
            raise OSError(f"{self._missing} bytes are missing")
        return chunk

    def close(self) -> None:
        self._file.close()
