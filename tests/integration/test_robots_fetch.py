"""What an answer to robots.txt leads to, over real sockets; the site's log is the judge."""

import time
from collections.abc import Callable

import pytest

from polite_transport import (
    DisallowedByRobots,
    MemoryStore,
    Policy,
    PoliteSession,
    RobotsUnreachable,
    WaitTooLong,
)
from polite_transport.decision import Reason
from polite_transport.testing import Answer, Site

UA = "MyBot/1.0 (+https://example.org/bot)"
FORBIDS = "User-agent: *\nDisallow: /private\n"
Start = Callable[..., Site]


def session(store: MemoryStore, **policy: object) -> PoliteSession:
    return PoliteSession(ua=UA, store=store, policy=Policy(**policy))  # type: ignore[arg-type]


@pytest.mark.parametrize("status", [401, 403])
def test_forbidden_may_be_taken_for_a_no(site: Start, store: MemoryStore, status: int) -> None:
    place = site(Answer(status=status))
    with (
        session(store, on_forbidden="disallow") as client,
        pytest.raises(DisallowedByRobots) as refused,
    ):
        client.get(place.url("/page"))
    assert refused.value.decision.reason is Reason.FORBIDDEN
    assert place.targets() == ["/robots.txt"]


def test_429_keeps_us_out_as_long_as_it_says(site: Start, store: MemoryStore) -> None:
    place = site(Answer(status=429, headers={"Retry-After": "70"}))
    with session(store) as client, pytest.raises(RobotsUnreachable) as refused:
        client.get(place.url("/page"))
    assert 69 < refused.value.retry_in <= 70
    assert place.targets() == ["/robots.txt"]
    with session(store, on_too_many_requests="allow") as client:
        assert client.check(place.url("/page")).allowed


def test_5xx_is_asked_once_more_and_then_keeps_us_out(site: Start, store: MemoryStore) -> None:
    place = site(Answer(status=500))
    with session(store) as client:
        for _ in range(2):
            with pytest.raises(RobotsUnreachable) as refused:
                client.get(place.url("/page"))
    assert 55 < refused.value.retry_in <= 60
    assert place.targets() == ["/robots.txt", "/robots.txt"]
    assert place.gaps()[0] >= 2.0
    with session(store, on_unreachable="allow") as client:
        client.get(place.url("/page"))
    assert place.targets()[2:] == ["/page"]


def test_a_retry_that_succeeds_lets_the_page_through(site: Start, store: MemoryStore) -> None:
    place = site([Answer(status=503, headers={"Retry-After": "1"}), Answer(body=FORBIDS.encode())])
    with session(store) as client:
        client.get(place.url("/page"))
    assert place.targets() == ["/robots.txt", "/robots.txt", "/page"]


def test_a_distance_above_max_delay_names_its_line_and_is_not_cured_by_time(
    site: Start, store: MemoryStore
) -> None:
    place = site("User-agent: *\nDisallow: /private\nCrawl-delay: 20\n")
    with session(store, max_delay=5) as client:
        for _ in range(2):
            with pytest.raises(WaitTooLong) as refused:
                client.get(place.url("/page"))
    assert (refused.value.wait, refused.value.retry_in) == (20.0, None)
    assert f"line 3 of {place.url('/robots.txt')} says 'Crawl-delay: 20'" in str(refused.value)
    assert place.targets() == ["/robots.txt"]


def test_a_pause_that_is_too_long_is_over_when_it_says(site: Start, store: MemoryStore) -> None:
    place = site(FORBIDS)
    place.serve("/page", [Answer(status=503, headers={"Retry-After": "1"}), Answer()])
    with session(store, max_wait=0.1) as client:
        assert client.get(place.url("/page")).status_code == 503
        with pytest.raises(WaitTooLong, match="asked for a pause") as refused:
            client.get(place.url("/page"))
        assert refused.value.retry_in is not None
        time.sleep(refused.value.retry_in)
        assert client.get(place.url("/page")).status_code == 200
    assert place.targets() == ["/robots.txt", "/page", "/page"]
    assert place.gaps()[1] >= 1.0


def test_a_delay_that_nobody_can_read_is_told(
    site: Start, store: MemoryStore, caplog: pytest.LogCaptureFixture
) -> None:
    place = site("User-agent: *\nCrawl-delay: 5s\n")
    with session(store) as client:
        client.get(place.url("/page"))
        client.get(place.url("/page"))
    assert caplog.text.count("'Crawl-delay: 5s' is not a number of seconds and is ignored") == 1
    assert f"line 2 of {place.url('/robots.txt')}" in caplog.text
    assert place.targets() == ["/robots.txt", "/page", "/page"]


def test_the_same_host_policy_goes_to_no_other_origin(site: Start, store: MemoryStore) -> None:
    elsewhere = site(FORBIDS)
    place = site(Answer(status=302, headers={"Location": elsewhere.url("/robots.txt")}))
    with session(store, robots_redirects="same-host") as client, pytest.raises(RobotsUnreachable):
        client.get(place.url("/page"))
    assert elsewhere.targets() == []


@pytest.mark.parametrize("cache_control", ["max-age=0", "no-store", "no-cache", "max-age=60"])
def test_cache_control_shortens_the_life_to_half_an_hour_at_the_least(
    site: Start, store: MemoryStore, cache_control: str
) -> None:
    place = site(Answer(body=FORBIDS.encode(), headers={"Cache-Control": cache_control}))
    with session(store) as client:
        for number in range(3):
            client.get(place.url(f"/{number}"))
    assert place.targets().count("/robots.txt") == 1
