"""What each answer to robots.txt leads to: the table of fetch decisions, row by row."""

import itertools
import logging
from datetime import UTC, datetime
from email.utils import format_datetime

import pytest

from polite_transport import DisallowedByRobots, Policy, RobotsUnreachable, WaitTooLong
from polite_transport.decision import Reason
from polite_transport.flow import NoAnswer
from polite_transport.robots.access import Reply
from polite_transport.robots.body import ACCEPT_ENCODING
from polite_transport.stores.base import Seat
from polite_transport.url import target

from .clockwork import (
    ALLOWS,
    FORBIDS,
    NO_ANSWER,
    ORIGIN,
    PAGE,
    ROBOTS,
    START,
    UA,
    Clockwork,
    closed,
    file,
    moved,
)

PRIVATE = f"{ORIGIN}/private"
DAY = 86_400.0
HOUR = 3_600.0
BODY = FORBIDS.body


def http_date(seconds: float) -> str:
    return format_datetime(datetime.fromtimestamp(seconds, UTC), usegmt=True)


def refused(world: Clockwork, url: str = PAGE, policy: Policy | None = None) -> RobotsUnreachable:
    with pytest.raises(RobotsUnreachable) as caught:
        world.check(url, policy)
    return caught.value


# --- 2xx and 4xx ----------------------------------------------------------------------------


@pytest.mark.parametrize("status", [200, 203])
def test_a_file_is_obeyed(status: int) -> None:
    world = Clockwork(Reply(status, {}, BODY))
    assert world.check().reason is Reason.NO_RULE
    with pytest.raises(DisallowedByRobots) as caught:
        world.check(PRIVATE)
    decision = caught.value.decision
    assert decision.rule is not None
    assert (decision.rule.line, decision.robots_status) == (2, status)
    assert (decision.robots_url, decision.robots_fetched_at) == (ROBOTS, START)
    assert world.asked == [ROBOTS]


@pytest.mark.parametrize("status", [400, 401, 403, 404, 410, 418, 451])
def test_a_4xx_means_no_rules_whatever_its_body_says(status: int) -> None:
    world = Clockwork(Reply(status, {}, BODY))
    decision = world.check(PRIVATE)
    assert decision.reason is Reason.UNAVAILABLE
    assert decision.robots_digest is None
    world.passed += DAY - 1
    world.check()
    assert len(world.fetches) == 1, "no answer is asked for again before its time"


@pytest.mark.parametrize("status", [401, 403])
def test_forbidden_is_told_and_may_be_taken_for_a_no(
    status: int, caplog: pytest.LogCaptureFixture
) -> None:
    world = Clockwork(closed(status))
    assert world.check().allowed
    assert [each.levelno for each in caplog.records] == [logging.WARNING]
    assert str(status) in caplog.text
    with pytest.raises(DisallowedByRobots) as caught:
        world.check(policy=Policy(on_forbidden="disallow"))
    assert caught.value.decision.reason is Reason.FORBIDDEN
    assert len(world.fetches) == 1, "what a policy makes of an answer needs no fetch of its own"


@pytest.mark.parametrize("status", [404, 410, 451])
def test_on_forbidden_means_401_and_403_alone(status: int) -> None:
    assert Clockwork(closed(status)).check(policy=Policy(on_forbidden="disallow")).allowed


# --- 429 ------------------------------------------------------------------------------------


def test_429_is_not_asked_again_before_its_time() -> None:
    world = Clockwork([closed(429, retry_after="70"), ALLOWS])
    error = refused(world)
    assert error.retry_in == 70
    assert error.decision.robots_status == 429
    assert len(world.fetches) == 1, "429 asks for less traffic: no retry"
    world.passed += 69
    assert refused(world).retry_in == 1
    world.passed += 1
    assert world.check().allowed
    assert [each.at for each in world.fetches] == [0, 70]


def test_429_without_a_time_is_asked_again_after_a_minute_doubling() -> None:
    world = Clockwork(closed(429))
    for minutes in (1, 2, 4):
        assert refused(world).retry_in == 60 * minutes
        world.passed += 60 * minutes
    assert refused(world).retry_in == 480


def test_429_may_be_taken_for_no_rules() -> None:
    world = Clockwork(closed(429))
    assert world.check(policy=Policy(on_too_many_requests="allow")).reason is Reason.UNREACHABLE
    refused(world, policy=Policy(on_unreachable="allow"))  # another option's business


# --- 5xx ------------------------------------------------------------------------------------


def test_5xx_is_asked_once_more_after_two_seconds() -> None:
    world = Clockwork([closed(500), FORBIDS])
    assert world.check().allowed
    assert [each.at for each in world.fetches] == [0, 2]


def test_5xx_waits_as_long_as_it_asks_for_before_the_retry() -> None:
    world = Clockwork([closed(503, retry_after="7"), FORBIDS])
    assert world.check().allowed
    assert [each.at for each in world.fetches] == [0, 7]


def test_a_retry_beyond_the_time_for_the_fetch_is_not_waited_for() -> None:
    world = Clockwork([closed(503, retry_after="11"), FORBIDS])
    assert refused(world).retry_in == 11
    assert world.passed == 0
    world.passed += 11
    assert world.check().allowed


def test_5xx_twice_keeps_us_out_for_a_minute_doubling_to_an_hour() -> None:
    world = Clockwork(closed(500))
    for seconds in (60, 120, 240, 480, 960, 1_920, 3_600, 3_600, 3_600):
        before = len(world.fetches)
        assert refused(world).retry_in == seconds
        assert len(world.fetches) == before + 2
        world.passed += seconds - 1
        assert refused(world).retry_in == 1
        assert len(world.fetches) == before + 2, "asked again too early"
        world.passed += 1


def test_the_row_of_failures_is_over_once_it_answers() -> None:
    world = Clockwork([closed(500)] * 4 + [ALLOWS] + [closed(500)])
    for seconds in (60, 120):
        assert refused(world).retry_in == seconds
        world.passed += seconds
    assert world.check().allowed
    world.passed += 40 * DAY
    assert refused(world).retry_in == 60


def test_5xx_may_be_taken_for_no_rules() -> None:
    world = Clockwork(closed(500))
    decision = world.check(policy=Policy(on_unreachable="allow"))
    assert (decision.allowed, decision.reason) == (True, Reason.UNREACHABLE)
    refused(world, policy=Policy(on_too_many_requests="allow"))


def test_the_last_file_counts_on_through_an_outage(caplog: pytest.LogCaptureFixture) -> None:
    world = Clockwork([FORBIDS, closed(500)])
    world.check()
    digest = world.check().robots_digest
    world.passed = DAY
    decision = world.check()
    assert (decision.robots_digest, decision.robots_fetched_at) == (digest, START)
    assert "500" in caplog.text
    with pytest.raises(DisallowedByRobots):
        world.check(PRIVATE)
    assert len(world.fetches) == 3
    world.passed = DAY + 2 + 60
    world.check()
    assert len(world.fetches) == 5, "asked for again after a minute"
    world.passed += 60
    world.check()
    assert len(world.fetches) == 5, "and then after two"


def test_a_copy_speaks_for_an_outage_for_thirty_days_and_no_longer() -> None:
    for failing in (closed(500), closed(429)):
        world = Clockwork([FORBIDS, failing])
        world.check()
        world.passed = 30 * DAY - HOUR
        assert world.check().allowed
        world.passed = 30 * DAY + HOUR
        refused(world)


def test_an_earlier_404_does_not_speak_for_an_outage() -> None:
    world = Clockwork([closed(404), closed(500)])
    assert world.check().allowed
    world.passed = DAY
    refused(world)


def test_an_outage_that_ends_is_forgotten(caplog: pytest.LogCaptureFixture) -> None:
    first = file("User-agent: *\nDisallow: /private\n", etag='"1"')
    world = Clockwork([first, closed(500), closed(500), closed(304)])
    world.check()
    world.passed = DAY
    world.check()
    world.passed += 60
    caplog.clear()
    assert world.check().robots_fetched_at == START + world.passed
    assert not caplog.records, "it answers again; nothing is odd any more"


# --- no answer ------------------------------------------------------------------------------


def test_no_answer_is_asked_once_more_and_is_the_clients_own_error() -> None:
    world = Clockwork(NO_ANSWER)
    for fetches in (2, 4):
        with pytest.raises(NoAnswer) as caught:
            world.check()
        assert caught.value.error is NO_ANSWER.error
        assert not caught.value.shared
        assert ROBOTS in caught.value.note
        assert len(world.fetches) == fetches, "nothing is remembered: the next request asks again"
    assert world.passed == 0


def test_no_answer_and_then_a_file() -> None:
    world = Clockwork([NO_ANSWER, FORBIDS])
    assert world.check().allowed


def test_the_last_file_counts_where_there_is_no_answer(caplog: pytest.LogCaptureFixture) -> None:
    world = Clockwork([FORBIDS, NO_ANSWER])
    world.check()
    world.passed = DAY
    with pytest.raises(DisallowedByRobots):
        world.check(PRIVATE)
    assert "the copy held before counts" in caplog.text
    assert len(world.fetches) == 3
    world.check()
    assert len(world.fetches) == 5, "the next request asks again"
    world.passed = 30 * DAY + 1
    with pytest.raises(NoAnswer):
        world.check()


def test_no_answer_may_be_taken_for_no_rules() -> None:
    decision = Clockwork(NO_ANSWER).check(policy=Policy(on_unreachable="allow"))
    assert (decision.allowed, decision.reason) == (True, Reason.NO_ANSWER)


# --- bodies ---------------------------------------------------------------------------------


def test_a_broken_body_is_unreachable_after_one_retry() -> None:
    broken = Reply(200, {}, b"User-agent: *\nAllow: /\n", broken="it ended early")
    world = Clockwork(broken)
    assert refused(world).retry_in == 60
    assert [each.at for each in world.fetches] == [0, 2]
    assert Clockwork([broken, ALLOWS]).check().allowed


def test_a_broken_answer_says_what_is_wrong_with_it(caplog: pytest.LogCaptureFixture) -> None:
    world = Clockwork(Reply(200, {}, BODY, broken="its Content-Encoding is 'br'"))
    told = str(refused(world))
    assert "robots.txt answered 200 (its Content-Encoding is 'br'), and until" in told
    assert caplog.messages == [f"{ROBOTS} answered 200 (its Content-Encoding is 'br')"]


def test_a_plain_outage_is_told_by_its_status_alone(caplog: pytest.LogCaptureFixture) -> None:
    assert "robots.txt answered 503, and until" in str(refused(Clockwork(closed(503))))
    assert caplog.messages == [f"{ROBOTS} answered 503"]


def test_a_part_that_nobody_asked_for_is_a_broken_answer() -> None:
    part = Reply(206, {"content-range": "bytes 0-12/30"}, b"User-agent: *")
    world = Clockwork(part)
    assert "a part of a file, which was not asked for" in str(refused(world))
    assert [each.at for each in world.fetches] == [0, 2], "asked once more, like any broken body"
    assert Clockwork([part, FORBIDS]).check().allowed


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-be", "utf-32"])
def test_junk_means_no_rules_and_is_told_once(
    encoding: str, caplog: pytest.LogCaptureFixture
) -> None:
    world = Clockwork(Reply(200, {}, BODY.decode().encode(encoding)))
    decision = world.check(PRIVATE)
    world.check(PRIVATE)
    odd = "it holds no line for robots: is it text in UTF-8?"
    assert (decision.reason, decision.robots_note) == (Reason.NO_GROUP, odd)
    assert f"{ROBOTS} has no group for it ({odd})" in str(decision)
    assert caplog.messages == [f"{ROBOTS} allows everything: {odd}"]


def test_rules_for_nobody_are_told(caplog: pytest.LogCaptureFixture) -> None:
    assert Clockwork(file("Disallow: /\n")).check().allowed
    assert "no User-agent line" in caplog.text


@pytest.mark.parametrize(
    "text", ["", "# all welcome\n", "Sitemap: /s\n", "User-agent: other\nDisallow: /\n"]
)
def test_a_file_that_means_what_it_says_is_not_odd(
    text: str, caplog: pytest.LogCaptureFixture
) -> None:
    assert Clockwork(file(text)).check().robots_note is None
    assert not caplog.records


@pytest.mark.parametrize("value", ["5s", "0,5", "1e3", "-5", "inf", "nan", "+5", "5 10", "\u0665"])
def test_a_delay_that_nobody_can_read_is_told(value: str, caplog: pytest.LogCaptureFixture) -> None:
    world = Clockwork(file(f"User-agent: *\nDisallow:\nCrawl-delay: {value}  # soon\n"))
    assert world.check().delay == 0
    world.check()
    (told,) = caplog.messages
    assert told == (
        f"line 3 of {ROBOTS}: 'Crawl-delay: {value}' is not a number of seconds and is ignored; "
        "set Policy(min_delay=) to keep a distance"
    )


@pytest.mark.parametrize("value", ["1/0", "0/5", "1 per 5", "5", "1/5d"])
def test_so_is_a_rate(value: str, caplog: pytest.LogCaptureFixture) -> None:
    assert Clockwork(file(f"User-agent: *\nRequest-rate: {value}\n")).check().delay == 0
    assert f"line 2 of {ROBOTS}: 'Request-rate: {value}' is not a number of requests" in caplog.text


def test_hours_that_nobody_can_read_are_told_to_those_who_keep_them(
    caplog: pytest.LogCaptureFixture,
) -> None:
    text = "User-agent: *\nVisit-time: at night\n"
    Clockwork(file(text)).check()
    assert not caplog.records
    Clockwork(file(text)).check(policy=Policy(obey_visit_time=True))
    assert caplog.messages == [
        f"line 2 of {ROBOTS}: 'Visit-time: at night' is not a part of the day and is ignored"
    ]


@pytest.mark.parametrize(
    "text",
    [
        "User-agent: *\nCrawl-delay: 5s\n\nUser-agent: mybot\nDisallow: /x\n",
        "User-agent: other\nCrawl-delay: 5s\n",
        "User-agent: *\nCrawl-delay:\n",
        "User-agent: *\nCrawl-delay: .5 # 5s\n",
    ],
)
def test_delays_of_others_and_those_that_ask_for_nothing_are_no_news(
    text: str, caplog: pytest.LogCaptureFixture
) -> None:
    Clockwork(file(text)).check()
    assert not caplog.records


def test_a_policy_that_keeps_no_delay_is_told_of_none(caplog: pytest.LogCaptureFixture) -> None:
    world = Clockwork(file("User-agent: *\nCrawl-delay: 5s\n"))
    world.check(policy=Policy(obey_crawl_delay=False))
    assert not caplog.records


def test_a_hostile_file_does_not_fill_the_log(caplog: pytest.LogCaptureFixture) -> None:
    Clockwork(file("User-agent: *\n" + f"Crawl-delay: {'x' * 999}\n" * 400)).check()
    assert len(caplog.messages) == 3
    assert max(map(len, caplog.messages)) < 250


@pytest.mark.parametrize(
    "page", ["<!DOCTYPE html>\n<p>Not here", "<html><body>", "\n <script>location='/'</script>"]
)
def test_a_web_page_means_no_rules(page: str, caplog: pytest.LogCaptureFixture) -> None:
    world = Clockwork(file(page))
    assert world.check().reason is Reason.HTML
    assert "web page" in caplog.text
    with pytest.raises(DisallowedByRobots):
        world.check(policy=Policy(on_html="disallow"))


def test_a_web_page_that_holds_rules_is_a_file() -> None:
    world = Clockwork(file("<html>\nUser-agent: *\nDisallow: /private\n"))
    with pytest.raises(DisallowedByRobots):
        world.check(PRIVATE)
    assert world.check(policy=Policy(on_html="disallow")).allowed


def test_an_empty_file_allows_everything() -> None:
    assert Clockwork(file("")).check(policy=Policy(on_html="disallow")).reason is Reason.NO_GROUP


def test_a_file_is_cut_at_the_last_whole_line_within_its_bound() -> None:
    head = "User-agent: *\nDisallow: /private\nAllow: /private/a"
    cut = len("User-agent: *\nDisallow: /private\nAllow: /pri")
    world = Clockwork(file(head))
    policy = Policy(robots_max_bytes=cut)
    with pytest.raises(DisallowedByRobots) as caught:
        world.check(f"{PRIVATE}/a", policy)  # a rule that was cut in two would allow /pri…
    assert caught.value.decision.rule is not None
    assert world.fetches[0].step.max_bytes == cut


# --- what is asked --------------------------------------------------------------------------


def test_little_is_asked_and_within_ten_seconds() -> None:
    world = Clockwork()
    world.check()
    step = world.fetches[0].step
    assert set(step.headers) == {"Accept", "Accept-Encoding"}
    assert step.headers["Accept-Encoding"] == ACCEPT_ENCODING
    assert (step.timeout, step.max_bytes) == (10.0, 512_000)


def test_the_time_for_a_fetch_is_that_of_all_its_hops() -> None:
    hop = Reply(302, {"location": "/elsewhere"}, elapsed=4.0)
    world = Clockwork({ROBOTS: hop, f"{ORIGIN}/elsewhere": FORBIDS})
    world.check(policy=Policy(robots_timeout=5.0))
    assert [each.step.timeout for each in world.fetches] == [5.0, 1.0]


def test_little_time_for_a_fetch_leaves_it_its_retry() -> None:
    world = Clockwork([closed(500), FORBIDS])
    world.check(policy=Policy(robots_timeout=1.0))
    assert [each.at for each in world.fetches] == [0.0, 1.0]


def test_what_the_fetch_took_is_told_as_waited() -> None:
    world = Clockwork(Reply(200, {}, b"User-agent: *\nCrawl-delay: 3\n", elapsed=1.0))
    call = world.call()
    from polite_transport.flow import check, enter

    world.run(check(call))
    world.run(enter(call))
    assert call.decision.waited == 4.0


# --- redirects ------------------------------------------------------------------------------


def chain(hops: int, last: Reply = FORBIDS) -> dict[str, Reply]:
    urls = [ROBOTS, *(f"http://hop{number}.example/r" for number in range(1, hops + 1))]
    script = {here: moved(there) for here, there in itertools.pairwise(urls)}
    return {**script, urls[-1]: last}


@pytest.mark.parametrize("status", [300, 301, 302, 303, 307, 308])
def test_redirects_are_followed(status: int) -> None:
    world = Clockwork({ROBOTS: moved("//cdn.example/r", status), "http://cdn.example/r": FORBIDS})
    with pytest.raises(DisallowedByRobots) as caught:
        world.check(PRIVATE)
    assert caught.value.decision.robots_url == ROBOTS, "the rules are those of who was asked"
    assert world.asked == [ROBOTS, "http://cdn.example/r"]


def test_a_line_is_cited_by_the_file_it_stands_in(caplog: pytest.LogCaptureFixture) -> None:
    there = "http://cdn.example/r"
    slow = file("User-agent: *\nDisallow: /private\nCrawl-delay: 9\nRequest-rate: 1\n")
    script = {ROBOTS: moved("/a"), f"{ORIGIN}/a": moved(there), there: slow}
    world = Clockwork(script)
    cited = f"{there} (to which {ROBOTS} redirects)"
    with pytest.raises(DisallowedByRobots, match="line 2") as caught:
        world.check(PRIVATE)
    decision = caught.value.decision
    assert (decision.robots_url, decision.robots_redirected_to) == (ROBOTS, there)
    assert f"line 2 of {cited} says 'Disallow: /private'" in str(caught.value)
    assert f"no rule of {cited} matches" in str(world.check())
    with pytest.raises(WaitTooLong) as late:
        world.check(policy=Policy(max_delay=5.0))
    assert f"line 3 of {cited} says 'Crawl-delay: 9'" in str(late.value)
    assert f"line 4 of {cited}: 'Request-rate: 1' is not" in caplog.text


def test_an_answer_that_is_broken_elsewhere_is_cited_there(
    caplog: pytest.LogCaptureFixture,
) -> None:
    there = "http://cdn.example/r"
    world = Clockwork({ROBOTS: moved(there), there: closed(503)})
    assert f"{there} (to which {ROBOTS} redirects) answered 503, and" in str(refused(world))
    assert caplog.messages == [f"{there} (to which {ROBOTS} redirects) answered 503"]


def test_a_304_from_elsewhere_is_no_news_of_the_file_held() -> None:
    first = file("User-agent: *\nDisallow: /private\n", etag='"1"')
    there = "http://cdn.example/r"
    world = Clockwork({ROBOTS: [first, moved(there)], there: closed(304)})
    world.check()
    world.passed = 31 * DAY
    assert refused(world).decision.robots_status == 304


def test_the_rules_of_a_redirect_are_not_those_of_where_it_leads() -> None:
    world = Clockwork(
        {
            ROBOTS: moved("http://cdn.example/robots.txt"),
            "http://cdn.example/robots.txt": [FORBIDS, ALLOWS],
        }
    )
    with pytest.raises(DisallowedByRobots):
        world.check(PRIVATE)
    assert world.check("http://cdn.example/private").allowed
    assert len(world.fetches) == 3


def test_five_hops_are_followed_and_a_sixth_is_not(caplog: pytest.LogCaptureFixture) -> None:
    with pytest.raises(DisallowedByRobots):
        Clockwork(chain(5)).check(PRIVATE)
    assert not caplog.records
    world = Clockwork(chain(6))
    assert world.check(PRIVATE).reason is Reason.UNAVAILABLE
    assert len(world.fetches) == 6
    assert "redirects" in caplog.text


@pytest.mark.parametrize("back", [ROBOTS, f"{ORIGIN}/a", "/robots.txt", "/robots.txt#there"])
def test_a_loop_is_no_robots_txt(back: str, caplog: pytest.LogCaptureFixture) -> None:
    world = Clockwork({ROBOTS: moved("/a"), f"{ORIGIN}/a": moved(back)})
    assert world.check(PRIVATE).reason is Reason.UNAVAILABLE
    assert world.asked == [ROBOTS, f"{ORIGIN}/a"]
    assert "loop" in caplog.text


@pytest.mark.parametrize(
    "location",
    [
        *(None, "", "ftp://example.org/robots.txt", "mailto:robots@example.org", "http://[bad/"),
        *("data:text/plain,User-agent", "javascript:0", "http://", "http://a:b/", "//"),
        *("http://127.0.0.1/r", "http://localhost/r", "http://10.1.2.3/r", "http://[::1]/r"),
        *("http://169.254.169.254/latest/meta-data", "http://127.1/r", "http://0x7f000001/r"),
    ],
)
def test_a_redirect_that_leads_nowhere_keeps_us_out(location: str | None) -> None:
    world = Clockwork(moved(location))
    assert refused(world).retry_in == 60
    assert world.asked == [ROBOTS], "it was followed, or asked once more for nothing"


def test_a_site_of_ones_own_network_may_redirect_within_it() -> None:
    world = Clockwork(
        {"http://127.0.0.1/robots.txt": moved("http://localhost/r"), "http://localhost/r": FORBIDS}
    )
    with pytest.raises(DisallowedByRobots):
        world.check("http://127.0.0.1/private")


def test_redirects_of_redirects_into_ones_own_network_are_not_followed() -> None:
    world = Clockwork(
        {ROBOTS: moved("http://a.example/r"), "http://a.example/r": moved("http://192.168.0.1/")}
    )
    refused(world)
    assert world.asked == [ROBOTS, "http://a.example/r"]


SAME_HOST = Policy(robots_redirects="same-host")


@pytest.mark.parametrize(
    "there", [f"{ORIGIN}/r", "https://example.org/r", "https://example.org:8443/r", "/r"]
)
def test_the_same_host_policy_follows_on_its_host(there: str) -> None:
    where = there if "://" in there else ORIGIN + there
    world = Clockwork({ROBOTS: moved(there), where: FORBIDS})
    with pytest.raises(DisallowedByRobots):
        world.check(PRIVATE, SAME_HOST)


@pytest.mark.parametrize(
    "there", ["http://www.example.org/r", "http://example.org:8080/r", "https://cdn.example/r"]
)
def test_the_same_host_policy_goes_nowhere_else(there: str) -> None:
    world = Clockwork({ROBOTS: moved(there), there: FORBIDS})
    refused(world, PRIVATE, SAME_HOST)
    assert world.asked == [ROBOTS]
    with pytest.raises(DisallowedByRobots):  # and what it could not read, another policy still can
        world.check(PRIVATE)


def test_the_same_host_policy_does_not_go_back_from_https() -> None:
    world = Clockwork({"https://example.org/robots.txt": moved("http://example.org/r")})
    refused(world, "https://example.org/", SAME_HOST)


def test_every_hop_takes_a_turn_of_its_host() -> None:
    world = Clockwork({ROBOTS: moved("/r"), f"{ORIGIN}/r": FORBIDS})
    world.check(policy=Policy(min_delay=3.0))
    assert [each.at for each in world.fetches] == [0, 3]


def test_a_status_that_is_no_redirect_nor_anything_else_keeps_us_out() -> None:
    for odd in (Reply(304), Reply(101), Reply(600)):
        refused(Clockwork(odd))


# --- lives ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("headers", "life"),
    [
        ({}, DAY),
        ({"cache-control": "max-age=7200"}, 7_200),
        ({"cache-control": "public, max-age=7200, must-revalidate"}, 7_200),
        ({"cache-control": "max-age=7200", "age": "1200"}, 6_000),
        ({"cache-control": "max-age=60"}, 1_800),
        ({"cache-control": "no-store"}, 1_800),
        ({"cache-control": "no-cache, max-age=7200"}, 1_800),
        ({"cache-control": "max-age=999999999"}, DAY),
        ({"expires": http_date(START + 7_200)}, 7_200),
        ({"expires": http_date(START + 7_200), "age": "600"}, 6_600),
        ({"expires": http_date(9_200), "date": http_date(2_000)}, 7_200),
        ({"expires": "0"}, 1_800),
        ({"expires": http_date(START + 7_200), "cache-control": "max-age=3600"}, 3_600),
    ],
)
def test_http_caching_shortens_a_life_but_not_below_half_an_hour(
    headers: dict[str, str], life: float
) -> None:
    world = Clockwork(Reply(200, headers, BODY))
    world.check()
    world.passed = life - 1
    world.check()
    assert len(world.fetches) == 1
    world.passed = life
    world.check()
    assert len(world.fetches) == 2


def test_a_policy_sets_the_longest_life() -> None:
    world = Clockwork(Reply(200, {"cache-control": "max-age=7200"}, BODY))
    for passed, fetches in ((0, 1), (99, 1), (100, 2)):
        world.passed = passed
        world.check(policy=Policy(robots_ttl=100.0))
        assert len(world.fetches) == fetches


def test_a_refresh_asks_whether_the_file_has_changed() -> None:
    old = file("User-agent: *\nDisallow: /private\n", etag='W/"1"', last_modified="yesterday")
    new = file("User-agent: *\nDisallow: /page\n", etag='"2"')
    world = Clockwork([old, closed(304), new, ALLOWS])
    world.check()
    world.passed = DAY
    assert world.check().robots_fetched_at == START + DAY
    with pytest.raises(DisallowedByRobots):
        world.check(PRIVATE)
    world.passed = 2 * DAY - 1
    world.check()
    assert len(world.fetches) == 2, "a copy that is unchanged is new"
    world.passed = 2 * DAY
    with pytest.raises(DisallowedByRobots):
        world.check()
    world.passed = 3 * DAY
    world.check()
    conditions = [
        (each.step.headers.get("If-None-Match"), each.step.headers.get("If-Modified-Since"))
        for each in world.fetches
    ]
    assert conditions == [
        (None, None), ('W/"1"', "yesterday"), ('W/"1"', "yesterday"), ('"2"', None)
    ]  # fmt: skip


def test_validators_of_another_url_are_not_ours() -> None:
    there = "http://cdn.example/r"
    world = Clockwork({ROBOTS: moved(there), there: file("User-agent: *", etag='"1"')})
    world.check()
    world.passed = DAY
    world.check()
    assert len(world.fetches) == 4
    assert not any("If-None-Match" in each.step.headers for each in world.fetches)


def test_validators_go_to_the_first_hop_alone() -> None:
    there = "http://cdn.example/r"
    world = Clockwork({ROBOTS: [file("User-agent: *", etag='"1"'), moved(there)], there: FORBIDS})
    world.check()
    world.passed = DAY
    with pytest.raises(DisallowedByRobots):
        world.check(PRIVATE)
    assert ["If-None-Match" in each.step.headers for each in world.fetches] == [False, True, False]


# --- keys, turns and refusals -----------------------------------------------------------------


def test_a_copy_is_one_robots_and_one_origins() -> None:
    others = ["https://example.org", "http://example.org:8080", "http://www.example.org"]
    world = Clockwork({f"{origin}/robots.txt": FORBIDS for origin in (ORIGIN, *others)})
    world.check(PAGE)
    world.check("http://EXAMPLE.org:80/other", ua=UA.replace("1.0", "2.0").replace("My", "MY"))
    assert len(world.fetches) == 1
    for number, origin in enumerate(others, 2):
        world.check(f"{origin}/page")
        assert len(world.fetches) == number
    world.check(ua="OtherBot/1.0 (+https://example.org)")
    assert len(world.fetches) == 5


def test_what_a_site_asks_of_another_robot_is_not_asked_of_us() -> None:
    world = Clockwork(file("User-agent: MyBot\nDisallow: /\n\nUser-agent: *\nDisallow: /private\n"))
    with pytest.raises(DisallowedByRobots):
        world.check()
    assert world.check(ua="OtherBot/1.0 (+https://example.org)").allowed
    with pytest.raises(DisallowedByRobots):
        world.check(policy=Policy(product_token="MyBot"), ua="Mozilla/5.0 (mybot)")


def test_its_crawl_delay_counts_in_full_after_robots_txt_itself() -> None:
    world = Clockwork(file("User-agent: *\nCrawl-delay: 5\n"))
    assert world.send() == 5
    # Even for one that is not bound to it.
    other = Clockwork(file("User-agent: *\nCrawl-delay: 5\n"))
    other.check()
    assert other.send(policy=Policy(obey_crawl_delay=False)) == 5


def test_its_refresh_keeps_the_delay_it_asked_for_before() -> None:
    world = Clockwork(file("User-agent: *\nCrawl-delay: 5\n"))
    world.send()
    world.passed = DAY - 1
    world.send(policy=Policy(obey_crawl_delay=False))
    world.passed = DAY
    world.check()
    assert [each.at for each in world.fetches] == [0, DAY + 4]


def test_it_takes_a_turn_though_no_delay_is_known_yet() -> None:
    world = Clockwork()
    world.check("http://example.org:80/")
    world.store.acquire(Seat("example.org", 0.0, 60.0, alone=True))
    with pytest.raises(TypeError, match="Wait"):  # nobody is there to end it here
        world.check("http://example.org/", ua="OtherBot/1.0 (+https://example.org)")
    assert len(world.fetches) == 1


def test_a_turn_too_far_away_is_told_before_robots_txt_is_asked_for() -> None:
    world = Clockwork()
    world.send("http://example.org:80/page", Policy(min_delay=100.0))
    with pytest.raises(WaitTooLong) as caught:
        world.check("https://example.org/", Policy(max_wait=50.0))
    assert caught.value.wait == 100
    assert caught.value.decision.url == "https://example.org/"
    assert len(world.fetches) == 1
    world.script["https://example.org/robots.txt"] = [ALLOWS]
    world.passed += 100
    assert world.check("https://example.org/", Policy(max_wait=50.0)).allowed


def test_with_both_switches_off_nothing_is_fetched() -> None:
    world = Clockwork({})
    decision = world.check(PRIVATE, Policy(obey_disallow=False, obey_crawl_delay=False))
    assert decision.reason is Reason.NOT_ASKED
    assert not world.fetches


@pytest.mark.parametrize("switch", ["obey_disallow", "obey_crawl_delay", "obey_visit_time"])
def test_with_one_switch_on_it_is_fetched(switch: str) -> None:
    off = dict.fromkeys(("obey_disallow", "obey_crawl_delay"), False)
    world = Clockwork()
    world.check(policy=Policy(**{**off, switch: True}))  # type: ignore[arg-type]
    assert len(world.fetches) == 1


def test_what_a_site_says_about_itself_cannot_get_into_the_log(
    caplog: pytest.LogCaptureFixture,
) -> None:
    refused(Clockwork(moved("gopher://x/\r\n\x1b[31mFATAL: pay up")))
    assert "\x1b" not in caplog.text
    assert len(caplog.text.strip().splitlines()) == 1


def test_robots_txt_itself_is_always_allowed() -> None:
    world = Clockwork(file("User-agent: *\nDisallow: /\n"))
    assert world.check(ROBOTS).reason is Reason.ROBOTS_TXT
    assert target(ROBOTS) is not None
