"""What is written on a request of urllib3, and on its response."""

from typing import Any

import urllib3
from urllib3.response import BaseHTTPResponse
from urllib3.util import SKIP_HEADER

from polite_transport.decision import Decision
from polite_transport.visitor import Visitor

# What urllib3 sends where none is set.
URLLIB3_UA = f"python-urllib3/{urllib3.__version__}"  # type: ignore[attr-defined]


def with_user_agent(who: Visitor, url: str, headers: Any) -> tuple[Any, str | None]:
    """Return a request's headers with the User-Agent that is to be sent, and that User-Agent.

    The script's own mapping stays as it is. None = none is sent.
    """
    # urllib3 takes bytes for either, and a dict may hold several spellings of the name.
    names = [name for name in headers or () if _text(name).lower() == "user-agent"]
    sent = _text(headers[names[-1]]) if names else None
    ua = who.instead_of(sent, url, chosen=sent not in (URLLIB3_UA, SKIP_HEADER))
    if ua is None and len(names) == 1:
        return headers, None if sent == SKIP_HEADER else sent
    # urllib3 would add its own further down, unchecked; and of several the site would see all.
    chosen = ua or sent or URLLIB3_UA
    written: Any = {} if headers is None else headers.copy()
    for name in names[:-1]:
        del written[name]
    written[names[-1] if names else "User-Agent"] = chosen
    return written, None if chosen == SKIP_HEADER else chosen


def host_in(headers: Any) -> str | None:
    """Return the Host header that a script has set, or None; several are none that can be read."""
    found = {_text(headers[name]) for name in headers if _text(name).lower() == "host"}
    found.discard(SKIP_HEADER)
    return ", ".join(sorted(found)) or None


def _text(name_or_value: Any) -> str:
    is_bytes = isinstance(name_or_value, bytes)
    return name_or_value.decode("latin-1") if is_bytes else str(name_or_value)


def with_decision(response: BaseHTTPResponse, decision: Decision) -> BaseHTTPResponse:
    """Put a Decision on a response that has none: that of its last hop stays."""
    polite: Any = response
    if getattr(response, "polite", None) is None:
        polite.polite = decision
    return response
