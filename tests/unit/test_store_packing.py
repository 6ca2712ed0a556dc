"""Copies of robots.txt as bytes: they come back as they were, or not at all."""

import hashlib
import json
from dataclasses import replace
from typing import Any

import pytest

from polite_transport.robots.access import Access, Copy
from polite_transport.stores.ledger import Packed
from polite_transport.stores.packing import NotACopy, pack, unpack

COPY = Copy(
    robots_url="http://example.org/robots.txt",
    redirected_to="http://cdn.example/robots.txt",
    product_token="MyBot",
    status=200,
    access=Access.FILE,
    body=b"User-agent: *\nDisallow: /\n\xff\x00",
    max_bytes=512_000,
    fetched_at=1_700_000_000.25,
    expires_at=1_700_086_400.5,
    etag='W/"ü"',
    last_modified="Tue, 14 Nov 2023 22:13:20 GMT",
    note="it answers 503; the copy held before counts on",
    failures=3,
)


@pytest.mark.parametrize(
    "copy",
    [
        COPY,
        replace(
            COPY, body=b"", access=Access.UNAVAILABLE, etag=None, note=None, redirected_to=None
        ),
    ],
)
def test_what_was_packed_is_unpacked(copy: Copy) -> None:
    assert unpack(pack(copy)) == copy


def test_one_changed_byte_is_noticed() -> None:
    packed = pack(COPY)
    with pytest.raises(NotACopy, match="digest"):
        unpack(packed._replace(body=packed.body.replace(b"/", b"x")))
    with pytest.raises(NotACopy, match="digest"):
        unpack(packed._replace(head=packed.head.replace(b"200", b"404")))


def test_bytes_cannot_be_moved_from_head_to_body() -> None:
    packed = pack(COPY)
    with pytest.raises(NotACopy, match="digest"):
        unpack(packed._replace(head=packed.head[:-1], body=packed.head[-1:] + packed.body))


def sealed(head: Any, body: bytes = b"") -> Packed:
    """What someone would write who knows how."""
    written = head if isinstance(head, bytes) else json.dumps(head).encode()
    digest = hashlib.sha256(b"%d %b%b" % (len(written), written, body)).digest()
    return Packed(written, body, digest, 0.0)


FACTS = json.loads(pack(COPY).head)


@pytest.mark.parametrize(
    "head",
    [
        b"\x80\x04N.",  # a pickle
        b"{",
        [],
        {},
        {**FACTS, "more": 1},
        {**FACTS, "status": "200"},
        {**FACTS, "status": True},
        {**FACTS, "access": "EVERYTHING"},
        {**FACTS, "etag": 5},
        {**FACTS, "redirected_to": 5},
        {**FACTS, "expires_at": float("inf")},
        {**FACTS, "fetched_at": float("nan")},
        {name: fact for name, fact in FACTS.items() if name != "note"},
    ],
)
def test_what_is_well_sealed_and_no_copy_is_refused(head: Any) -> None:
    with pytest.raises(NotACopy):
        unpack(sealed(head))
