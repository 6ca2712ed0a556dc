import pytest

from polite_transport.robots import Record, parse_robots
from polite_transport.robots.answers import Rules
from polite_transport.robots.records import kind_of, parse_lines, token_of, whole_lines


@pytest.mark.parametrize(
    ("body", "limit", "kept", "cut"),
    [
        (b"ab\ncd\n", 6, b"ab\ncd\n", False),
        (b"ab\ncd\n", 5, b"ab\ncd", True),  # the line is whole, only its end is gone
        (b"ab\ncd\n", 4, b"ab\n", True),
        (b"ab\rcd\r", 4, b"ab\r", True),
        (b"ab\r\ncd", 3, b"ab\r", True),
        (b"ab\r\ncd", 2, b"ab", True),
        (b"abcdef", 3, b"", True),
        (b"", 0, b"", False),
    ],
)
def test_a_cut_leaves_whole_lines(body: bytes, limit: int, kept: bytes, cut: bool) -> None:
    assert whole_lines(body, limit) == (kept, cut)


def test_the_limit_is_500_kib() -> None:
    head = b"User-agent: *\n" + b"#" * (512_000 - 14 - 14) + b"\n"
    inside, outside = head + b"Disallow: /in", head + b"Disallow: /out"
    assert len(inside) == 512_000
    assert not parse_robots(inside).check("/in", "x").allowed
    assert not parse_robots(inside).cut
    assert parse_robots(outside).check("/out", "x").allowed
    assert parse_robots(outside).cut


@pytest.mark.parametrize(
    ("value", "token"),
    [("*", "*"), ("* x", "*"), ("*\t", "*"), ("*x", ""), ("**", ""), ("Foo", "foo"), ("", "")],
)
def test_token_of(value: str, token: str) -> None:
    assert token_of(value) == token


@pytest.mark.parametrize(
    ("key", "kind"),
    [
        ("User-Agent ", "user-agent"),
        ("CRAWL-DELAY", "crawl-delay"),
        ("crawl-delays", ""),  # only the RFC's own keys are known by how they begin
        ("hostname", ""),
        ("disallowfoo", "disallow"),
        ("", ""),
    ],
)
def test_kind_of(key: str, kind: str) -> None:
    assert kind_of(key) == kind


def test_lines_are_counted_from_one_and_crlf_once() -> None:
    robots = parse_robots(b"\r\n\rUser-agent: *\n\r\nDisallow: /a\r")
    verdict = robots.check("/a", "x")
    assert verdict.rule is not None
    assert verdict.rule.line == 5
    assert verdict.group is not None
    assert verdict.group.lines == (3,)


def test_records_of_agents_and_of_the_file() -> None:
    robots = parse_robots(
        "Crawl-delay: 9\nHost: e.org\nUser-agent: a\nCrawl-delay: 1\nUser-agent: b\n"
        "Disallow: /\nVisit-time: 0100-0200\nLicense: https://e.org/é\n".encode()
    )
    assert robots.records("a") == (
        Record("crawl-delay", "1", 4),
        Record("visit-time", "0100-0200", 7),
    )
    assert robots.records("b") == (
        Record("visit-time", "0100-0200", 7),
        Record("crawl-delay", "9", 1),
    )
    assert robots.records("c") == (Record("crawl-delay", "9", 1),)
    assert robots.file_records == (
        Record("host", "e.org", 2),
        Record("license", "https://e.org/é", 8),
    )


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (b"User-agent: a\nDisallow: /x\n", True),
        (b"User-agent: *\n", False),
        (b"Disallow: /\n", False),
        (b"Sitemap: https://e.org/s.xml", False),
        (b"Crawl-delay: 3", False),
        (b"", False),
        (b"<!doctype html><script>var o = {host: 'a', allow: true}</script>\nallow: 1\n", False),
        (b"Internal error", False),
    ],
)
def test_has_rules(body: bytes, expected: bool) -> None:
    assert parse_robots(body).has_rules is expected


@pytest.mark.parametrize(
    ("lines", "delays"),
    [
        ("A, Visit-time: 0600-0845, B, Crawl-delay: 4", {"a": 4, "b": 4}),
        ("A, Content-Signal: ai-train=no, B, Visit-time: 0600-0845, C, Crawl-delay: 4", "abc"),
        ("A, Crawl-delay: 4, B, Crawl-delay: 5", {"a": 4, "b": 5}),
        ("A, Crawl-delay: 4, Visit-time: 0600-0845, B", {"a": 4, "b": None}),
        ("A, Request-rate: 1/4, B, Crawl-delay: 5", {"a": None, "b": 5}),
        (
            "A, Crawl-delay: 4, B, Visit-time: 0600-0845, C, Crawl-delay: 5",
            {"a": 4, "b": 5, "c": 5},
        ),
        ("A, Disallow: /, B, Crawl-delay: 4", {"a": None, "b": 4}),
        ("A, Crawl-delay: 5s, B, Crawl-delay: 4", "ab"),
        ("A, Crawl-delay:, B, Request-rate: none, C, Crawl-delay: 4", "abc"),
        ("A, Crawl-delay: 9, B, Crawl-delay: 5s, C, Crawl-delay: 4", {"a": 9, "b": 4, "c": 4}),
        ("Crawl-delay: 4, A", "ab"),
        ("Crawl-delay: 4, A, Crawl-delay: 2", {"a": 2, "b": 4}),
        ("Crawl-delay: 4, A, Crawl-delay: 5s", "a"),
        ("Crawl-delay: 4, A, Crawl-delay:", "a"),
    ],
)
def test_a_delay_that_can_be_read_is_for_those_named_since_the_last_rule_or_delay(
    lines: str, delays: dict[str, int | None] | str
) -> None:
    named = [each if ":" in each else f"User-agent: {each}" for each in lines.split(", ")]
    robots = parse_robots("\n".join([*named, "Disallow: /x"]).encode())
    expected = delays if isinstance(delays, dict) else dict.fromkeys(delays, 4)
    assert {token: robots.crawl_delay(token) for token in expected} == expected


def test_a_delay_that_cannot_be_read_is_told_of_whom_it_was_for() -> None:
    robots = parse_robots(
        b"User-agent: a\nCrawl-delay: 5s\nUser-agent: b\nCrawl-delay: 4\nDisallow: /x\n"
    )
    assert robots.unreadable("a") == (Record("crawl-delay", "5s", 2),)
    assert robots.unreadable("b") == ()


def test_what_cannot_be_read_is_kept_once_however_many_agents_have_some() -> None:
    pairs = range(2_000)
    robots = parse_robots(
        b"".join(b"User-agent: a%d\nVisit-time: x\nCrawl-delay:\n" % number for number in pairs)
    )
    assert {len(robots.records(f"a{number}")) for number in pairs} == {2}
    assert robots.records("a7")[0] == Record("visit-time", "x", 23)


def test_an_agent_named_often_has_a_record_once() -> None:
    robots = parse_robots(b"User-agent: a\n" * 3_000 + b"Crawl-delay: 1\n" * 3_000)
    assert len(robots.records("a")) == 3_000
    assert robots.crawl_delay("a") == 1


def test_an_agent_named_often_has_its_rules_once() -> None:
    body = b"User-agent: a\n" * 3_000 + b"Disallow: /x\n" * 3_000 + b"User-agent: a\nAllow: /y\n"
    matcher = Rules(parse_lines(body).agents["a"]).matcher
    assert matcher.no_rule == 3_001


def test_more_rules_than_are_remembered() -> None:
    robots = parse_robots(
        b"User-agent: *\n" + b"".join(b"Disallow: /%d/\n" % n for n in range(3_000))
    )
    for _ in range(2):
        for number in range(3_000):
            rule = robots.check(f"/{number}/", "x").rule
            assert rule is not None
            assert rule.line == number + 2


def test_more_tokens_than_are_remembered() -> None:
    robots = parse_robots(b"User-agent: t7\nDisallow: /a\nUser-agent: *\nDisallow: /b\n")
    for _ in range(2):
        for number in range(600):
            token = f"t{number}"
            assert robots.check("/a", token).allowed is (number != 7)
            assert robots.check("/b", token).product_token == token
