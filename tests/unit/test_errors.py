"""Refusals: what they say, what they carry, and that they survive a pickle and a copy."""

import copy
import pickle
import sys
from typing import Any

import pytest

from polite_transport import (
    DisallowedByRobots,
    InvalidURL,
    PoliteError,
    RobotsUnreachable,
    StoreUnavailable,
    WaitTooLong,
)
from polite_transport.decision import Decision, Reason
from polite_transport.errors import WaitReason
from polite_transport.robots import Group, Record, Rule

from .clockwork import PAGE, ROBOTS, UA


def decision(**changed: Any) -> Decision:
    fields: dict[str, Any] = {
        "url": PAGE,
        "method": "GET",
        "allowed": False,
        "reason": Reason.RULE,
        "product_token": "MyBot",
        "user_agent": UA,
        "rule": Rule(allow=False, pattern="/page", line=7),
        "group": Group(("MyBot",), (5,)),
        "robots_url": ROBOTS,
        "robots_status": 200,
    }
    return Decision(**{**fields, **changed})


ERRORS = [
    DisallowedByRobots(decision()),
    RobotsUnreachable(decision(reason=Reason.UNREACHABLE, robots_status=503), 59.6),
    WaitTooLong(decision(allowed=True), 12.34, "max_wait=5", WaitReason.QUEUE),
    StoreUnavailable(decision(allowed=True), "the disk is full"),
    InvalidURL(decision(reason=Reason.INVALID_URL), "'a,b' is not a host name"),
]
by_type = pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)


class Native(DisallowedByRobots, OSError):
    """As a client's own flavour: its base error has an ``__init__`` with a mind of its own."""


@by_type
def test_all_are_polite_errors_with_their_decision(error: PoliteError) -> None:
    assert isinstance(error, PoliteError)
    assert error.decision.url == PAGE
    assert error.args == (error.decision,)


@pytest.mark.parametrize("error", [*ERRORS, Native(decision())], ids=lambda e: type(e).__name__)
@pytest.mark.parametrize(
    "again",
    [
        *(lambda it, way=way: pickle.loads(pickle.dumps(it, way)) for way in range(2, 6)),
        copy.deepcopy,
        copy.copy,
    ],
)
def test_they_survive_a_pickle_and_a_copy(error: PoliteError, again: Any) -> None:
    error = copy.copy(error)
    error.add_note("met on the way")
    same = again(error)
    assert type(same) is type(error)
    assert str(same) == str(error)
    assert same.decision == error.decision
    assert same.made_of() == error.made_of()
    assert same.__notes__ == ["met on the way"]


def test_a_copy_without_notes_has_none() -> None:
    assert not hasattr(copy.deepcopy(DisallowedByRobots(decision())), "__notes__")


def test_what_is_for_good_names_the_line_and_what_to_do() -> None:
    assert str(ERRORS[0]) == (
        "http://example.org/page is disallowed for MyBot: line 7 of http://example.org/robots.txt "
        "says 'Disallow: /page', in the group for MyBot (line 5). It was not sent: skip it, or ask "
        "the site's owner."
    )


def test_what_is_for_now_says_when_to_come_back() -> None:
    assert "answered 503" in str(ERRORS[1])
    assert str(ERRORS[1]).endswith("robots.txt is asked for again in 60 s.")
    at_once = RobotsUnreachable(ERRORS[1].decision, 0.0)
    assert str(at_once).endswith("robots.txt is asked for again by the next request.")
    assert str(ERRORS[2]) == (
        "http://example.org/page was not sent: its turn is 12.3 s or more away, above max_wait=5 "
        "of the policy, because other requests to its host are before it. Try it again in 12.3 s, "
        "or allow the wait with a larger max_wait."
    )
    assert "the disk is full" in str(ERRORS[3])
    assert "Nothing goes out unpaced" in str(ERRORS[3])


def test_a_url_that_cannot_be_read_says_what_is_wrong_with_it() -> None:
    assert str(ERRORS[4]) == (
        "http://example.org/page was not sent: 'a,b' is not a host name. Correct the URL, or skip "
        "it."
    )
    assert isinstance(ERRORS[4], ValueError)


def bound(line: int = 6, value: str = "20", **changed: Any) -> Decision:
    fields = {"allowed": True, "reason": Reason.NO_RULE, "rule": None, "delay": 20.0, **changed}
    return decision(delay_record=Record("crawl-delay", value, line), **fields)


def test_a_distance_that_the_policy_does_not_allow_is_not_cured_by_time() -> None:
    error = WaitTooLong(bound(), 20.0, "max_delay=5", WaitReason.SITE_DELAY)
    assert (error.wait, error.retry_in) == (20.0, None)
    assert str(error) == (
        "http://example.org/page was not sent: line 6 of http://example.org/robots.txt says "
        "'Crawl-delay: 20', in the group for MyBot (line 5), and that is above max_delay=5 of the "
        "policy. Trying again does not help while it is so: allow it with a larger max_delay, for "
        "this host alone in Policy(overrides=\u2026), or skip the site."
    )


@pytest.mark.parametrize("why", set(WaitReason) - {WaitReason.SITE_DELAY}, ids=lambda why: why.name)
def test_every_other_wait_is_over_some_time(why: WaitReason) -> None:
    error = WaitTooLong(bound(), 30.0, "max_wait=5", why)
    assert error.retry_in == 30.0
    assert "Try it again in 30.0 s" in str(error)
    assert "max_wait=5" in str(error)


@pytest.mark.parametrize(
    ("why", "wait", "about", "because"),
    [
        (WaitReason.LAST_REQUEST, 20, bound(), "line 6 of http://example.org/robots.txt says"),
        (WaitReason.LAST_REQUEST, 20, bound(4), "'Crawl-delay: 20', above all groups"),
        (WaitReason.LAST_REQUEST, 20, bound(group=None), "'Crawl-delay: 20', above all groups"),
        (WaitReason.LAST_REQUEST, 3, decision(delay=3.0), "Policy(min_delay=3) keeps"),
        (WaitReason.LAST_REQUEST, 21, bound(), "an earlier request keeps a longer distance"),
        (WaitReason.QUEUE, 40, bound(), "before it, and line 6 of"),
        (WaitReason.QUEUE, 40, decision(delay=3.0), "before it, and Policy(min_delay=3)"),
        (WaitReason.QUEUE, 40, decision(), "are before it. Try"),
        (WaitReason.RETRY_AFTER, 400, bound(), "asked for a pause (Retry-After). Try"),
        (WaitReason.PAUSE, 40, bound(), "or is left alone after a 429 or 503"),
        (WaitReason.VISIT_TIME, 40, bound(), "the site's Visit-time begins then"),
        (
            WaitReason.LAST_REQUEST,
            20,
            bound(robots_redirected_to="http://cdn.example/r"),
            "line 6 of http://cdn.example/r (to which http://example.org/robots.txt redirects)",
        ),
    ],
)
def test_a_wait_that_is_too_long_says_who_asks(
    why: WaitReason, wait: float, about: Decision, because: str
) -> None:
    told = str(WaitTooLong(about, float(wait), "max_wait=1", why))
    assert because in told.partition(", because ")[2]


def test_the_turn_of_robots_txt_is_told_apart() -> None:
    early = decision(allowed=True, reason=Reason.NOT_YET, robots_url=None)
    told = str(WaitTooLong(early, 9.0, "max_wait=1", WaitReason.QUEUE))
    assert "the turn of its robots.txt, which is read first, is 9.0 s or more away" in told


@pytest.mark.parametrize(
    ("wait", "shown"),
    [
        (0.04, "0.0 s"),
        (90_000.0, "90000.0 s"),
        (10 * 86_400.0, "10 days"),
        (sys.float_info.max, "more than 100 years"),
    ],
)
def test_no_number_is_shown_at_length(wait: float, shown: str) -> None:
    told = str(WaitTooLong(decision(), wait, "max_wait=5", WaitReason.RETRY_AFTER))
    assert f"its turn is {shown} or more away" in told


def test_a_number_of_four_hundred_digits_is_cut() -> None:
    error = WaitTooLong(
        bound(value="9" * 400, delay=sys.float_info.max),
        sys.float_info.max,
        "max_delay=300",
        WaitReason.SITE_DELAY,
    )
    assert len(str(error)) < 450
    assert "9" * 41 not in str(error)


def test_an_unreachable_file_says_what_is_wrong_with_it() -> None:
    broken = decision(
        reason=Reason.UNREACHABLE, rule=None, group=None, robots_note="its body ends early"
    )
    assert "http://example.org/robots.txt answered 200 (its body ends early), and until" in str(
        RobotsUnreachable(broken, 59.6)
    )


@by_type
def test_repr_shows_what_it_says(error: PoliteError) -> None:
    assert repr(error) == f"{type(error).__name__}({str(error)!r})"


@by_type
def test_a_site_cannot_write_into_a_terminal(error: PoliteError) -> None:
    made = error.made_of()
    hostile = decision(
        url="http://example.org/\x1b[2J\r\nforged\u202e",
        robots_url="http://example.org/robots.txt\x07",
        rule=Rule(allow=False, pattern="/\x1b[31m\u2028*", line=1),
        group=Group(("My\x1bBot",), (1,)),
        product_token="Bot\x00",
        robots_redirected_to="http://cdn.example/\x1b[2J",
        robots_note="it redirects to '\x1b[2J\n'",
        delay=9.0,
        delay_record=Record("crawl-delay", "9\x1b[2J", 2),
        reason=error.decision.reason,
    )
    told = str(type(error)(hostile, *made[1:]))
    assert told.isprintable()


@by_type
def test_an_endless_url_does_not_make_an_endless_sentence(error: PoliteError) -> None:
    made = error.made_of()
    long = decision(
        url=PAGE + "x" * 10**6,
        robots_url=ROBOTS + "x" * 10**6,
        robots_redirected_to=ROBOTS + "x" * 10**6,
        robots_note="x" * 10**6,
        delay=9.0,
        delay_record=Record("crawl-delay", "9" * 10**6, 2),
        rule=Rule(allow=False, pattern="/" + "x" * 10**6, line=1),
        reason=error.decision.reason,
    )
    assert len(str(type(error)(long, *made[1:]))) < 2_500
