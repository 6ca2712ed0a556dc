"""The pages that the test site has built in; what each does is written in its target.

A page is a function from the request and the site's counts of visits to an answer. Its query
parameters all have defaults. A path without a page of its own is a small HTML page.
"""

import hashlib
import html
import json
import math
from collections import Counter
from collections.abc import Callable
from typing import TypeAlias
from urllib.request import parse_http_list, parse_keqv_list

from polite_transport.testing.http1 import Request
from polite_transport.testing.values import Answer

Page: TypeAlias = Callable[[Request, Counter[str]], Answer]

_PAGES: dict[str, Page] = {}

_REALM, _NONCE, _USER, _PASSWORD = "loopback", "6c6f6f706261636b", "user", "password"


def answer_for(request: Request, visits: Counter[str]) -> Answer:
    """Return the built-in answer to ``request``; 400 where its parameters make no sense.

    visits: how often each keyed page was asked for; the site keeps it, the pages count in it.
    """
    first = "/" + request.path[1:].partition("/")[0]
    try:
        return _PAGES.get(first, _plain)(request, visits)
    except ValueError as error:
        return Answer(400, f"{error}\n".encode())


def _page(path: str) -> Callable[[Page], Page]:
    """Make the decorated function the page at ``path`` and everywhere below it."""

    def add(page: Page) -> Page:
        _PAGES[path] = page
        return page

    return add


def _plain(request: Request, _: Counter[str]) -> Answer:
    title = html.escape(request.target)
    return Answer(
        body=f"<!doctype html><title>{title}</title><p>This is {title}.</p>\n".encode("latin-1")
    )


@_page("/robots.txt")
def _no_robots(_: Request, __: Counter[str]) -> Answer:
    return Answer(404, b"no robots.txt here\n")


@_page("/redirect")
def _redirect(request: Request, _: Counter[str]) -> Answer:
    """/redirect?to=URL&status=302[&retry_after=SECONDS]."""
    query = request.query
    headers = {"Location": query.get("to", "/")} | _retry_after(query)
    return Answer(int(query.get("status", "302")), b"elsewhere\n", headers)


@_page("/status")
def _status(request: Request, _: Counter[str]) -> Answer:
    """/status/503[?retry_after=SECONDS or date]."""
    status = int(request.path.rpartition("/")[2])
    return Answer(status, f"status {status}\n".encode(), _retry_after(request.query))


@_page("/flaky")
def _flaky(request: Request, visits: Counter[str]) -> Answer:
    """/flaky?key=K&fails=1&status=503[&retry_after=SECONDS]: the first requests of a key fail."""
    query = request.query
    if _fails(request, visits, fails=1):
        return Answer(int(query.get("status", "503")), b"not now\n", _retry_after(query))
    return _plain(request, visits)


@_page("/drop")
def _drop(request: Request, visits: Counter[str]) -> Answer:
    """/drop[?key=K&fails=N]: no answer, to the first N requests of the key or to all."""
    if _fails(request, visits, fails=math.inf):
        return Answer(close="before")
    return _plain(request, visits)


@_page("/slow")
def _slow(request: Request, _: Counter[str]) -> Answer:
    """/slow?headers=0&body=0&size=1000: seconds before the headers, seconds over the body."""
    query = request.query
    size, seconds = int(query.get("size", "1000")), float(query.get("body", "0"))
    piece = max(1, math.ceil(size / 10))
    drip = (piece, seconds / math.ceil(size / piece)) if seconds and size else None
    return Answer(body=b"x" * size, delay=float(query.get("headers", "0")), drip=drip)


@_page("/stall")
def _stall(_: Request, __: Counter[str]) -> Answer:
    return Answer(delay=math.inf)


@_page("/large")
def _large(request: Request, _: Counter[str]) -> Answer:
    """/large?size=BYTES."""
    return Answer(body=b"x" * int(request.query.get("size", "1000000")))


@_page("/set-cookie")
def _set_cookie(request: Request, _: Counter[str]) -> Answer:
    """/set-cookie?name=visit&value=1."""
    query = request.query
    cookie = f"{query.get('name', 'visit')}={query.get('value', '1')}; Path=/"
    return Answer(body=b"a cookie\n", headers={"Set-Cookie": cookie})


@_page("/echo")
def _echo(request: Request, _: Counter[str]) -> Answer:
    """/echo: method, target, headers and body (bytes that are not UTF-8 escaped) as JSON."""
    seen = {
        "method": request.method,
        "target": request.target,
        "headers": request.headers,
        "body": request.body.decode(errors="backslashreplace"),
    }
    return Answer(body=json.dumps(seen).encode(), headers={"Content-Type": "application/json"})


@_page("/digest")
def _digest(request: Request, visits: Counter[str]) -> Answer:
    """/digest: for user "user" with password "password". Source: RFC 7616 section 3.4.1, MD5."""
    scheme, _, credentials = request.headers.get("authorization", "").partition(" ")
    if scheme.lower() == "digest":
        given = parse_keqv_list(parse_http_list(credentials))
        shared = ":".join(given.get(name, "") for name in ("nonce", "nc", "cnonce", "qop"))
        secret = _md5(f"{_USER}:{_REALM}:{_PASSWORD}")
        wanted = _md5(f"{secret}:{shared}:{_md5(f'{request.method}:{request.target}')}")
        named = (given.get("username"), given.get("nonce"), given.get("uri"))
        if named == (_USER, _NONCE, request.target) and given.get("response") == wanted:
            return _plain(request, visits)
    challenge = f'Digest realm="{_REALM}", nonce="{_NONCE}", qop="auth", algorithm=MD5'
    return Answer(401, b"who are you?\n", {"WWW-Authenticate": challenge})


def _md5(text: str) -> str:
    return hashlib.md5(text.encode("latin-1"), usedforsecurity=False).hexdigest()


def _retry_after(query: dict[str, str]) -> dict[str, str]:
    return {"Retry-After": query["retry_after"]} if "retry_after" in query else {}


def _fails(request: Request, visits: Counter[str], fails: float) -> bool:
    key = f"{request.path} {request.query.get('key', '')}"
    visits[key] += 1
    return visits[key] <= float(request.query.get("fails", fails))
