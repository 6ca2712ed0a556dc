"""What the test site and its server tell each other: answers to give, arrivals seen.

Both cross a pipe as JSON. Bytes travel as Latin-1 text, which keeps every byte.
"""

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias


@dataclass(frozen=True, slots=True)
class Answer:
    """One response of the test site, or one way of failing to give it.

    status: any number; it need not be a registered one.
    headers: sent as they are; Content-Length, Transfer-Encoding, Content-Type and Date are added
        where they are missing. "Transfer-Encoding: chunked" makes the body chunked, an ETag or
        Last-Modified that the request repeats makes the answer a 304.
    delay: seconds before the response headers; ``math.inf`` = never, until the client goes away.
    drip: (bytes, seconds): the body in pieces of so many bytes, so many seconds before each.
    close: where the connection is closed: "before" anything is sent, within the "headers", or
        within the "body", of which more is announced than comes.
    endless: the body is repeated until the client goes away.
    """

    status: int = 200
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    delay: float = 0.0
    drip: tuple[int, float] | None = None
    close: Literal["before", "headers", "body"] | None = None
    endless: bool = False

    def header(self, name: str) -> str | None:
        """Return the value of the header called ``name`` in any case, or None."""
        return next((v for k, v in self.headers.items() if k.lower() == name.lower()), None)


@dataclass(frozen=True, slots=True)
class Arrival:
    """One request line as the site read it, in the order of reading.

    time: ``time.monotonic()`` of the site's process when the line had been read; on Linux and
        macOS the clock is the same for all processes.
    host: the address it was received on, without brackets.
    port: the site's port.
    method, target: as sent.
    headers: by lower-case name, repeated ones joined with a comma. Empty, or some of them, where
        the client went away before the rest.
    connection: the number of the connection, from 0.
    """

    time: float
    host: str
    port: int
    method: str
    target: str
    headers: dict[str, str]
    connection: int


Answers: TypeAlias = Answer | bytes | str | Sequence[Answer | bytes | str]
"""Answers to successive requests, of which the last is repeated; text and bytes are a 200."""


def dump_answers(answers: Answers) -> list[dict[str, Any]]:
    """Return ``answers`` as one JSON value each. Raises ValueError if there are none."""
    series = [answers] if isinstance(answers, Answer | bytes | str) else list(answers)
    if not series:
        raise ValueError("a sequence of answers needs at least one answer")
    return [_dump_answer(answer) for answer in series]


def _dump_answer(answer: Answer | bytes | str) -> dict[str, Any]:
    if isinstance(answer, str):
        answer = answer.encode()
    if isinstance(answer, bytes):
        answer = Answer(body=answer)
    # Not dataclasses.asdict, which would deep-copy every body.
    fields = {f.name: getattr(answer, f.name) for f in dataclasses.fields(answer)}
    return fields | {"body": answer.body.decode("latin-1"), "headers": dict(answer.headers)}


def load_answer(value: dict[str, Any]) -> Answer:
    """Return the answer that ``dump_answers`` wrote as ``value``."""
    drip = value["drip"] and tuple(value["drip"])
    fields: dict[str, Any] = {**value, "body": value["body"].encode("latin-1"), "drip": drip}
    return Answer(**fields)


def dump_arrival(arrival: Arrival) -> list[Any]:
    """Return ``arrival`` as a JSON value."""
    return [getattr(arrival, f.name) for f in dataclasses.fields(arrival)]


def load_arrival(value: list[Any]) -> Arrival:
    """Return the arrival that ``dump_arrival`` wrote as ``value``."""
    return Arrival(*value)
