"""How long a copy of robots.txt counts."""

import pytest

from polite_transport.robots.freshness import lifetime, retry_in

NOW = 784_111_777.0  # Sun, 06 Nov 1994 08:49:37 GMT
DAY = 86_400.0
HALF_AN_HOUR = 1_800.0


@pytest.mark.parametrize(
    ("headers", "life"),
    [
        ({}, DAY),
        ({"cache-control": ""}, DAY),
        ({"cache-control": "public, s-maxage=7200"}, DAY),
        ({"cache-control": "x-max-agenda=1"}, DAY),
        ({"cache-control": "max-age=soon"}, DAY),
        ({"cache-control": "max-age=-1"}, DAY),
        ({"age": "86399"}, DAY),
        ({"cache-control": "MAX-AGE=7200"}, 7_200),
        ({"cache-control": 'max-age="7200"'}, 7_200),
        ({"cache-control": "max-age = 7200 , public"}, 7_200),
        ({"cache-control": "max-age=7200, max-age=3600"}, 3_600),
        ({"cache-control": "max-age=0"}, HALF_AN_HOUR),
        ({"cache-control": "max-age=1801"}, 1_801),
        ({"cache-control": "max-age=99999999999"}, DAY),
        ({"cache-control": "No-Store"}, HALF_AN_HOUR),
        ({"cache-control": "max-age=7200, no-cache"}, HALF_AN_HOUR),
        ({"cache-control": 'no-cache="set-cookie", max-age=7200'}, HALF_AN_HOUR),
        ({"cache-control": "no-cachet, max-age=7200"}, 7_200),
        ({"cache-control": "max-age=7200", "age": "3600"}, 3_600),
        ({"cache-control": "max-age=7200", "age": "7200"}, HALF_AN_HOUR),
        ({"cache-control": "max-age=7200", "age": "-1"}, 7_200),
        ({"cache-control": "max-age=7200", "age": "²"}, 7_200),
        ({"cache-control": "max-age=7200", "age": "9" * 400}, HALF_AN_HOUR),
        ({"expires": "Sun, 06 Nov 1994 10:49:37 GMT"}, 7_200),
        ({"expires": "Sun, 06 Nov 1994 08:49:37 GMT"}, HALF_AN_HOUR),
        ({"expires": "Fri, 06 Nov 1992 08:49:37 GMT"}, HALF_AN_HOUR),
        ({"expires": "Fri, 31 Dec 9999 23:59:59 GMT"}, DAY),
        ({"expires": "0"}, HALF_AN_HOUR),
        ({"expires": "soon"}, HALF_AN_HOUR),
        (
            {"expires": "Sun, 06 Nov 1994 10:00:00 GMT", "date": "Sun, 06 Nov 1994 08:00:00 GMT"},
            7_200,
        ),
        ({"expires": "Sun, 06 Nov 1994 10:49:37 GMT", "date": "garbled"}, 7_200),
        ({"expires": "0", "cache-control": "max-age=7200"}, 7_200),
    ],
)
def test_lives(headers: dict[str, str], life: float) -> None:
    assert lifetime(headers, DAY, NOW) == life


def test_a_policy_may_ask_more_often_than_caching_ever_could() -> None:
    assert lifetime({}, 60.0, NOW) == 60.0
    assert lifetime({"cache-control": "no-store"}, 60.0, NOW) == 60.0
    assert lifetime({"cache-control": "max-age=7200"}, 60.0, NOW) == 60.0


def test_an_outage_is_asked_about_after_a_minute_doubling_to_an_hour() -> None:
    waits = [retry_in(failures, None) for failures in range(1, 9)]
    assert waits == [60, 120, 240, 480, 960, 1_920, 3_600, 3_600]
    assert retry_in(10**9, None) == 3_600


def test_or_when_the_site_says() -> None:
    assert retry_in(5, 7.0) == 7.0
    assert retry_in(1, 10**6) == 10**6
    assert retry_in(1, 10**9) == 30 * 86_400
    assert retry_in(3, 0.0) == 240.0, "zero is no time"
