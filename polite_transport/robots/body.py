"""The bytes of a robots.txt as they come off the wire, decoded and cut; sans-IO."""

import zlib

# Without deflate: servers send it in two forms under that one name (RFC 9110 section 8.4.1.2).
ACCEPT_ENCODING = "gzip, identity"
_ZLIB_OR_GZIP = 32 + zlib.MAX_WBITS


class BrokenBody(Exception):
    """A robots.txt body that ended early or cannot be decoded."""


class Body:
    """Collects one response body.

    limit: bytes wanted (RFC 9309 section 2.5). One byte more is kept, so that the parser can tell
        a file that was cut from one that ends there.
    content_encoding: the header, or None.

    Decoding stops at the limit as well: a few kilobytes of gzip can hold gigabytes.
    Raises BrokenBody, here and from ``feed``, for an encoding we did not ask for or broken data.
    """

    def __init__(self, limit: int, content_encoding: str | None) -> None:
        self._wanted = limit + 1
        self._content = bytearray()
        self._begun = False
        encodings = [
            each.strip().lower() for each in (content_encoding or "").split(",") if each.strip()
        ]
        encodings = [each for each in encodings if each != "identity"]
        if len(encodings) > 1 or not set(encodings) <= {"gzip", "x-gzip", "deflate"}:
            raise BrokenBody(f"its Content-Encoding is {content_encoding!r}")
        self._decoder = zlib.decompressobj(_ZLIB_OR_GZIP) if encodings else None

    def feed(self, chunk: bytes) -> bool:
        """Take the next raw bytes; return whether more are wanted."""
        self._begun = self._begun or bool(chunk)
        if self._decoder is None:
            self._content += chunk[: self._wanted - len(self._content)]
        else:
            self._decode(chunk)
        return len(self._content) < self._wanted

    def _decode(self, chunk: bytes) -> None:
        decoder = self._decoder
        while chunk and len(self._content) < self._wanted and decoder is not None:
            try:
                self._content += decoder.decompress(chunk, self._wanted - len(self._content))
            except zlib.error as error:
                raise BrokenBody(f"its compressed body is broken: {error}") from error
            # A gzip file may be several members in a row (RFC 1952 section 2.2).
            # Zeros behind the last one fill up a block.
            chunk = decoder.unused_data.lstrip(b"\0") if decoder.eof else decoder.unconsumed_tail
            if decoder.eof and chunk:
                decoder = self._decoder = zlib.decompressobj(_ZLIB_OR_GZIP)

    def content(self) -> bytes:
        """Return the decoded bytes, once the response has ended or no more is wanted.

        Raises BrokenBody where compressed data ended before its own end mark.
        """
        whole = self._decoder is None or self._decoder.eof or not self._begun
        if not whole and len(self._content) < self._wanted:
            raise BrokenBody("its compressed body ends early")
        return bytes(self._content)
