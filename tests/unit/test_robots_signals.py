import pytest

from polite_transport.robots import parse_robots
from polite_transport.robots.signals import CleanParam, License, Signal, dictionary

FILE = b"""\
License: https://e.org/terms.xml
License: terms
User-agent: *
Content-Usage: train-ai=n, search=y
Content-Usage: /open/ train-ai=y;p=1
Content-Usage: /open/*/shut$ train-ai=n
Content-Signal: Search=yes, ai-train=no , use=reference
Allow: /

User-agent: red
Content-Signal: ai-train=yes
Content-Signal: ai-train=no
Content-Usage: /a train-ai=y
Content-Usage: /a train-ai=n
Content-Usage: /* train-ai=y
Host: www.e.org
Clean-param: sid&ref /forum/
Clean-param: utm
Clean-param: & /x
"""


def said(url: str, token: str) -> dict[tuple[str, str], bool | None]:
    found = parse_robots(FILE).signals(url, token)
    return {(signal.record, signal.label): signal.allowed for signal in found}


def test_the_most_specific_path_counts() -> None:
    assert said("https://e.org/x", "blue")["content-usage", "train-ai"] is False
    assert said("/open/x", "blue")["content-usage", "train-ai"] is True
    assert said("/open/x/shut", "blue")["content-usage", "train-ai"] is False
    assert ("content-usage", "search") not in said("/open/x", "blue")


def test_content_signal_holds_for_every_path() -> None:
    for url in ("/", "/open/x"):
        found = said(url, "blue")
        assert found["content-signal", "search"] is True
        assert found["content-signal", "ai-train"] is False
        assert found["content-signal", "use"] is None


def test_the_stricter_of_two_statements_stands() -> None:
    assert said("/a", "red")["content-usage", "train-ai"] is False
    assert said("/", "red")["content-signal", "ai-train"] is False
    assert said("/b", "red")["content-usage", "train-ai"] is True


def test_a_signal_says_where_it_stands() -> None:
    found = parse_robots(FILE).signals("/open/x", "blue")
    assert found[0] == Signal("content-usage", "train-ai", "y", True, "/open/", 5)
    assert Signal("content-signal", "use", "reference", None, None, 7) in found


def test_no_signal_decides_about_access() -> None:
    assert parse_robots(FILE).check("/open/x/shut", "blue").allowed


def test_a_signal_does_not_end_a_group() -> None:
    robots = parse_robots(b"User-agent: a\nContent-Signal: search=no\nUser-agent: b\nDisallow: /")
    assert not robots.check("/", "a").allowed
    assert robots.signals("/", "b") == ()


def test_of_the_file() -> None:
    robots = parse_robots(FILE)
    assert robots.licenses == (License("https://e.org/terms.xml", 1),)
    assert robots.host == "www.e.org"
    assert robots.clean_params == (
        CleanParam(("sid", "ref"), "/forum/", 17),
        CleanParam(("utm",), "/", 18),
    )
    assert parse_robots(b"").host is None


@pytest.mark.parametrize(
    ("text", "members"),
    [
        ("a=y", {"a": "y"}),
        ("a=y, b=n", {"a": "y", "b": "n"}),
        ("a=y,b=n;x=1;y, c", {"a": "y", "b": "n", "c": ""}),
        ("a=y, a=n", {"a": "n"}),
        ('a="y, b=n"', {"a": '"y, b=n"'}),
        ("a=(1 2), b=?1, c=-1.5, d=:YQ==:", {"a": "(1 2)", "b": "?1", "c": "-1.5", "d": ":YQ==:"}),
        ("", {}),
        ("a=y,", {}),  # a trailing comma breaks a dictionary
        ("a=y b=n", {}),
        ("A=y", {}),
        ("a=y, =n", {}),
        ("a = y", {}),
    ],
)
def test_dictionary(text: str, members: dict[str, str]) -> None:
    assert dictionary(text) == members
