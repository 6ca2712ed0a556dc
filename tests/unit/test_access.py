"""From the HTTP outcome of asking for robots.txt to a copy."""

import gzip
from typing import Any

import pytest

from polite_transport.robots.access import Access, Copy, Reply, access_of, read_copy

NOW = 1_700_000_000.0
DAY = 86_400.0
FILE = b"User-agent: MyBot\nCrawl-delay: 2\nRequest-rate: 1/5\nDisallow: /x\n"


def read(reply: Reply, last: Copy | None = None, **changed: Any) -> Copy:
    options: dict[str, Any] = {
        "robots_url": "http://example.org/robots.txt",
        "product_token": "MyBot",
        "redirected_to": None,
        "endless": False,
        "max_bytes": 512_000,
        "ttl": DAY,
        "now": NOW,
    }
    return read_copy(reply, last=last, **{**options, **changed})


@pytest.mark.parametrize(
    ("status", "access"),
    [
        *((status, Access.FILE) for status in (200, 201, 204, 205, 299)),
        *((status, Access.UNREACHABLE) for status in (206, 226)),  # parts that nobody asked for
        (407, Access.UNREACHABLE),  # a proxy's answer, and not the site's
        *((status, Access.UNAVAILABLE) for status in (400, 401, 403, 404, 410, 428, 430, 499)),
        *((status, Access.UNREACHABLE) for status in (429, 500, 503, 599, 600, 999)),
        *((status, Access.UNREACHABLE) for status in (0, 100, 101, 300, 301, 304, 399)),
    ],
)
def test_every_status_is_one_of_three(status: int, access: Access) -> None:
    assert access_of(Reply(status)) is access
    assert read(Reply(status)).access is access


def test_no_answer_is_unreachable_and_no_copy() -> None:
    assert access_of(Reply(None)) is Access.UNREACHABLE
    with pytest.raises(ValueError, match="no answer"):
        read(Reply(None))


def test_a_broken_body_is_unreachable_whatever_its_status() -> None:
    copy = read(Reply(200, {}, FILE, broken="it ends early"))
    assert (copy.access, copy.body, copy.note) == (Access.UNREACHABLE, b"", "it ends early")


def test_what_a_client_s_own_time_has_ended_keeps_nobody_else_out() -> None:
    late = Reply(200, {"retry-after": "600"}, late=True, broken="the socket was shut down")
    copy = read(late)
    assert (copy.access, copy.note) == (Access.UNREACHABLE, "its body takes too long")
    assert (copy.expires_at, copy.failures) == (NOW, 0)
    held = read(Reply(200, {}, FILE))
    stale = read(late, held, now=NOW + DAY)
    assert (stale.body, stale.expires_at, stale.failures) == (FILE, NOW + DAY + 600, 1)


def test_nor_does_a_proxy_that_misses_a_password() -> None:
    copy = read(Reply(407, {"retry-after": "600"}))
    assert (copy.access, copy.expires_at, copy.failures) == (Access.UNREACHABLE, NOW, 0)


@pytest.mark.parametrize("status", [429, 500, 503])
def test_where_the_status_says_all_a_late_body_changes_nothing(status: int) -> None:
    copy = read(Reply(status, {"retry-after": "600"}, late=True))
    assert (copy.expires_at, copy.failures) == (NOW + 600, 1)


def test_a_copy_stands_in_for_30_days_whatever_the_site_asks() -> None:
    held = read(Reply(200, {}, FILE))
    stale = read(Reply(500, {"retry-after": str(20 * 86_400)}), held, now=NOW + 29 * DAY)
    assert stale.expires_at == NOW + 30 * DAY


@pytest.mark.parametrize(
    ("reply", "failed"),
    [
        (Reply(None), True),
        (Reply(500), True),
        (Reply(200, broken="it ends early"), True),
        (Reply(206, body=FILE), True),
        (Reply(200), False),
        (Reply(404), False),
        (Reply(429), False),
    ],
)
def test_when_asking_again_soon_may_help(reply: Reply, failed: bool) -> None:
    assert reply.failed is failed


def test_a_file_is_kept_with_its_validators() -> None:
    copy = read(Reply(200, {"etag": '"1"', "last-modified": "then"}, FILE))
    assert (copy.body, copy.status, copy.note, copy.failures) == (FILE, 200, None, 0)
    assert (copy.fetched_at, copy.expires_at) == (NOW, NOW + DAY)
    assert copy.conditional_headers == {"If-None-Match": '"1"', "If-Modified-Since": "then"}
    assert copy.asked_delay == 5.0
    assert copy.redirected_to is None


CDN = "http://cdn.example/r"


def test_a_file_found_elsewhere_says_where_and_keeps_no_validators() -> None:
    copy = read(Reply(200, {"etag": '"1"', "last-modified": "then"}, FILE), redirected_to=CDN)
    assert copy.conditional_headers == {}
    assert (copy.robots_url, copy.redirected_to) == ("http://example.org/robots.txt", CDN)


def test_304_from_elsewhere_was_not_asked_for() -> None:
    old = read(Reply(200, {"etag": '"1"'}, FILE))
    copy = read(Reply(304), old, redirected_to=CDN, now=NOW + DAY)
    assert (copy.fetched_at, copy.failures) == (NOW, 1), "it was taken for news of the old file"


@pytest.mark.parametrize("status", [206, 226])
def test_a_part_that_nobody_asked_for_gives_no_rules(status: int) -> None:
    copy = read(Reply(status, {"content-range": "bytes 0-9/99"}, FILE))
    assert (copy.body, copy.failures) == (b"", 1)
    assert copy.note is not None
    assert "part of a file" in copy.note
    broken = read(Reply(status, {}, FILE, broken="it ends early"))
    assert broken.note == "it ends early"


RULES = "User-agent: *\nDisallow: /\n"
NOT_TEXT = "it holds no line for robots: is it text in UTF-8?"


@pytest.mark.parametrize(
    ("body", "odd"),
    [
        (RULES.encode("utf-16"), NOT_TEXT),
        (RULES.encode("utf-16-le"), NOT_TEXT),
        (RULES.encode("utf-32"), NOT_TEXT),
        (gzip.compress(RULES.encode()), NOT_TEXT),
        (bytes(range(256)) * 40, NOT_TEXT),
        (b"\xff", NOT_TEXT),
        (b"Not found", "it holds no line for robots"),
        ("nicht verf\u00fcgbar\n".encode(), "it holds no line for robots"),
        (b'{"error": "no such page"}', "it holds no line for robots"),
        (b"Noindex: /\n", "it holds no line for robots"),
        (b"Disallow: /\n", "its rules stand under no User-agent line and count for nobody"),
        (b"Sitemap: /s\nAllow: /\nCrawl-delay: 2", "its rules stand under no User-agent line and"),
        *((body, None) for body in (b"", b"\n \t\r\n", b"\xef\xbb\xbf", b"\xef\xbb\xbf# hello\n")),
        *((body, None) for body in (b"Sitemap: /s", b"Crawl-delay: 5", b"License: /l", FILE)),
        (b"User-agent: *", None),
        (b"\xff\xfe\n" + FILE, None),
        (b"<html><p>Not here", None),  # it has its own word
    ],
)
def test_a_file_that_says_nothing_to_anyone_is_odd(body: bytes, odd: str | None) -> None:
    found = read(Reply(200, {}, body)).oddity
    assert (found or "").startswith(odd or "")
    assert (found is None) is (odd is None)


def test_only_what_is_read_of_a_file_can_be_odd() -> None:
    assert read(Reply(200, {}, b"# fine\n" + b"\xff" * 9), max_bytes=8).oddity is None
    assert read(Reply(404, {}, b"Not found")).oddity is None


def test_it_knows_which_line_its_delay_comes_from() -> None:
    assert read(Reply(200, {}, FILE)).delay_record == ("request-rate", "1/5", 3)
    assert read(Reply(200, {}, b"Crawl-delay: 2")).delay_record == ("crawl-delay", "2", 1)
    assert read(Reply(200, {}, b"User-agent: a\nCrawl-delay: 2")).delay_record is None


@pytest.mark.parametrize("status", [404, 403, 503])
def test_no_rules_are_taken_from_an_error_page(status: int) -> None:
    copy = read(Reply(status, {"etag": '"1"'}, FILE))
    assert copy.body == b""
    assert copy.asked_delay == 0.0
    assert copy.digest is None
    assert copy.conditional_headers == {}


def test_304_makes_the_old_copy_new() -> None:
    old = read(Reply(200, {"etag": '"1"'}, FILE))
    outage = read(Reply(503), old, now=NOW + DAY)
    copy = read(Reply(304, {"cache-control": "max-age=7200"}), outage, now=NOW + DAY + 60)
    assert (copy.body, copy.status, copy.access) == (FILE, 200, Access.FILE)
    assert (copy.fetched_at, copy.expires_at) == (NOW + DAY + 60, NOW + DAY + 60 + 7_200)
    assert (copy.failures, copy.note) == (0, None)


@pytest.mark.parametrize("last", [None, read(Reply(200, {}, FILE)), read(Reply(404))])
def test_304_that_was_not_asked_for_is_no_answer(last: Copy | None) -> None:
    copy = read(Reply(304), last, now=NOW + DAY)
    assert copy.failures == 1
    assert copy.access is (
        last.access if last and last.access is Access.FILE else Access.UNREACHABLE
    )
    assert copy.expires_at == NOW + DAY + 60


def test_a_redirect_too_many_is_unavailable_and_told() -> None:
    copy = read(Reply(302), endless=True)
    assert copy.access is Access.UNAVAILABLE
    assert copy.note is not None
    assert "redirects" in copy.note


@pytest.mark.parametrize("status", [500, 429])
def test_an_outage_leaves_the_last_file_in_force(status: int) -> None:
    old = read(Reply(200, {}, FILE))
    first = read(Reply(status), old, now=NOW + DAY)
    assert (first.body, first.access, first.status) == (FILE, Access.FILE, 200)
    assert (first.fetched_at, first.failures) == (NOW, 1)
    assert first.expires_at == NOW + DAY + 60
    second = read(Reply(status, {"retry-after": "7"}), first, now=NOW + DAY + 60)
    assert (second.failures, second.expires_at) == (2, NOW + DAY + 67)
    last_day = read(Reply(status), second, now=NOW + 30 * DAY)
    assert last_day.access is Access.FILE
    too_old = read(Reply(status), last_day, now=NOW + 30 * DAY + 1)
    assert (too_old.access, too_old.body) == (Access.UNREACHABLE, b"")
    assert too_old.failures == 4


@pytest.mark.parametrize("last", [Reply(404), Reply(403), Reply(503)])
def test_only_a_file_speaks_for_an_outage(last: Reply) -> None:
    assert read(Reply(500), read(last)).access is Access.UNREACHABLE


@pytest.mark.parametrize(
    ("body", "is_html"),
    [
        (b"<!DOCTYPE html><title>Home</title>", True),
        (b"\n\n  <HTML lang=en>", True),
        (b"<!-- -->" + b" " * 900 + b"<body>", True),
        (b" " * 1_100 + b"<html>", False),
        (b"<htmlish>", False),
        (b"<html>\nUser-agent: *\nDisallow: /\n", False),
        (b"User-agent: *\nDisallow: /<html>\n", False),
        (b"<html>\nsitemap: '/x',\nUser-agent: foo\nCrawl-delay: 5\n", True),
        (b"<div>Not found</div>", True),
        (b"Sitemap: http://example.org/", False),
        (b"User-agent: *\nDisallow:\n# <p>", False),
        (b"", False),
    ],
)
def test_a_web_page_is_told_from_a_file(body: bytes, is_html: bool) -> None:
    assert read(Reply(200, {}, body)).is_html is is_html


def test_an_error_page_is_no_web_page_in_place_of_a_file() -> None:
    assert not read(Reply(404, {}, b"<html>")).is_html
