"""Fetching robots.txt through an adapter of requests."""

from collections.abc import Callable
from typing import Any

import requests
from requests.models import Response
from urllib3.util import SKIP_HEADER

from polite_transport.clients.urllib3.robots import capped, read_reply
from polite_transport.fetching import Fetching
from polite_transport.flow import Call
from polite_transport.robots.access import Reply
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
        return read_reply(
            response.raw, response.status_code, response.headers, hand, step.max_bytes
        )
