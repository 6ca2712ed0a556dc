"""Any client's response, read the same way: URL, header lines, markup. No client is imported.

A library that joins the lines of one header with commas loses where a bot's scope ends, so the
lines come from wherever the client still has them apart.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import Any, TypeAlias, cast

from polite_transport.page.markup import Markup, read_markup

Headers: TypeAlias = "Mapping[str, str] | Iterable[tuple[str | bytes, str | bytes]]"
Plain: TypeAlias = "tuple[str, Headers, bytes | str]"

# Who keeps header lines apart: urllib3 and Scrapy, httpx, aiohttp and multidict, the standard
# library. Each call gives the lines of one name, and None or nothing where there are none.
_LINES_OF = ("getlist", "get_list", "getall", "get_all")
_BODIES = ("content", "body", "data")  # requests and httpx, Scrapy, urllib3

_ABSOLUTE = re.compile(r"[A-Za-z][A-Za-z0-9+.\-]*:")
_MIME = re.compile(r"[^\s;,/]+/[^\s;,]+")
_CHARSET = re.compile(r";\s*charset\s*=\s*[\"']?([^\s\"';,]+)", re.IGNORECASE)


class Answer:
    """One response.

    response: of requests, httpx, urllib3 or Scrapy, or a plain (url, headers, body). Its body is
        read only if it is a page.
    """

    def __init__(self, response: object) -> None:
        self._response = response
        self._decision = _decision_of(response)
        plain = _plain(response)
        if plain is not None:
            url, headers, _ = plain
            self._headers = headers if hasattr(headers, "items") else list(headers)
        else:
            url = str(getattr(response, "url", None) or "")
            self._headers = _headers_of(response)
            if not _ABSOLUTE.match(url):
                # urllib3 knows what stood in the request line, and no host.
                url = getattr(self._decision, "url", "")
        if not _ABSOLUTE.match(url):
            raise ValueError(
                f"no absolute URL is known for this {type(response).__name__}: pass "
                "(url, response.headers, body) instead"
            )
        self.url: str = url

    def lines(self, name: str) -> list[str]:
        """Return the lines of the header ``name`` in the order received."""
        return header_lines(self._headers, name)

    @property
    def product_token(self) -> str | None:
        """The product token that the request was made under, where the response says so."""
        token = getattr(self._decision, "product_token", None)
        return token if isinstance(token, str) else None

    @cached_property
    def markup(self) -> Markup | None:
        """The page, or None where the response is something else.

        Raises MissingParser.
        """
        content_type = next(reversed(self.lines("Content-Type")), "")
        mime = _MIME.match(content_type.strip())
        kind = mime[0].lower() if mime else "text/html"  # undeclared: it is read, to be sure
        is_xhtml = kind.endswith("xhtml+xml")
        if kind != "text/html" and not is_xhtml:
            return None
        charset = _CHARSET.search(content_type)
        return read_markup(self._body(), charset[1] if charset else None, is_xhtml=is_xhtml)

    def _body(self) -> bytes | str:
        response = self._response
        plain = _plain(response)
        if plain is not None:
            return plain[2]
        for name in _BODIES:
            body = getattr(response, name, None)
            if isinstance(body, bytes):
                return body
        raise TypeError(
            f"no body can be read from {type(response).__name__}: pass (url, response.headers, "
            "body) instead, with the body as bytes"
        )


def header_lines(headers: Any, name: str) -> list[str]:
    """Return the lines of the header ``name``, each by itself where ``headers`` has them so."""
    for method in _LINES_OF:
        lines_of = getattr(headers, method, None)
        if lines_of is not None:
            found = lines_of(name, []) if method == "getall" else lines_of(name)
            return [_text(line) for line in found or ()]
    pairs: Iterable[tuple[Any, Any]] = headers.items() if hasattr(headers, "items") else headers
    return [_text(value) for key, value in pairs if _text(key).lower() == name.lower()]


def _plain(response: object) -> Plain | None:
    return cast("Plain", response) if isinstance(response, tuple) else None


def _text(value: str | bytes) -> str:
    return value.decode("latin-1") if isinstance(value, bytes) else value


def _headers_of(response: object) -> Any:
    # requests joins; urllib3's response below it does not.
    raw = getattr(getattr(response, "raw", None), "headers", None)
    headers = raw if hasattr(raw, "getlist") else getattr(response, "headers", None)
    if headers is None:
        raise TypeError(
            f"{type(response).__name__} has no headers: pass a response or (url, headers, body)"
        )
    return headers


def _decision_of(response: object) -> object:
    """Return the Decision that a client of ours left on the response, or None."""
    polite = getattr(response, "polite", None)
    for place in ("extensions", "meta"):  # httpx, Scrapy
        if polite is None:
            # Scrapy's meta raises AttributeError where no request is tied to the response.
            kept = getattr(response, place, None)
            polite = cast("Mapping[str, object]", kept).get("polite") if kept else None
    return polite
