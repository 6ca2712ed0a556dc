"""HTTP/1.1 of the test site on asyncio streams: requests read, answers written, well or badly."""

import asyncio
import itertools
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from email.utils import formatdate
from http import HTTPStatus
from urllib.parse import parse_qsl

from polite_transport.testing.values import Answer

LINE_LIMIT = 1 << 20  # bytes of one line: clients under test may send absurd targets
_PIECE = 1 << 16  # bytes written at a time where a body does not drip
_NO_CONTENT = frozenset(
    {204, 304}
)  # never have a body, whatever the method: RFC 9110 section 6.4.1


class BadRequestError(Exception):
    """What was read is not an HTTP/1 request."""


@dataclass(slots=True)
class Request:
    """One request: its line as sent, its headers by lower-case name, its body decoded."""

    method: str
    target: str
    version: str = "HTTP/1.1"
    headers: dict[str, str] = field(default_factory=dict[str, str])
    body: bytes = b""

    @property
    def origin_form(self) -> str:
        """The target without the scheme and host that a client of a proxy puts before it."""
        if not self.target.lower().startswith(("http://", "https://")):
            return self.target
        slash = self.target.find("/", self.target.index("://") + 3)
        return self.target[slash:] if slash >= 0 else "/"

    @property
    def path(self) -> str:
        """The target's path, as sent."""
        return self.origin_form.partition("?")[0]

    @property
    def query(self) -> dict[str, str]:
        """The target's query, decoded; the last of equal names counts."""
        return dict(parse_qsl(self.origin_form.partition("?")[2], keep_blank_values=True))

    @property
    def keeps_alive(self) -> bool:
        """Whether the client keeps the connection: RFC 9112 section 9.3."""
        options = self.headers.get("connection", "").lower()
        return "keep-alive" in options if self.version == "HTTP/1.0" else "close" not in options


async def read_line(reader: asyncio.StreamReader) -> str:
    """Return the next line without its end. Raises IncompleteReadError where the client is gone."""
    line = await reader.readuntil(b"\n")
    return line.decode("latin-1").rstrip("\r\n")


def parse_request_line(line: str) -> Request:
    """Return the request that ``line`` opens; its version is empty where that is missing."""
    method, _, rest = line.partition(" ")
    target, _, version = rest.rpartition(" ")
    if not version.startswith("HTTP/"):
        target, version = rest, ""
    return Request(method, target, version)


async def read_headers(reader: asyncio.StreamReader, headers: dict[str, str]) -> None:
    """Read the header lines into ``headers``, one by one, so that a broken request shows its own.

    Raises BadRequestError at a line without a colon.
    """
    while line := await read_line(reader):
        name, colon, value = line.partition(":")
        if not colon:
            raise BadRequestError(f"header line without a colon: {line!r}")
        name, value = name.lower(), value.strip()
        glue = "; " if name == "cookie" else ", "  # RFC 6265 section 5.4, RFC 9110 section 5.2
        headers[name] = headers[name] + glue + value if name in headers else value


async def read_body(reader: asyncio.StreamReader, headers: dict[str, str]) -> bytes:
    """Return the request's body. Raises BadRequestError where its length makes no sense."""
    try:
        if "chunked" in headers.get("transfer-encoding", "").lower():
            return await _read_chunks(reader)
        return await reader.readexactly(int(headers.get("content-length", "0")))
    except ValueError as error:
        raise BadRequestError(f"body of unclear length: {error}") from error


async def _read_chunks(reader: asyncio.StreamReader) -> bytes:
    body = bytearray()
    while size := int((await read_line(reader)).partition(";")[0], 16):
        body += await reader.readexactly(size)
        await read_line(reader)
    while await read_line(reader):  # trailers
        pass
    return bytes(body)


async def pause(reader: asyncio.StreamReader, seconds: float) -> None:
    """Wait ``seconds``; for infinity, until the client is gone, then raise ConnectionError."""
    if not math.isinf(seconds):
        await asyncio.sleep(seconds)
        return
    while await reader.read(_PIECE):
        pass
    raise ConnectionAbortedError


async def write_answer(
    writer: asyncio.StreamWriter,
    request: Request,
    answer: Answer,
    count: Callable[[int], None],
) -> bool:
    """Write ``answer`` in the way it asks for and tell whether the connection may go on.

    count: called with the number of body bytes that are about to be written.
    Raises ConnectionError where the client is gone.
    """
    if answer.close == "before":
        return False
    bare = request.method == "HEAD" or answer.status in _NO_CONTENT
    chunked = "chunked" in (answer.header("Transfer-Encoding") or "").lower() or (
        answer.endless and request.version != "HTTP/1.0"
    )
    closing = (
        answer.close is not None
        or not request.keeps_alive
        or (answer.header("Connection") or "").lower() == "close"
        or (answer.endless and not chunked)
    )
    head = _head(request, answer, chunked=chunked, closing=closing)
    if answer.close == "headers":
        writer.write(head[: len(head) // 2])
        await writer.drain()
        return False
    if bare:
        writer.write(head)
    elif chunked or answer.drip or answer.endless:
        writer.write(head)
        await _write_pieces(writer, answer, count, chunked=chunked)
        if chunked and answer.close is None:
            writer.write(b"0\r\n\r\n")
    else:
        count(len(answer.body))
        writer.write(head + answer.body)
    await writer.drain()
    return not closing


def _head(request: Request, answer: Answer, *, chunked: bool, closing: bool) -> bytes:
    fields = {
        "Date": formatdate(usegmt=True),
        "Content-Type": "text/plain; charset=utf-8"
        if request.path == "/robots.txt"
        else "text/html; charset=utf-8",
    }
    if chunked:
        fields["Transfer-Encoding"] = "chunked"
    elif answer.status not in _NO_CONTENT and not answer.endless:
        fields["Content-Length"] = str(len(answer.body) + (answer.close == "body"))
    if closing:
        fields["Connection"] = "close"
    given = {name.lower() for name in answer.headers}
    lines = [f"HTTP/1.1 {answer.status} {_phrase(answer.status)}"]
    lines += [f"{name}: {value}" for name, value in fields.items() if name.lower() not in given]
    lines += [f"{name}: {value}" for name, value in answer.headers.items()]
    return "\r\n".join([*lines, "", ""]).encode("latin-1", "replace")


def _phrase(status: int) -> str:
    try:
        return HTTPStatus(status).phrase
    except ValueError:
        return "Unregistered"


async def _write_pieces(
    writer: asyncio.StreamWriter, answer: Answer, count: Callable[[int], None], *, chunked: bool
) -> None:
    size, seconds = answer.drip or (_PIECE, 0.0)
    for piece in _pieces(answer, size):
        await writer.drain()  # also the headers stand by themselves before the first pause
        await asyncio.sleep(seconds)
        count(len(piece))
        writer.write(b"%x\r\n%b\r\n" % (len(piece), piece) if chunked else piece)


def _pieces(answer: Answer, size: int) -> Iterator[bytes]:
    if not answer.endless:
        return (answer.body[i : i + size] for i in range(0, len(answer.body), size))
    stream = itertools.cycle(answer.body or b"#\n")  # a comment, should it be a robots.txt
    return (bytes(itertools.islice(stream, size)) for _ in itertools.count())
