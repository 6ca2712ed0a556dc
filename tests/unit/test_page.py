"""What the corpus of pages cannot say: sentences, options, errors, pages without end."""

import subprocess
import sys
import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest

from polite_transport.page import (
    Directive,
    ExcludedBy,
    MissingParser,
    Place,
    followable_links,
    page_directives,
)
from polite_transport.robots import Verdict, parse_robots

URL = "https://shop.example/dir/page"
HTML = {"Content-Type": "text/html"}


def page(body: str, **headers: str) -> tuple[str, dict[str, str], str]:
    return URL, HTML | {name.replace("_", "-"): value for name, value in headers.items()}, body


# --- directives -------------------------------------------------------------------------------


def test_each_directive_says_where_it_stood() -> None:
    found = page_directives(
        page("<p>\n<meta name=MyBot content='max-snippet: 3'>", X_Robots_Tag="noai, mybot: none"),
        "MyBot",
    )
    assert found.stated == (
        Directive("noai", "", Place("header", "X-Robots-Tag", 1)),
        Directive("none", "", Place("header", "X-Robots-Tag", 1), "mybot"),
        Directive("max-snippet", "3", Place("meta", "MyBot", 2), "MyBot"),
    )
    assert [str(each) for each in found.stated] == [
        "'noai' (line 1 of the X-Robots-Tag header)",
        "'none' for mybot (line 1 of the X-Robots-Tag header)",
        "'max-snippet: 3' for MyBot (<meta> MyBot on line 2)",
    ]


def test_what_decides_can_be_asked_by_any_name() -> None:
    found = page_directives(page("", X_Robots_Tag="nocache, none, NoTranslate"))
    assert "notranslate" in found
    assert "NOTRANSLATE" in found
    assert "nosnippet" not in found
    assert str(found.find("noarchive")) == "'nocache' (line 1 of the X-Robots-Tag header)"
    assert str(found.find("nofollow")) == "'none' (line 1 of the X-Robots-Tag header)"
    assert found.find("noai") is None


def test_a_date_far_from_now_is_a_date_all_the_same() -> None:
    for text in ("9999-12-31T23:59:59-23:59", "0001-01-01T00:00:00+23:59", "99999999999"):
        found = page_directives(page("", X_Robots_Tag=f"unavailable_after: {text}"))
        assert found.unavailable_after is None
    found = page_directives(page("", X_Robots_Tag="unavailable_after: 1 Jan 1900 00:00:00 GMT"))
    assert found.unavailable_after == datetime(1900, 1, 1, tzinfo=UTC)


@pytest.mark.skipif(not hasattr(time, "tzset"), reason="the zone is set as POSIX has it")
def test_a_date_without_a_zone_is_utc_wherever_it_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "UTC-9")
    time.tzset()
    try:
        for text in ("2030-01-02T03:04:05", "2 Jan 2030 03:04:05"):
            found = page_directives(page("", X_Robots_Tag=f"unavailable_after: {text}"))
            assert found.unavailable_after == datetime(2030, 1, 2, 3, 4, 5, tzinfo=UTC)
    finally:
        monkeypatch.undo()
        time.tzset()


def test_what_a_site_says_is_printed_without_control_characters_and_not_endlessly() -> None:
    found = page_directives(page(f"<meta name=robots content='\x1b[31m{'x' * 9999}'>"))
    said = str(found.stated[0])
    assert said.isprintable()
    assert len(said) < 300


# --- links ------------------------------------------------------------------------------------


def test_each_exclusion_is_a_sentence() -> None:
    body = """<a href=mailto:x@shop.example>1</a>
    <a href=http://a,b/>2</a>
    <a href=/3 rel="me nofollow">3</a>
    <a href=/private/4>4</a>"""
    robots = parse_robots(b"User-agent: *\nDisallow: /private\n")
    found = followable_links(page(body), "MyBot", robots=robots)
    assert [str(each) for each in found.excluded] == [
        "mailto:x@shop.example (line 1) is left out: it is neither http nor https",
        "http://a,b/ (line 2) is left out: it is no URL that can be read",
        "https://shop.example/3 (line 3) is left out: the link says rel='nofollow'",
        (
            "https://shop.example/private/4 (line 4) is left out: robots.txt says disallowed for "
            "MyBot by line 2, 'Disallow: /private', in the group for * (line 1)"
        ),
    ]
    assert not found


def test_a_page_that_says_nofollow_says_where_for_each_link() -> None:
    found = followable_links(page("\n<meta name=robots content=none><a href=/1>1</a>"))
    assert found.excluded[0].by is ExcludedBy.PAGE
    assert str(found.excluded[0]) == (
        "https://shop.example/1 (line 2) is left out: the page says 'none' "
        "(<meta> robots on line 2)"
    )
    assert found.directives.nofollow


def test_a_link_knows_its_line_and_its_rel() -> None:
    (link,) = followable_links(page("\n\n<a rel='UGC  me' href=/1>1</a>"))
    assert (str(link), link.line, link.rel) == ("https://shop.example/1", 3, ("ugc", "me"))


def test_a_link_that_cannot_be_checked_costs_no_other() -> None:
    robots = parse_robots(b"User-agent: *\nDisallow: /no\n")

    def check(url: str) -> Verdict:
        if "dead.example" in url:
            raise ConnectionError("no such host\x1b[31m")
        return robots.check(url, "MyBot")

    body = "<a href=//dead.example/1>1</a><a href=/yes>2</a><a href=/no>3</a>"
    found = followable_links(page(body), check=check)
    assert [link.url for link in found] == ["https://shop.example/yes"]
    assert [each.by.name for each in found.excluded] == ["NOT_CHECKED", "ROBOTS"]
    assert str(found.excluded[0]) == (
        "https://dead.example/1 (line 1) is left out: it could not be checked: "
        "ConnectionError: no such host[31m"
    )


def test_a_check_is_asked_once_for_each_url_and_of_every_origin() -> None:
    asked: list[str] = []
    robots = parse_robots(b"User-agent: *\nDisallow: /no\n")

    def check(url: str) -> Verdict:
        asked.append(url)
        return robots.check(url, "MyBot")

    body = """<a href=/no>1</a><a href=//other.example/no>2</a><a href=/yes>3</a><a href=/no>4</a>
    <a href=/rel rel=nofollow>5</a><a href=tel:1>6</a>"""
    found = followable_links(page(body), check=check)
    assert [link.url for link in found] == ["https://shop.example/yes"]
    assert [each.by.name for each in found.excluded] == [
        *("ROBOTS", "ROBOTS", "ROBOTS", "REL", "NOT_HTTP")
    ]
    assert asked == [
        "https://shop.example/no",
        "https://other.example/no",
        "https://shop.example/yes",
    ]


def test_robots_and_a_check_add_up() -> None:
    robots = parse_robots(b"User-agent: *\nDisallow: /a\n")
    others = parse_robots(b"User-agent: *\nDisallow: /b\n")
    found = followable_links(
        page("<a href=/a>1</a><a href=/b>2</a><a href=/c>3</a>"),
        "MyBot",
        robots=robots,
        check=lambda url: others.check(url, "MyBot"),
    )
    assert [link.url for link in found] == ["https://shop.example/c"]


def test_robots_without_a_product_token_is_an_error_and_not_a_guess() -> None:
    with pytest.raises(ValueError, match="product_token="):
        followable_links(page("<a href=/1>1</a>"), robots=parse_robots(b""))
    assert followable_links(page("<a href=/1>1</a>"), "", robots=parse_robots(b""))


# --- responses --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "headers",
    [
        {"x-robots-tag": "noai"},
        [("X-ROBOTS-TAG", "noai")],
        [(b"X-Robots-Tag", b"noai"), (b"X-Other", b"\xff")],
        (pair for pair in [("X-Robots-Tag", "noai")]),
    ],
)
def test_plain_headers_are_a_mapping_or_pairs(headers: Any) -> None:
    assert page_directives((URL, headers, b"")).noai


def test_no_url_no_headers_and_no_body_are_said_to_be_missing() -> None:
    class Nothing:
        pass

    class NoUrl:
        headers = HTML
        url = "/only/a/path"

    class NoBody:
        headers = HTML
        url = URL
        content = "text"  # could be anything: an unread stream, in aiohttp

    with pytest.raises(TypeError, match="Nothing has no headers"):
        page_directives(Nothing())
    with pytest.raises(ValueError, match=r"NoUrl.*\(url, response\.headers, body\)"):
        page_directives(NoUrl())
    with pytest.raises(TypeError, match=r"NoBody.*\(url, response\.headers, body\)"):
        page_directives(NoBody())


@pytest.fixture
def without_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "turbohtml", None)


@pytest.mark.usefixtures("without_the_extra")
@pytest.mark.parametrize("ask", [page_directives, followable_links])
def test_without_the_extra_a_page_is_an_error_that_says_what_to_install(
    ask: Callable[[Any], object],
) -> None:
    with pytest.raises(MissingParser, match=r"pip install 'polite-transport\[html\]'") as error:
        ask(page("<p>", X_Robots_Tag="noindex"))
    assert isinstance(error.value, ImportError)


@pytest.mark.usefixtures("without_the_extra")
def test_without_the_extra_headers_of_other_things_can_be_read() -> None:
    image = URL, {"Content-Type": "image/png", "X-Robots-Tag": "noimageai"}, b"\x89PNG"
    assert page_directives(image).noimageai


def test_importing_it_loads_neither_a_client_nor_the_parser() -> None:
    loaded = "sys.modules.keys() & {'requests', 'httpx', 'urllib3', 'scrapy', 'turbohtml'}"
    code = f"import sys, polite_transport.page; print(sorted({loaded}))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


# --- pages without end ------------------------------------------------------------------------

HOSTILE = r"""
import resource

# A tree or a scan that grows faster than its page needs many times this.
resource.setrlimit(resource.RLIMIT_AS, (700 << 20, 700 << 20))
resource.setrlimit(resource.RLIMIT_CPU, (60, 60))

from polite_transport.page import followable_links, page_directives

N = 40_000
END = "<meta name=robots content=noai><a href=/end>"
PAGES = {
    "deep": "<div>" * N,
    "formatting": "".join(f"<font x={i}>" for i in range(N)) + "<p>x" * N,
    "formatting, a few": "<b><b><b><i><i><i><u><u><u><s><s><s><em><em><em>" + "<p>x" * 3 * N,
    "second bodies": "".join(f"<html a{i}=1><body b{i}=1>" for i in range(N)),
    "closing nothing": "<div>" * N + "</p></li></h1>" * N,
    "tables": "<table><tr><td>" * N + "<table><b>x" * N,
    "links in links": "<a href=/x><p>" * N + "</a>" * N,
    "templates": "<template>" * N + "<a href=/0>" * N + "</template>" * N,
    "attributes": "<p " + " ".join(f"a{i}=1" for i in range(N)) + ">",
    "same attribute": "<p " + "a=1 " * N + ">",
    "brackets": "<" * 10 * N,
    "open formatting tags": "<b " * N + ">",
    "empty titles": "<title " * N + "/></title>",
    "references": "<a title='" + "&amp&#" * N + "'>",
    "drawings": "<svg><desc>" * N + "</svg>" * N,
    "long content": "<meta name=robots content='" + "max-snippet:" * N + " " * N + "x" * N + "'>",
}
for name, body in PAGES.items():
    for kind in ("text/html", "application/xhtml+xml"):
        found = followable_links(("https://shop.example/", {"Content-Type": kind}, body + END))
        assert any(link.url == "https://shop.example/end" for link in found), name
        assert found.directives.noai, name
print("pages")

LINES = [
    "a" * 10 * N, "a," * N, "a:" * N, "a " * N, "a" + " " * 10 * N, "1:" * N, "1" * 10 * N,
    "unavailable_after" + " " * 10 * N, "unavailable_after:" * N, "unavailable_after: Mon" * N,
    "unavailable_after: " + "Jan" * N, "unavailable_after: Mon," + " " * 10 * N, "max-" * N,
    "max-snippet:" + "9" * 10 * N, "unavailable_after: " + "9" * 10 * N,
]
for line in LINES:
    found = page_directives(
        ("https://shop.example/", {"X-Robots-Tag": line, "Content-Type": "image/png"}, b""), "a"
    )
    found.max_snippet, found.unavailable_after
print("lines")

links = "".join(f"<a href=/{i} rel='{'x ' * 9}'>" for i in range(N))
long = "<a href='" + "/x" * 10 * N + "'><a href='?" + "\u00e9" * N + "'><a href='" + "/" * N + "'>"
assert len(followable_links(("https://shop.example/", {}, links + long))) >= N
print("links")
"""


@pytest.mark.skipif(sys.platform == "win32", reason="limits are set as POSIX has them")
def test_hostile_pages_and_headers_are_read_within_bounds() -> None:
    done = subprocess.run(
        [sys.executable, "-c", HOSTILE], capture_output=True, text=True, check=False
    )
    assert done.stderr == ""
    assert done.stdout.split() == ["pages", "lines", "links"]
