"""What an answer to robots.txt leads to, over real sockets; the site's log is the judge."""

import gzip
import time
from collections.abc import Callable

import httpx
import pytest
import requests

from polite_transport import (
    DisallowedByRobots,
    MemoryStore,
    Policy,
    PoliteSession,
    PoliteTransport,
    RobotsUnreachable,
)
from polite_transport.decision import Reason
from polite_transport.testing import Answer, Site

UA = "MyBot/1.0 (+https://example.org/bot)"
FORBIDS = "User-agent: *\nDisallow: /private\n"
Start = Callable[..., Site]


def session(store: MemoryStore, **policy: object) -> PoliteSession:
    return PoliteSession(ua=UA, store=store, policy=Policy(**policy))  # type: ignore[arg-type]


@pytest.mark.parametrize("status", [401, 403, 404, 410, 451])
def test_a_4xx_means_no_rules(site: Start, store: MemoryStore, status: int) -> None:
    place = site(Answer(status=status, body=FORBIDS.encode()))
    with session(store) as client:
        response = client.get(place.url("/private/x"))
    assert response.status_code == 200
    assert response.polite.reason is Reason.UNAVAILABLE  # type: ignore[attr-defined]
    assert place.targets() == ["/robots.txt", "/private/x"]


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


def test_the_last_good_copy_stands_in_for_an_outage(site: Start, store: MemoryStore) -> None:
    place = site(
        [Answer(body=FORBIDS.encode()), Answer(status=503, headers={"Retry-After": "600"})]
    )
    with session(store, robots_ttl=0.2) as client:
        client.get(place.url("/before"))
        time.sleep(0.25)  # the copy's own life, not a hope
        with pytest.raises(DisallowedByRobots) as refused:
            client.get(place.url("/private/x"))
    assert refused.value.decision.rule is not None
    assert place.targets() == ["/robots.txt", "/before", "/robots.txt"]


def test_no_answer_raises_what_the_client_always_raised(store: MemoryStore) -> None:
    gone = "http://127.0.0.1:9/page"
    with pytest.raises(requests.ConnectionError) as bare:
        requests.get(gone, timeout=5)
    with session(store) as client, pytest.raises(requests.ConnectionError) as polite:
        client.get(gone)
    assert type(polite.value) is type(bare.value)
    assert "robots.txt" in polite.value.__notes__[0]
    with (
        httpx.Client(transport=PoliteTransport(ua=UA, store=store)) as other,
        pytest.raises(httpx.ConnectError) as async_like,
    ):
        other.get(gone)
    assert "robots.txt" in async_like.value.__notes__[0]


@pytest.mark.parametrize(
    ("answer", "allowed"),
    [
        (Answer(body=b"\xef\xbb\xbfUser-agent: *\nDisallow: /\n"), False),
        (Answer(body=b"User-agent: *\r# caf\xe9\rDisallow: /\r"), False),
        (
            Answer(
                body=gzip.compress(b"User-agent: *\nDisallow: /\n"),
                headers={"Content-Encoding": "gzip"},
            ),
            False,
        ),
        (Answer(body=b"<!doctype html><html><body>Not here</body></html>"), True),
        (Answer(body=b""), True),
        (Answer(body=b"\x00\xff" * 1000), True),
        (Answer(body=b"User-agent: *\nDisallow: /\n", drip=(4, 0.01)), False),
        (
            Answer(body=b"User-agent: *\nDisallow: /\n", headers={"Transfer-Encoding": "chunked"}),
            False,
        ),
    ],
)
def test_bodies(site: Start, store: MemoryStore, answer: Answer, allowed: bool) -> None:
    place = site(answer)
    with session(store) as client:
        assert client.check(place.url("/page")).allowed is allowed
    with httpx.Client(transport=PoliteTransport(ua=UA, store=MemoryStore())) as other:
        if allowed:
            other.get(place.url("/page"))
        else:
            with pytest.raises(DisallowedByRobots):
                other.get(place.url("/page"))


@pytest.mark.parametrize(
    "answer",
    [
        Answer(body=b"User-agent: *\nAllow: /\n", close="body"),
        Answer(body=gzip.compress(b"User-agent: *\n")[:-9], headers={"Content-Encoding": "gzip"}),
        Answer(body=b"not gzip at all", headers={"Content-Encoding": "gzip"}),
        Answer(body=b"User-agent: *\n", headers={"Content-Encoding": "br"}),
    ],
)
def test_a_broken_body_keeps_us_out(site: Start, store: MemoryStore, answer: Answer) -> None:
    place = site(answer)
    with session(store) as client, pytest.raises(RobotsUnreachable):
        client.get(place.url("/page"))
    assert set(place.targets()) == {"/robots.txt"}


def test_an_endless_file_is_not_downloaded(site: Start, store: MemoryStore) -> None:
    body = b"User-agent: *\nDisallow: /private\n" + b"# padding\n" * 1_000
    place = site(Answer(body=body, endless=True))
    with session(store) as client, pytest.raises(DisallowedByRobots):
        client.get(place.url("/private/x"))
    # What fits into the sockets' buffers may have been sent beyond what was read.
    assert place.sent("/robots.txt") < 20_000_000


def test_a_dripping_file_has_ten_seconds_or_what_is_set(site: Start, store: MemoryStore) -> None:
    place = site(Answer(body=b"User-agent: *\nAllow: /\n" * 100, drip=(1, 0.05)))
    started = time.monotonic()
    with session(store, robots_timeout=0.5) as client, pytest.raises(RobotsUnreachable):
        client.get(place.url("/page"))
    assert set(place.targets()) == {"/robots.txt"}
    assert time.monotonic() - started < 30  # not the two minutes that the file would take


def test_redirects_are_followed_and_the_rules_belong_to_who_was_asked(
    site: Start, store: MemoryStore
) -> None:
    elsewhere = site(FORBIDS)
    moved = elsewhere.url("/robots.txt?from=a")
    place = site(Answer(status=302, headers={"Location": moved, "Set-Cookie": "a=b"}))
    elsewhere.serve("/robots.txt?from=a", Answer(body=b"User-agent: *\nDisallow: /\n"))
    with session(store) as client:
        client.headers["Authorization"] = "Basic c2VjcmV0"
        client.cookies.set("session", "secret")
        with pytest.raises(DisallowedByRobots):
            client.get(place.url("/page"))
        client.get(elsewhere.url("/page"))
    fetches = [each for each in elsewhere.log + place.log if "robots.txt" in each.target]
    assert len(fetches) == 3
    for each in fetches:
        assert each.headers["user-agent"] == UA
        assert not {"cookie", "authorization", "if-none-match"} & set(each.headers)


def test_five_hops_are_followed_and_a_sixth_means_no_rules(site: Start, store: MemoryStore) -> None:
    def chain(hops: int) -> Site:
        place = site(Answer(status=301, headers={"Location": "/hop/1"}))
        for hop in range(1, hops):
            there = Answer(status=301, headers={"Location": f"/hop/{hop + 1}"})
            place.serve(f"/hop/{hop}", there)
        place.serve(f"/hop/{hops}", Answer(body=FORBIDS.encode()))
        return place

    with session(store) as client:
        with pytest.raises(DisallowedByRobots):
            client.get(chain(5).url("/private"))
        longer = chain(6)
        assert client.get(longer.url("/private")).status_code == 200
    assert len(longer.targets()) == 6 + 1


@pytest.mark.parametrize(
    "location", [None, "ftp://127.0.0.1/robots.txt", "http://[bad", "mailto:a@b"]
)
def test_a_redirect_that_leads_nowhere_keeps_us_out(
    site: Start, store: MemoryStore, location: str | None
) -> None:
    headers = {} if location is None else {"Location": location}
    place = site(Answer(status=302, headers=headers))
    with session(store) as client, pytest.raises(RobotsUnreachable):
        client.get(place.url("/page"))
    assert place.targets() == ["/robots.txt"]


def test_the_same_host_policy_goes_to_no_other_origin(site: Start, store: MemoryStore) -> None:
    elsewhere = site(FORBIDS)
    place = site(Answer(status=302, headers={"Location": elsewhere.url("/robots.txt")}))
    with session(store, robots_redirects="same-host") as client, pytest.raises(RobotsUnreachable):
        client.get(place.url("/page"))
    assert elsewhere.targets() == []


def test_a_refresh_asks_whether_the_file_has_changed(site: Start, store: MemoryStore) -> None:
    first = Answer(body=FORBIDS.encode(), headers={"ETag": '"one"'})
    second = Answer(body=b"User-agent: *\nDisallow: /\n", headers={"ETag": '"two"'})
    place = site([first, first, second])
    with session(store, robots_ttl=0.1) as client:
        client.get(place.url("/1"))
        time.sleep(0.15)
        client.get(place.url("/2"))
        time.sleep(0.15)
        with pytest.raises(DisallowedByRobots):
            client.get(place.url("/3"))
    fetches = [each.headers.get("if-none-match") for each in place.log if "robots" in each.target]
    assert fetches == [None, '"one"', '"one"']


@pytest.mark.parametrize("cache_control", ["max-age=0", "no-store", "no-cache", "max-age=60"])
def test_cache_control_shortens_the_life_to_half_an_hour_at_the_least(
    site: Start, store: MemoryStore, cache_control: str
) -> None:
    place = site(Answer(body=FORBIDS.encode(), headers={"Cache-Control": cache_control}))
    with session(store) as client:
        for number in range(3):
            client.get(place.url(f"/{number}"))
    assert place.targets().count("/robots.txt") == 1


def test_with_both_switches_off_nothing_is_fetched(site: Start, store: MemoryStore) -> None:
    place = site(FORBIDS)
    with session(store, obey_disallow=False, obey_crawl_delay=False) as client:
        response = client.get(place.url("/private/x"))
    assert response.polite.reason is Reason.NOT_ASKED  # type: ignore[attr-defined]
    assert place.targets() == ["/private/x"]


def test_a_dry_run_sends_and_tells(
    site: Start, store: MemoryStore, caplog: pytest.LogCaptureFixture
) -> None:
    place = site(FORBIDS)
    with session(store, obey_disallow=False) as client:
        response = client.get(place.url("/private/x"))
    assert not response.polite.allowed  # type: ignore[attr-defined]
    assert "line 2" in caplog.text
    assert place.targets() == ["/robots.txt", "/private/x"]
