"""Copies of robots.txt as bytes that can be shared: JSON beside the body, and a digest of both.

Never pickle: whoever can write to a store must not be able to run code in those who read it.
"""

import hashlib
import json
import math
from dataclasses import fields
from typing import Any, cast

from polite_transport.robots.access import Access, Copy
from polite_transport.stores.ledger import Packed

_TYPES: dict[str, tuple[type, ...]] = {
    "robots_url": (str,),
    "redirected_to": (str, type(None)),
    "product_token": (str,),
    "status": (int,),
    "access": (str,),
    "max_bytes": (int,),
    "fetched_at": (int, float),
    "expires_at": (int, float),
    "etag": (str, type(None)),
    "last_modified": (str, type(None)),
    "note": (str, type(None)),
    "failures": (int,),
}


class NotACopy(ValueError):
    """What was read is not what was written."""


def pack(copy: Copy) -> Packed:
    """Return a copy as bytes."""
    facts: dict[str, Any] = {each.name: getattr(copy, each.name) for each in fields(copy)}
    body = facts.pop("body")
    facts["access"] = copy.access.name
    head = json.dumps(facts).encode()
    return Packed(head, body, _digest(head, body), copy.expires_at)


def unpack(packed: Packed) -> Copy:
    """Return the copy that was packed. Raises NotACopy where it is not one, whole and unchanged."""
    if _digest(packed.head, packed.body) != packed.digest:
        raise NotACopy("its digest does not fit")
    try:
        read: Any = json.loads(packed.head)
    except ValueError as error:
        raise NotACopy("its head is not JSON") from error
    facts = cast("dict[str, Any]", read) if isinstance(read, dict) else {}
    if facts.keys() != _TYPES.keys():
        raise NotACopy("its head has other fields")
    for name, types in _TYPES.items():
        value = facts[name]
        if not isinstance(value, types) or isinstance(value, bool):
            raise NotACopy(f"its {name} is {value!r}")
    if not math.isfinite(facts["fetched_at"]) or not math.isfinite(facts["expires_at"]):
        raise NotACopy("its dates are not finite")
    if facts["access"] not in Access.__members__:
        raise NotACopy(f"its access is {facts['access']!r}")
    facts["access"] = Access[facts["access"]]
    return Copy(**facts, body=packed.body)


def _digest(head: bytes, body: bytes) -> bytes:
    return hashlib.sha256(b"%d %b%b" % (len(head), head, body)).digest()
