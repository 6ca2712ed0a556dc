"""``page_directives``: all that one page asks, for one product token; the most restrictive wins."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING
from urllib.parse import urljoin

from polite_transport.pacing.retry_after import http_seconds
from polite_transport.page.answer import Answer
from polite_transport.page.directives import (
    Directive,
    Place,
    read_header_line,
    read_meta,
    same_bot,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from polite_transport.page.answer import Plain
    from polite_transport.page.markup import Tag

# Further names that say the same, or say it among other things.
_ALSO = {"noindex": ("none",), "nofollow": ("none",), "noarchive": ("nocache",)}
_TDM = ("tdm-reservation", "tdm-policy")
_NUMBER = re.compile(r"-1|[0-9]{1,18}")  # -1 = without limit
_UNLIMITED = -1
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_IMAGE_SIZES = ("none", "standard", "large")  # the strictest first


@dataclass(frozen=True, slots=True)
class PageDirectives:
    """What a page asks of one robot.

    url: of the page. product_token: whom it was read for; empty = only what every bot is told.
    stated: every directive that holds for it, headers first, each in its order.

    Any name can be asked for: ``"notranslate" in directives``, ``directives.find("notranslate")``.
    """

    url: str
    product_token: str
    stated: tuple[Directive, ...]

    def find(self, name: str) -> Directive | None:
        """Return the first directive that says ``name``, in its own or in other words."""
        names = (name.lower(), *_ALSO.get(name.lower(), ()))
        return next((each for each in self.stated if each.name in names), None)

    def __contains__(self, name: str) -> bool:
        return self.find(name) is not None

    @property
    def noindex(self) -> bool:
        """Whether the page must be kept out of indexes."""
        return "noindex" in self

    @property
    def nofollow(self) -> bool:
        """Whether none of the page's links may be used."""
        return "nofollow" in self

    @property
    def noarchive(self) -> bool:
        """Whether no copy of the page may be shown."""
        return "noarchive" in self

    @property
    def noai(self) -> bool:
        """Whether the page must not be used for machine learning (a convention of 2022)."""
        return "noai" in self

    @property
    def noimageai(self) -> bool:
        """Whether its images must not be (likewise)."""
        return "noimageai" in self

    @property
    def max_snippet(self) -> int | None:
        """The longest snippet in characters; -1 = any length, None = nothing is said."""
        return 0 if "nosnippet" in self else self._least("max-snippet")

    @property
    def max_video_preview(self) -> int | None:
        """The longest preview in seconds; -1 = any length, None = nothing is said."""
        return self._least("max-video-preview")

    @property
    def max_image_preview(self) -> str | None:
        """``none``, ``standard`` or ``large``; None = nothing is said."""
        said = {each.value.lower() for each in self.stated if each.name == "max-image-preview"}
        return next((size for size in _IMAGE_SIZES if size in said), None)

    @property
    def unavailable_after(self) -> datetime | None:
        """When the page must be gone from indexes: aware, in UTC, the earliest that can be read."""
        said = (each.value for each in self.stated if each.name == "unavailable_after")
        return min(filter(None, map(_moment, said)), default=None)

    @property
    def tdm_reserved(self) -> bool | None:
        """Whether text and data mining is reserved; None = nothing is said.

        What a meta says replaces what the header says.
        Source: W3C TDM Reservation Protocol, final community group report.
        """
        for kind in ("meta", "header"):
            said = {each.value for each in self._tdm("tdm-reservation", kind)} & {"0", "1"}
            if said:
                return "1" in said
        return None

    @property
    def tdm_policy(self) -> str | None:
        """The address of the policy under which mining may be had, where it is reserved."""
        if not self.tdm_reserved:
            return None
        said = [*self._tdm("tdm-policy", "meta"), *self._tdm("tdm-policy", "header")]
        return next((joined for each in said if (joined := _joined(self.url, each.value))), None)

    def _tdm(self, name: str, kind: str) -> Iterator[Directive]:
        return (each for each in self.stated if each.name == name and each.place.kind == kind)

    def _least(self, name: str) -> int | None:
        said = {
            int(each.value)
            for each in self.stated
            if each.name == name and _NUMBER.fullmatch(each.value)
        }
        return min(said - {_UNLIMITED}, default=_UNLIMITED if said else None)


def page_directives(response: object | Plain, product_token: str | None = None) -> PageDirectives:
    """Return what a page asks of robots, in its headers and its markup.

    response: of requests, httpx, urllib3 or Scrapy, or a plain (url, headers, body) with the body
        in bytes. Of what is no page, only the headers are read, and the body is left alone.
    product_token: whose directives count, beside those for every bot. None = that of the request,
        where a client of ours sent it, else only those for every bot.

    Raises MissingParser where the response is a page and the extra ``html`` is not installed.
    """
    answer = Answer(response)
    return directives_of(answer, token_for(answer, product_token) or "")


def token_for(answer: Answer, product_token: str | None) -> str | None:
    """Return the product token to read a response for, or None where nobody named one."""
    return answer.product_token if product_token is None else product_token


def directives_of(answer: Answer, product_token: str) -> PageDirectives:
    """Return the directives of a response that is already taken apart."""
    tags = answer.markup.tags if answer.markup else ()
    stated = [*_in_headers(answer, product_token)]
    for tag in tags:
        if tag.name == "meta":
            stated += _in_meta(tag, product_token)
    return PageDirectives(answer.url, product_token, tuple(stated))


def _in_headers(answer: Answer, product_token: str) -> Iterator[Directive]:
    for number, line in enumerate(answer.lines("X-Robots-Tag"), 1):
        yield from read_header_line(line, Place("header", "X-Robots-Tag", number), product_token)
    for name in _TDM:
        for number, line in enumerate(answer.lines(name), 1):
            yield Directive(name, line.strip(), Place("header", name, number))


def _in_meta(tag: Tag, product_token: str) -> Iterator[Directive]:
    content = tag.attributes.get("content", "")
    name = tag.attributes.get("name", "").strip()
    if tag.attributes.get("http-equiv", "").strip().lower() == "x-robots-tag":
        yield from read_header_line(content, Place("meta", "X-Robots-Tag", tag.line), product_token)
    elif name.lower() == "robots":
        yield from read_meta(content, Place("meta", name, tag.line))
    elif name.lower() in _TDM:
        yield Directive(name.lower(), content.strip(), Place("meta", name, tag.line))
    elif same_bot(name, product_token):
        yield from read_meta(content, Place("meta", name, tag.line), name)


def _moment(text: str) -> datetime | None:
    """Return a date of RFC 822, RFC 850 or ISO 8601; one without a zone is read as UTC."""
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        seconds = http_seconds(text)
        return None if seconds is None else _EPOCH + timedelta(seconds=seconds)
    try:
        return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).astimezone(UTC)
    except OverflowError:
        return None


def _joined(base: str, url: str) -> str | None:
    try:
        return urljoin(base, url.strip()) or None
    except ValueError:
        return None
