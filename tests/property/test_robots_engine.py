"""Any bytes, any URL: the engine answers, and as the slow and obvious reference does."""

import pathlib
import runpy
import string
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from polite_transport.robots import Robots, Verdict, parse_robots, product_token

reference = runpy.run_path(
    str(pathlib.Path(__file__).parents[1] / "fuzz" / "reference.py"), run_name="reference"
)

# Few letters, so that patterns and paths meet; each sign that means something; some that do not.
PATH_SIGNS = "/abA.*$%?=&72Ccé |#"
pieces = st.one_of(
    st.text(PATH_SIGNS, max_size=8),
    st.sampled_from(["%2A", "%24", "%2f", "%41", "%7C", "%C3%A9", "%", "/../", "/.", "/%2e%2e/"]),
    st.sampled_from(["/ab", "/ab/", "?a=", "*", "$", "**", "robots.txt"]),
)
paths = st.lists(pieces, max_size=5).map(lambda parts: "/" + "".join(parts))
patterns = st.one_of(
    paths, paths.map(lambda path: path[1:]), st.lists(pieces, max_size=3).map("".join)
)
keys = st.sampled_from(
    [
        "Allow",
        "Disallow",
        "disallow",
        "User-agent",
        "user agent",
        "Crawl-delay",
        "Sitemap",
        "dissalow",
        "x",
    ]
)
tokens = st.sampled_from(["red", "RED", "blue", "blue/2", "*", "* x", "*x", "", "red blue"])
joints = st.sampled_from([":", ": ", " :\t", " ", "\t"])
ends = st.sampled_from(["\n", "\n", "\r", "\r\n", " # c\n", "\n\n"])


@st.composite
def files(draw: st.DrawFn) -> bytes:
    """Return a file made of likely lines and some noise."""
    lines = []
    for _ in range(draw(st.integers(0, 14))):
        key = draw(keys)
        value = draw(tokens if key.lower().startswith("user") else patterns)
        lines.append(key + draw(joints) + value + draw(ends))
    if draw(st.integers(0, 9)) == 0:
        lines.append(draw(st.text(max_size=30)))
    return "".join(lines).encode("utf-8", "surrogatepass")


urls = st.one_of(
    paths,
    paths.map(lambda path: "https://shop.example" + path),
    st.sampled_from(["", "https://shop.example", "https://shop.example?a=/b", "/robots.txt"]),
)


@settings(max_examples=1_500, deadline=None)
@given(
    files(), st.lists(urls, min_size=1, max_size=6), st.sampled_from(["red", "blue", "", "green"])
)
@example(b"User-agent: *\nDisallow: /", ["\nx"], "red")  # found by the fuzzer: no path, no origin
def test_same_as_the_reference(body: bytes, asked: list[str], token: str) -> None:
    robots = parse_robots(body)
    for url in asked:
        assert robots.check(url, token).allowed is reference["allowed"](body, url, token), url


@settings(max_examples=150, deadline=None)
@given(
    st.lists(patterns.filter(lambda text: "\r" not in text), min_size=30, max_size=60),
    st.lists(paths),
)
def test_same_as_the_reference_with_many_wildcards(stars: list[str], asked: list[str]) -> None:
    lines = [f"{'Dis' * (number % 2)}allow: /*{pattern}\n" for number, pattern in enumerate(stars)]
    body = "".join(["User-agent: *\n", *lines]).encode()
    robots = parse_robots(body)
    expected = [reference["allowed"](body, url, "red") for url in asked]
    # More often than the engine waits before it indexes the wildcards: both ways have to agree.
    for _ in range(1 + 220 // max(1, len(asked))):
        assert [robots.check(url, "red").allowed for url in asked] == expected


@settings(max_examples=500, deadline=None)
@given(st.binary(max_size=400), st.text(max_size=60), st.text(max_size=12), st.integers(0, 300))
@example(b"\xff\xfeU\x00s\x00", "\ud800", "\udfff", 0)
@example(b"User-agent: *\nRequest-rate: " + b"9" * 400 + b"/1", "/", "x", 512)
@example(b"User-agent: *\nRequest-rate: 1/" + b"9" * 400 + b"h", "/", "x", 512)
@example(b"User-agent: *\nCrawl-delay: " + b"9" * 400, "/", "x", 512)
def test_never_an_exception(body: bytes, url: str, token: str, max_bytes: int) -> None:
    robots = parse_robots(body, max_bytes=max_bytes)
    verdict = robots.check(url, token)
    assert isinstance(verdict, Verdict)
    assert str(verdict).isprintable()
    for pace in (robots.crawl_delay(token), robots.request_rate(token)):
        assert pace is None or 0 <= pace <= sys.float_info.max
    robots.visit_time(token)
    robots.signals(url, token)
    robots.records(token)
    assert robots.licenses + robots.clean_params + robots.file_records is not None
    assert robots.cut is (len(body) > max_bytes)


@given(st.text())
def test_a_product_token_is_made_of_token_characters(user_agent: str) -> None:
    assert set(product_token(user_agent)) <= set(string.ascii_letters + string.digits + "_-.")


@given(files(), st.sampled_from(["red", "blue", ""]), urls)
def test_the_deciding_rule_stands_on_its_line(body: bytes, token: str, url: str) -> None:
    rule = parse_robots(body).check(url, token).rule
    if rule:
        lines = body.replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n")
        assert rule.pattern in lines[rule.line - 1].decode("utf-8", "replace")


@settings(max_examples=300, deadline=None)
@given(files(), st.integers(0, 200))
def test_cutting_keeps_whole_lines(body: bytes, max_bytes: int) -> None:
    kept = b""
    for line in body.splitlines(keepends=True):
        if len(kept) + len(line.rstrip(b"\r\n")) > max_bytes:
            break
        kept += line
    cut, whole = parse_robots(body, max_bytes=max_bytes), parse_robots(kept)
    for url in ("/", "/ab", "/ab/a?a="):
        assert cut.check(url, "red").allowed is whole.check(url, "red").allowed


@pytest.mark.parametrize("rules", [3, 400])
def test_threads_may_share_a_file(rules: int) -> None:
    stars = "".join(f"Disallow: /*/n{number}/\n" for number in range(rules))
    body = f"User-agent: *\nDisallow: /a\n{stars}Crawl-delay: 2\n".encode()
    asked = [f"https://shop.example/x/n{number}/" for number in range(0, 3 * rules, 2)]
    expected = [number >= rules for number in range(0, 3 * rules, 2)]
    for _ in range(10):
        robots = parse_robots(body)
        start = threading.Barrier(4)

        def ask(robots: Robots, start: threading.Barrier) -> list[bool]:
            start.wait()
            return [robots.check(url, "red").allowed for url in asked]

        with ThreadPoolExecutor(4) as pool:
            answers = [pool.submit(ask, robots, start) for _ in range(4)]
        assert [answer.result() for answer in answers] == [expected] * 4
