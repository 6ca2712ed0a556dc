"""Refusals: what they say, what they carry, and that they survive a pickle and a copy."""

import copy
import pickle
from typing import Any

import pytest

from polite_transport import (
    DisallowedByRobots,
    PoliteError,
    RobotsUnreachable,
    StoreUnavailable,
    WaitTooLong,
)
from polite_transport.decision import Decision, Reason
from polite_transport.robots import Group, Rule

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
    WaitTooLong(decision(allowed=True), 12.34, "max_wait=5"),
    StoreUnavailable(decision(allowed=True), "the disk is full"),
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
    assert str(ERRORS[2]).startswith("http://example.org/page would have to wait 12.3 s or more")
    assert "max_wait=5" in str(ERRORS[2])
    assert "the disk is full" in str(ERRORS[3])
    assert "Nothing goes out unpaced" in str(ERRORS[3])


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
        rule=Rule(allow=False, pattern="/" + "x" * 10**6, line=1),
        reason=error.decision.reason,
    )
    assert len(str(type(error)(long, *made[1:]))) < 2_500
