import pytest

from polite_transport.robots import parse_robots
from polite_transport.robots.match import Matcher
from polite_transport.robots.needles import MANY, Needles
from polite_transport.robots.octets import path_start, resolved
from polite_transport.robots.wildcard import Wildcard, cut, matches


@pytest.mark.parametrize(
    ("pattern", "prefix", "wildcard"),
    [
        ("/a", "/a", None),
        ("/a*", "/a", None),
        ("/a**$", "/a", None),
        ("/a$", "/a", Wildcard(0, "", 2, (), "")),
        ("/a*b", "/a", Wildcard(0, "b", 2, None, None)),
        ("*b", "", Wildcard(0, "b", 0, None, None)),
        ("/*b*", "/", Wildcard(0, "b", 1, None, None)),
        ("/a*b$", "/a", Wildcard(0, "b", 2, (), "b")),
        ("/a*bb*c*d$", "/a", Wildcard(0, "bb", 2, ("bb", "c"), "d")),
        ("/a%2Ab*%24", "/a*b", Wildcard(0, "$", 4, None, None)),
        ("/a%24$", "/a$", Wildcard(0, "", 3, (), "")),
    ],
)
def test_cut(pattern: str, prefix: str, wildcard: Wildcard | None) -> None:
    assert cut(pattern, 0) == (prefix, wildcard)


def test_matches_one_pattern() -> None:
    assert matches("", "/x")
    assert matches("/a*c$", "/abc")
    assert not matches("/a*c$", "/abcd")
    assert not matches("/b", "/a")


def test_a_rank_leads_back_to_its_rule() -> None:
    matcher = Matcher(["/a", "/a/b/*c", "/"], [1, -2, 3])
    assert matcher.index(matcher.rank("/a/x")) == 0
    assert matcher.index(matcher.rank("/a/b/xc")) == 1
    assert matcher.index(matcher.rank("/b")) == 2
    assert Matcher([], []).rank("/") == 0 == Matcher([], []).no_rule


def test_nested_prefixes_lead_to_the_longest() -> None:
    patterns = ["/" + "a" * length for length in range(50)]
    matcher = Matcher(patterns, list(range(1, 51)))
    assert matcher.index(matcher.rank("/" + "a" * 30 + "b")) == 30
    assert matcher.index(matcher.rank("/" + "a" * 90)) == 49


def test_of_equal_rules_the_first_is_named() -> None:
    verdict = parse_robots(b"User-agent: *\nDisallow: /a\nDisallow: /a\n").check("/a", "x")
    assert verdict.rule is not None
    assert verdict.rule.line == 2


@pytest.mark.parametrize("count", [MANY, MANY + 1, 40, 700])
def test_many_wildcards_are_found_in_each_way(count: int) -> None:
    found = [
        Wildcard(rank, needle, 0, None, None)
        for rank, needle in enumerate([f"/w{n}/x" for n in range(count - 2)] + ["é?", "z"])
    ]
    needles = Needles(found)
    for _ in range(250):  # at first in turn, then together
        assert needles.best_fit("/a/w3/x", 999) == 3
        assert needles.best_fit("/w5/x/w4/x", 999) == 4
        assert needles.best_fit("/w5/x/w4/x", 4) == 4
        assert needles.best_fit("/z", 999) == count - 1
        assert needles.best_fit("/none", 999) == 999


def test_needles_that_begin_alike() -> None:
    words = ["/same/beginning/of/" + "x" * length for length in range(1, 60)]
    needles = Needles([Wildcard(rank, word, 0, None, None) for rank, word in enumerate(words)])
    for _ in range(250):
        assert needles.best_fit("//same/beginning/of/" + "x" * 10, 999) == 0
        assert needles.best_fit("//same/beginning/of/" + "x" * 10, 0) == 0
        assert needles.best_fit("//same/beginning/", 999) == 999


@pytest.mark.parametrize(
    ("url", "start"),
    [
        ("https://e.org/a", 13),
        ("https://e.org", 13),
        ("https://e.org?a=/b", 13),
        ("/a://b/c", 0),
        ("//a/b", 0),
        ("a?b://c/d", 0),
        ("", 0),
    ],
)
def test_path_start(url: str, start: int) -> None:
    assert path_start(url) == start


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("/a/b/../c", "/a/c"),
        ("/a/./b/.", "/a/b/"),
        ("/../a", "/a"),
        ("/..", "/"),
        ("/a/..?b=/../c", "/?b=/../c"),
        ("/a//../b", "/a/b"),
        ("/a/...", "/a/..."),
    ],
)
def test_resolved(path: str, expected: str) -> None:
    assert resolved(path) == expected
