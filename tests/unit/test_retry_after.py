"""Retry-After, and the pause where a site names none."""

import math

import pytest

from polite_transport.pacing.retry_after import (
    LONGEST_RETRY_AFTER,
    asked_pause,
    backoff,
    http_seconds,
    retry_after,
)
from polite_transport.pacing.turns import Record

NOW = 784_111_777.0  # Sun, 06 Nov 1994 08:49:37 GMT, the example date of RFC 9110


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        ("120", 120.0),
        (" 120\t", 120.0),
        ("0", 0.0),
        ("007", 7.0),
        ("Sun, 06 Nov 1994 08:50:37 GMT", 60.0),
        ("Sunday, 06-Nov-94 08:50:37 GMT", 60.0),
        ("Sun Nov  6 08:50:37 1994", 60.0),
        ("Sun, 06 Nov 1994 09:50:37 +0100", 60.0),
        ("Sun, 06 Nov 1994 08:49:37 GMT", 0.0),
        ("Sat, 05 Nov 1994 08:49:37 GMT", 0.0),
    ],
)
def test_seconds_and_dates(value: str, seconds: float) -> None:
    assert retry_after(value, None, NOW) == seconds


@pytest.mark.parametrize(
    "value",
    [
        *(
            "",
            " ",
            "-1",
            "+1",
            "1.5",
            "1e3",
            "0x10",
            "1,2",
            "120 s",
            "soon",
            "nan",
            "inf",
            "١٢",
            "²",
        ),
        *(
            "Sun, 99 Nov 1994 08:49:37 GMT",
            "Sun, 06 Nov 99999999999 08:49:37 GMT",
            "\x00",
            "1" * 9 + "x",
        ),
    ],
)
def test_what_is_garbled_is_no_time(value: str) -> None:
    assert retry_after(value, None, NOW) is None


def test_no_header_is_no_time() -> None:
    assert retry_after(None, None, NOW) is None


@pytest.mark.parametrize("value", ["9" * 20, "9" * 400, "Fri, 31 Dec 9999 23:59:59 GMT"])
def test_absurd_times_are_beyond_every_policy_and_still_numbers(value: str) -> None:
    assert retry_after(value, None, NOW) == LONGEST_RETRY_AFTER
    assert math.isfinite(LONGEST_RETRY_AFTER)


def test_a_date_is_read_by_the_sites_own_clock() -> None:
    later, an_hour_slow = "Sun, 06 Nov 1994 07:50:37 GMT", "Sun, 06 Nov 1994 07:49:37 GMT"
    assert retry_after(later, an_hour_slow, NOW) == 60.0
    assert retry_after(later, "garbled", NOW) == 0.0
    assert retry_after("30", an_hour_slow, NOW) == 30.0


def test_http_dates() -> None:
    assert http_seconds("Sun, 06 Nov 1994 08:49:37 GMT") == NOW
    for bad in ("", "0", "-1", "yesterday", "Sun, 06 Nov", "\ud800"):
        assert http_seconds(bad) is None


@pytest.mark.parametrize("status", [429, 503, 301, 302, 307])
def test_it_counts_where_it_has_a_meaning(status: int) -> None:
    assert asked_pause(status, 5.0) == 5.0


@pytest.mark.parametrize(
    ("status", "seconds"), [(200, 5.0), (404, 5.0), (500, 5.0), (429, 0.0), (429, None)]
)
def test_elsewhere_it_does_not(status: int, seconds: float | None) -> None:
    assert asked_pause(status, seconds) == 0.0


@pytest.mark.parametrize(("delay", "first"), [(0.0, 1.0), (0.5, 1.0), (5.0, 5.0), (90.0, 90.0)])
def test_back_off_begins_at_a_second_or_the_delay(delay: float, first: float) -> None:
    for _ in range(100):
        assert first <= backoff(1, delay) <= max(1.25 * first, first)


@pytest.mark.parametrize("strikes", [2, 3, 4, 5, 6])
def test_it_doubles_with_a_quarter_at_random(strikes: int) -> None:
    doubled = 2.0 ** (strikes - 1)
    pauses = [backoff(strikes, 0.0) for _ in range(200)]
    assert doubled <= min(pauses)
    assert max(pauses) <= 1.25 * doubled
    assert len(set(pauses)) > 100, "those who were turned away together come back together"


@pytest.mark.parametrize("strikes", [7, 8, 100, 10**6])
def test_it_ends_at_a_minute_but_never_below_the_delay(strikes: int) -> None:
    assert backoff(strikes, 0.0) == 60.0
    assert backoff(strikes, 90.0) == 90.0


def test_the_larger_of_two_delays_counts_and_no_start_before_the_floor() -> None:
    record = Record(last=100.0, delay=3.0)
    assert [record.start(delay) for delay in (0.0, 3.0, 5.0)] == [103.0, 103.0, 105.0]
    record.floor = 104.0
    assert [record.start(delay) for delay in (0.0, 5.0)] == [104.0, 105.0]
    assert Record().start(300.0) == -math.inf


# What is bound to 0, 2, 5 and 9 seconds may start after requests that ended so many seconds ago,
# were bound to so many, and had arrived by then or not.
@pytest.mark.parametrize(
    ("ended", "starts"),
    [
        ([(0.0, 3.0, True)], [3, 3, 5, 9]),
        ([(0.0, 3.0, False)], [6, 6, 8, 12]),
        ([(0.0, 0.0, False)], [0, 2, 5, 9]),
        ([(0.0, 1.0, False), (0.5, 0.0, True)], [2, 3, 6, 10]),
        ([(0.0, 4.0, False), (1.0, 1.0, True)], [8, 8, 9, 13]),
        ([(0.0, 1.0, False), (0.5, 6.0, True)], [6.5, 6.5, 6.5, 10]),
        ([(0.0, 6.0, True), (4.0, 1.0, True)], [6, 6, 9, 13]),
        ([(0.0, 2.0, False), (1.0, 2.0, False)], [5, 5, 8, 12]),
    ],
)
def test_each_request_holds_off_those_after_it_and_takes_nothing_from_another(
    ended: list[tuple[float, float, bool]], starts: list[float]
) -> None:
    for order in (ended, ended[::-1]):
        record = Record()
        for end, delay, arrived in order:
            record.count(1_000.0 + end, delay, arrived=arrived)
        assert [record.start(delay) - 1_000.0 for delay in (0.0, 2.0, 5.0, 9.0)] == starts
        assert record.delay >= 0.0


def test_the_delay_of_one_request_is_kept_to_the_last_bit() -> None:
    record = Record()
    record.count(123_456.789, 0.1)
    record.count(123_457.891, 0.1)
    assert record.delay == 0.1


def test_a_record_is_forgettable_when_nothing_can_have_to_wait_for_it() -> None:
    assert Record().forgettable(0.0)
    assert not Record(last=100.0).forgettable(399.0)
    assert Record(last=100.0).forgettable(400.0)
    assert not Record(last=0.0, delay=900.0).forgettable(899.0)
    assert not Record(floor=900.0).forgettable(899.0)
