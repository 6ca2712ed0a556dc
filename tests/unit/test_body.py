"""The bytes of a robots.txt as they come off the wire."""

import gzip
import zlib

import pytest

from polite_transport.robots.body import ACCEPT_ENCODING, Body, BrokenBody

FILE = b"User-agent: *\nDisallow: /private\n"


def read(chunks: list[bytes], encoding: str | None = None, limit: int = 1_000) -> bytes:
    """Read as a client does: until no more is wanted, or nothing more comes."""
    body = Body(limit, encoding)
    for chunk in chunks:
        if not body.feed(chunk):
            break
    return body.content()


def deflated(content: bytes) -> bytes:
    return zlib.compress(content)


@pytest.mark.parametrize("size", [1, 2, 7, 1_000])
@pytest.mark.parametrize(
    ("encoding", "encode"),
    [
        (None, bytes),
        ("", bytes),
        ("identity", bytes),
        ("gzip", gzip.compress),
        ("GZip", gzip.compress),
        ("x-gzip", gzip.compress),
        (" gzip , identity", gzip.compress),
        ("deflate", deflated),
    ],
)
def test_it_comes_out_as_it_went_in(encoding: str | None, encode: object, size: int) -> None:
    wire = encode(FILE)  # type: ignore[operator]
    assert read([wire[at : at + size] for at in range(0, len(wire), size)], encoding) == FILE


def test_no_body_is_an_empty_file() -> None:
    for encoding in (None, "gzip", "deflate"):
        assert read([], encoding) == b""
        assert read([b""], encoding) == b""


def test_a_gzip_file_may_be_several_members() -> None:
    wire = gzip.compress(FILE) + gzip.compress(b"# more\n")
    for size in (1, 5, len(wire)):
        chunks = [wire[at : at + size] for at in range(0, len(wire), size)]
        assert read(chunks, "gzip") == FILE + b"# more\n"


@pytest.mark.parametrize("size", [1, 5, 1_000])
def test_zeros_behind_it_are_none_of_it(size: int) -> None:
    wire = gzip.compress(FILE) + bytes(20)
    assert read([wire[at : at + size] for at in range(0, len(wire), size)], "gzip") == FILE


@pytest.mark.parametrize("encoding", [None, "gzip"])
def test_one_byte_more_than_wanted_is_kept_and_no_more_is_read(encoding: str | None) -> None:
    body = Body(100, encoding)
    assert not body.feed(b"x" * 10**6 if encoding is None else gzip.compress(b"x" * 10**6))
    assert body.content() == b"x" * 101


def test_exactly_what_is_wanted_asks_for_one_byte_more() -> None:
    body = Body(100, None)
    assert body.feed(b"x" * 100)
    assert body.content() == b"x" * 100
    assert not body.feed(b"x")


def test_a_bomb_is_not_unpacked() -> None:
    inner = zlib.compressobj(9, zlib.DEFLATED, 31)
    bomb = b"".join(inner.compress(bytes(10**7)) for _ in range(30)) + inner.flush()
    body = Body(512_000, "gzip")
    assert not body.feed(bomb)
    assert len(body._content) == 512_001, "300 MB were unpacked"
    assert len(body.content()) == 512_001


def test_a_bomb_of_many_empty_members_ends() -> None:
    assert read([gzip.compress(b"") * 20_000], "gzip") == b""


@pytest.mark.parametrize("cut", [1, 4, 8, 9, 12])
@pytest.mark.parametrize("encode", [gzip.compress, deflated])
def test_a_truncated_body_is_broken(cut: int, encode: object) -> None:
    wire = encode(FILE * 20)  # type: ignore[operator]
    encoding = "gzip" if encode is gzip.compress else "deflate"
    with pytest.raises(BrokenBody, match="ends early"):
        read([wire[:-cut]], encoding)


def test_a_body_truncated_within_its_header_is_broken() -> None:
    for encode, encoding in ((gzip.compress, "gzip"), (deflated, "deflate")):
        with pytest.raises(BrokenBody):
            read([encode(FILE)[:1]], encoding)


def test_a_body_truncated_in_its_second_member_is_broken() -> None:
    with pytest.raises(BrokenBody):
        read([gzip.compress(FILE) + gzip.compress(FILE)[:-4]], "gzip")


def test_truncated_beyond_the_limit_nobody_cares() -> None:
    assert read([gzip.compress(FILE * 100)[:-9]], "gzip", limit=10) == FILE[:11]


@pytest.mark.parametrize("wire", [FILE, b"\x1f\x8b\x08garbage here and more", b"<html>"])
def test_what_is_not_compressed_at_all_is_broken(wire: bytes) -> None:
    with pytest.raises(BrokenBody):
        read([wire], "gzip")


def test_a_wrong_checksum_is_broken() -> None:
    wire = bytearray(gzip.compress(FILE))
    wire[-6] ^= 1
    with pytest.raises(BrokenBody, match="broken"):
        read([bytes(wire)], "gzip")


@pytest.mark.parametrize(
    "encoding", ["br", "zstd", "compress", "gzip, gzip", "gzip, br", "gzip;q=1"]
)
def test_what_was_not_asked_for_is_broken(encoding: str) -> None:
    with pytest.raises(BrokenBody, match="Content-Encoding"):
        Body(100, encoding)


def test_all_that_is_asked_for_can_be_decoded() -> None:
    for encoding in ACCEPT_ENCODING.split(","):
        Body(100, encoding.strip())
