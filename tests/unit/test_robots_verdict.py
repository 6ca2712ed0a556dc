import pytest

from polite_transport.robots import Group, Rule, Verdict, Why, parse_robots
from polite_transport.robots.verdict import printable

FILE = b"""\
# ours
User-agent: FooBot/2.1
User-agent: other
Disallow: /shut

User-agent: foobot
Allow: /shut/open   # here
"""


def test_a_rule_is_named_with_its_line_group_and_token() -> None:
    verdict = parse_robots(FILE).check("https://e.org/shut/open/1", "FOOBOT")
    assert verdict == Verdict(
        allowed=True,
        why=Why.RULE,
        product_token="FOOBOT",
        rule=Rule(allow=True, pattern="/shut/open", line=7),
        group=Group(names=("FooBot/2.1", "foobot"), lines=(2, 6)),
        cut=False,
    )


def test_a_refusal_reads_like_a_sentence() -> None:
    assert str(parse_robots(FILE).check("/shut", "foobot")) == (
        "disallowed for foobot by line 4, 'Disallow: /shut', "
        "in the group for FooBot/2.1 (lines 2, 6)"
    )


def test_no_rule() -> None:
    verdict = parse_robots(FILE).check("/", "other")
    assert (verdict.why, verdict.rule) == (Why.NO_RULE, None)
    assert verdict.group == Group(names=("other",), lines=(3,))
    assert str(verdict) == (
        "allowed for other because no rule matches in the group for other (line 3)"
    )


def test_no_group() -> None:
    verdict = parse_robots(FILE).check("/", "third")
    assert (verdict.why, verdict.rule, verdict.group) == (Why.NO_GROUP, None, None)
    assert str(verdict) == "allowed for third because no group of the file applies"


def test_no_token() -> None:
    verdict = parse_robots(b"User-agent: *\nDisallow: /").check("/", "")
    assert str(verdict) == (
        "disallowed for a client that names no product token by line 2, 'Disallow: /', "
        "in the group for * (line 1)"
    )


@pytest.mark.parametrize("url", ["/robots.txt", "https://e.org/%72obots.txt"])
def test_robots_txt_itself(url: str) -> None:
    verdict = parse_robots(b"User-agent: *\nDisallow: /").check(url, "third")
    assert (verdict.allowed, verdict.why, verdict.rule) == (True, Why.ROBOTS_TXT, None)
    assert str(verdict) == "allowed for third because it is robots.txt itself"


def test_a_cut_file_is_said_to_be_cut() -> None:
    robots = parse_robots(b"User-agent: *\nDisallow: /a\nDisallow: /b\n", max_bytes=30)
    assert robots.cut
    for url in ("/a", "/b", "/robots.txt"):
        verdict = robots.check(url, "third")
        assert verdict.cut
        assert str(verdict).endswith("; the file is longer than was read")
    assert robots.check("/b", "third").allowed


def test_what_a_site_writes_cannot_forge_output() -> None:
    robots = parse_robots("User-agent: x\x1b[31m\u202e\nDisallow: /\x1b[2K\u200ba\x07\n".encode())
    verdict = robots.check("/%1B[2K\u200ba%07", "x")
    assert verdict.rule == Rule(allow=False, pattern="/\x1b[2K\u200ba\x07", line=2)
    assert str(verdict) == (
        "disallowed for x by line 2, 'Disallow: /[2Ka', in the group for x[31m (line 1)"
    )


def test_printable_is_not_endless() -> None:
    assert printable("a" * 10_000, 10) == "a" * 10 + "…"
    assert printable("\x00" * 10_000 + "a", 10) == "…"
    assert printable("a\x00b", 10) == "ab"


def test_many_groups_for_one_token_are_not_all_listed() -> None:
    robots = parse_robots(b"User-agent: x\nDisallow: /a\n" * 20)
    assert str(robots.check("/b", "x")).endswith("the group for x (lines 1, 3, 5, 7, 9, …)")


def test_the_same_verdict_is_given_again() -> None:
    robots = parse_robots(FILE)
    assert robots.check("/shut/1", "foobot") is robots.check("/shut/2", "foobot")
