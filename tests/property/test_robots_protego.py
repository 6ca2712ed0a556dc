"""Against an independent parser, Protego: where the two differ, it is for a reason that has a name.

Files and URLs are of the kind on which both mean to say the same. A difference has to be one of
``KNOWN``; each of those is shown by an example, so that one which goes away is noticed.
"""

import re
from collections.abc import Callable

import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

from polite_transport.robots import parse_robots

protego = pytest.importorskip("protego", reason="Protego is not installed (dependency group bench)")

names = st.sampled_from(["red", "Blue", "green-bot", "*"])
paths = st.lists(
    st.one_of(st.text("/ab.?=é*$", max_size=4), st.sampled_from(["%41", "%2F", "%c3%a9", "/x/"])),
    max_size=3,
).map(lambda parts: "/" + "".join(parts))
rules = st.tuples(st.sampled_from(["Allow", "Disallow"]), paths).map(": ".join)
groups = st.tuples(
    st.lists(names, min_size=1, max_size=2, unique=True),
    st.lists(st.one_of(rules, st.just("Crawl-delay: 2")), min_size=1, max_size=6),
)
urls = st.one_of(
    paths.filter(lambda path: not set(path) & set("*$")), st.sampled_from(["/", "/aé", "/A/a"])
)

# Why an answer may differ, and what shows that it does: file, URL, our answer.
KNOWN: dict[str, tuple[Callable[[str, str], object], tuple[str, str, bool]]] = {
    "a path with dot segments has to be open as resolved too": (
        lambda _, url: re.search(r"/\.\.?([/?]|$)", url),
        ("User-agent: *\nDisallow: /b$", "/a/../b", False),
    ),
    "Protego does not count a last star": (
        lambda rules, _: re.search(r"\*+$", rules, re.MULTILINE),
        ("User-agent: *\nDisallow: /?\nAllow: /*", "/?", True),
    ),
    "to Protego a delay between user-agent lines ends the group": (
        lambda rules, _: "Crawl-delay" in rules,
        ("User-agent: red\nCrawl-delay: 2\nUser-agent: blue\nDisallow: /a", "/a", False),
    ),
    "Protego ends lines where only Unicode does": (
        lambda rules, _: re.search("[\x0b\x0c\x1c-\x1e\x85\u2028\u2029]", rules),
        ("User-agent: *\nDisallow: /a# x\u2028Disallow: /b", "/b", True),
    ),
}


def text_of(parts: list[tuple[list[str], list[str]]]) -> str:
    return "\n\n".join(
        "\n".join([*(f"User-agent: {name}" for name in agents), *lines]) for agents, lines in parts
    )


def both(text: str, url: str, token: str) -> tuple[bool, bool]:
    ours = parse_robots(text.encode()).check(url, token).allowed
    theirs: bool = protego.Protego.parse(text).can_fetch("https://shop.example" + url, token)
    return ours, theirs


@settings(max_examples=1_000, deadline=None)
@given(
    st.lists(groups, max_size=4).map(text_of),
    urls,
    st.sampled_from(["red", "blue", "green-bot", "other"]),
)
def test_differences_have_a_name(text: str, url: str, token: str) -> None:
    ours, theirs = both(text, url, token)
    if ours != theirs:
        reasons = [name for name, (applies, _) in KNOWN.items() if applies(text, url)]
        assert reasons, f"{text!r} {url} {token}: {ours}, Protego {theirs}"
        event(reasons[0])


@pytest.mark.parametrize(("text", "url", "ours"), [shown for _, shown in KNOWN.values()], ids=KNOWN)
def test_named_differences_are_there(text: str, url: str, ours: bool) -> None:
    assert both(text, url, "red") == (ours, not ours)
