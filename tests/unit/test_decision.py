"""The verdict on one request: what it says, and on what grounds."""

import copy
import hashlib
import pickle
from datetime import UTC, datetime
from typing import Any

import pytest

from polite_transport import Policy
from polite_transport.decision import Decision, Reason, decide
from polite_transport.robots.access import Access, Copy
from polite_transport.url import target

from .clockwork import ORIGIN, PAGE, ROBOTS, START, UA

FILE = b"""User-agent: mybot
User-agent: other
Disallow: /private
Crawl-delay: 5

User-agent: *
Disallow: /
Request-rate: 1/30
"""


def held(body: bytes = FILE, **changed: Any) -> Copy:
    fields: dict[str, Any] = {
        "robots_url": ROBOTS,
        "product_token": "MyBot",
        "status": 200,
        "access": Access.FILE,
        "body": body,
        "max_bytes": 512_000,
        "fetched_at": START,
        "expires_at": START + 60,
    }
    return Copy(**{**fields, **changed})


def about(
    path: str = "/page", copy_: Copy | None = None, token: str = "MyBot", **policy: Any
) -> Decision:
    where = target(ORIGIN + path)
    assert where is not None
    return decide(
        held() if copy_ is None else copy_,
        where,
        method="GET",
        user_agent=UA,
        product_token=token,
        policy=Policy(**policy),
    )


UNAVAILABLE: dict[str, Any] = {"body": b"", "access": Access.UNAVAILABLE}
UNREACHABLE: dict[str, Any] = {"body": b"", "access": Access.UNREACHABLE}
WEB_PAGE = b"<!doctype html><title>Home</title>"


@pytest.mark.parametrize(
    ("path", "copy_", "token", "policy", "allowed", "reason"),
    [
        ("/page", held(), "MyBot", {}, True, Reason.NO_RULE),
        ("/private/x?y", held(), "MyBot", {}, False, Reason.RULE),
        ("/page", held(), "Stranger", {}, False, Reason.RULE),
        ("/page", held(), "", {}, False, Reason.RULE),
        ("/page", held(b"User-agent: other\nDisallow: /"), "MyBot", {}, True, Reason.NO_GROUP),
        ("/page", held(b""), "MyBot", {}, True, Reason.NO_GROUP),
        ("/robots.txt", held(), "Stranger", {}, True, Reason.ROBOTS_TXT),
        ("/robots.txt", held(status=503, **UNREACHABLE), "MyBot", {}, True, Reason.ROBOTS_TXT),
        ("/robots.txt?x", held(), "Stranger", {}, False, Reason.RULE),
        ("/p", held(status=404, **UNAVAILABLE), "MyBot", {}, True, Reason.UNAVAILABLE),
        ("/p", held(status=401, **UNAVAILABLE), "MyBot", {}, True, Reason.UNAVAILABLE),
        *(
            ("/p", held(status=status, **UNAVAILABLE), "MyBot", {"on_forbidden": "disallow"}, *end)
            for status, end in (
                (401, (False, Reason.FORBIDDEN)),
                (403, (False, Reason.FORBIDDEN)),
                (404, (True, Reason.UNAVAILABLE)),
            )
        ),
        ("/p", held(status=503, **UNREACHABLE), "MyBot", {}, False, Reason.UNREACHABLE),
        ("/p", held(status=429, **UNREACHABLE), "MyBot", {}, False, Reason.UNREACHABLE),
        *(
            ("/p", held(status=status, **UNREACHABLE), "MyBot", {name: "allow"}, allowed, reason)
            for status, name, allowed, reason in (
                (503, "on_unreachable", True, Reason.UNREACHABLE),
                (429, "on_unreachable", False, Reason.UNREACHABLE),
                (503, "on_too_many_requests", False, Reason.UNREACHABLE),
                (429, "on_too_many_requests", True, Reason.UNREACHABLE),
            )
        ),
        ("/p", held(WEB_PAGE), "MyBot", {}, True, Reason.HTML),
        ("/p", held(WEB_PAGE), "MyBot", {"on_html": "disallow"}, False, Reason.HTML),
    ],
)
def test_every_reason(
    path: str, copy_: Copy, token: str, policy: dict[str, Any], allowed: bool, reason: Reason
) -> None:
    decision = about(path, copy_, token, **policy)
    assert (decision.allowed, decision.reason) == (allowed, reason)
    told = str(decision)
    assert ("is allowed" in told) is allowed
    assert told.count("\n") == 0


@pytest.mark.parametrize(
    ("token", "policy", "delay"),
    [
        ("MyBot", {}, 5),
        ("Stranger", {}, 30),
        ("MyBot", {"min_delay": 7}, 7),
        ("MyBot", {"min_delay": 3}, 5),
        ("MyBot", {"min_delay": 3, "obey_crawl_delay": False}, 3),
        ("MyBot", {"obey_crawl_delay": False}, 0),
    ],
)
def test_the_delay_in_force(token: str, policy: dict[str, Any], delay: float) -> None:
    assert about(copy_=held(product_token=token), token=token, **policy).delay == delay


@pytest.mark.parametrize(
    ("token", "policy", "record", "grounds"),
    [
        (
            "MyBot",
            {},
            ("crawl-delay", "5", 4),
            f"line 4 of {ROBOTS} says 'Crawl-delay: 5', in the group for mybot (line 1)",
        ),
        (
            "Stranger",
            {},
            ("request-rate", "1/30", 8),
            f"line 8 of {ROBOTS} says 'Request-rate: 1/30', in the group for * (line 6)",
        ),
        ("MyBot", {"min_delay": 7}, None, "Policy(min_delay=7) keeps requests to its host apart"),
    ],
)
def test_who_asks_for_the_delay(
    token: str, policy: dict[str, Any], record: object, grounds: str
) -> None:
    decision = about(copy_=held(product_token=token), token=token, **policy)
    assert decision.delay_record == record
    assert decision.delay_grounds == grounds


def test_a_delay_above_all_groups() -> None:
    decision = about(copy_=held(b"Crawl-delay: 2\nUser-agent: *\nDisallow: /x\n"))
    assert decision.delay_grounds == f"line 1 of {ROBOTS} says 'Crawl-delay: 2', above all groups"


def test_it_says_which_file_a_line_stands_in() -> None:
    there = "http://cdn.example/robots.txt"
    decision = about("/private", held(redirected_to=there))
    assert (decision.robots_url, decision.robots_redirected_to) == (ROBOTS, there)
    assert f"line 3 of {there} (to which {ROBOTS} redirects) says" in str(decision)


def test_it_holds_all_that_one_needs_to_prove_it() -> None:
    decision = about("/private")
    assert decision.rule is not None
    assert decision.group is not None
    assert (decision.rule.line, decision.group.names, decision.group.lines) == (3, ("mybot",), (1,))
    assert (decision.url, decision.method) == (f"{ORIGIN}/private", "GET")
    assert (decision.user_agent, decision.product_token) == (UA, "MyBot")
    assert (decision.robots_url, decision.robots_status) == (ROBOTS, 200)
    assert decision.robots_digest == hashlib.sha256(FILE).hexdigest()
    assert decision.fetched == datetime(2023, 11, 14, 22, 13, 20, tzinfo=UTC)


def test_the_digest_is_of_what_was_obeyed() -> None:
    cut = about(copy_=held(FILE + b"#", max_bytes=len(FILE)))
    assert cut.robots_digest == hashlib.sha256(FILE).hexdigest()
    assert about(copy_=held(status=404, **UNAVAILABLE)).robots_digest is None


def test_without_a_copy_nothing_was_asked() -> None:
    where = target(PAGE)
    assert where is not None
    decision = decide(
        None, where, method="GET", user_agent="", product_token="", policy=Policy(min_delay=2)
    )
    assert (decision.allowed, decision.reason, decision.delay) == (True, Reason.NOT_ASKED, 2)
    assert decision.fetched is None
    assert "a client that names no product token" in str(decision)


def test_it_says_which_line_in_one_sentence() -> None:
    assert str(about("/private")) == (
        "http://example.org/private is disallowed for MyBot: line 3 of "
        "http://example.org/robots.txt says 'Disallow: /private', in the group for mybot (line 1)"
    )
    assert str(about(copy_=held(status=404, **UNAVAILABLE))).endswith(
        "http://example.org/robots.txt answered 404, so that there are no rules "
        "(RFC 9309 section 2.3.1.3)"
    )


def test_what_is_odd_about_an_answer_is_told_with_it() -> None:
    broken = held(note="its body ends early", **UNREACHABLE)
    assert f"{ROBOTS} answered 200 (its body ends early), and until" in str(about(copy_=broken))
    lenient = about(copy_=broken, on_unreachable="allow")
    assert "is allowed for MyBot" in str(lenient)
    assert str(lenient).endswith("(its body ends early), and the policy takes that for no rules")
    junk = about(copy_=held(b"\xff\xfe"))
    assert str(junk).endswith(
        f"{ROBOTS} has no group for it (it holds no line for robots: is it text in UTF-8?)"
    )


def test_it_survives_a_pickle_and_a_copy() -> None:
    decision = about("/private")
    assert pickle.loads(pickle.dumps(decision)) == decision
    assert copy.deepcopy(decision) == decision
