"""One delay a host, whatever asks and however: the gaps in the site's log."""

import gzip
import itertools
import time
from collections.abc import Callable

import pytest

from polite_transport import DisallowedByRobots, Policy, WaitTooLong
from polite_transport.decision import Reason
from polite_transport.testing import Answer, Site

from .faces import FACES, Visitor

DELAY = 0.05
ROBOTS = f"User-agent: *\nDisallow: /private\nCrawl-delay: {DELAY}\n"
Start = Callable[..., Site]
Visit = Callable[..., Visitor]
# What the clients only pass on to the one logic beneath them is tried with one of each kind.
one_of_each_kind = pytest.mark.parametrize("visit", ["requests", "trio"], indirect=True)


@pytest.mark.parametrize("visit", FACES, indirect=True)
def test_pages_hops_and_robots_txt_lie_one_delay_apart(site: Start, visit: Visit) -> None:
    place = site(ROBOTS, accept_jitter=(0.0, 0.02))
    client = visit()
    client.get_all(place.url(path) for path in ("/1", "/2", "/redirect?to=/3", "/4"))
    assert client.get(place.url("/redirect?to=/redirect%3Fto=/5")).status == 200
    assert len(place.log) == 1 + 5 + 3
    assert place.targets()[0] == "/robots.txt"
    place.assert_polite()


def test_a_redirect_into_a_disallowed_path_stops_there(site: Start, visit: Visit) -> None:
    place = site(ROBOTS)
    with pytest.raises(DisallowedByRobots) as refused:
        visit().get(place.url("/redirect?to=/private/x"))
    assert refused.value.decision.url == place.url("/private/x")
    assert place.targets() == ["/robots.txt", "/redirect?to=/private/x"]


def test_a_redirect_to_another_host_is_under_its_rules_and_its_delay(
    site: Start, visit: Visit
) -> None:
    there = "127.0.0.2"
    place = site(
        addresses=("127.0.0.1", there),
        robots_by_address={
            "127.0.0.1": f"User-agent: *\nCrawl-delay: {DELAY}\n",
            there: "User-agent: *\nDisallow: /private\nCrawl-delay: 0.1\n",
        },
    )
    client = visit()
    for path in ("/a", "/b"):
        client.get(place.url(f"/redirect?to={place.url(path, there)}"))
    with pytest.raises(DisallowedByRobots):
        client.get(place.url(f"/redirect?to={place.url('/private', there)}"))
    assert place.targets(there) == ["/robots.txt", "/a", "/b"]
    assert len(place.targets("127.0.0.1")) == 4
    assert min(place.gaps(there)) >= 0.1
    assert min(place.gaps("127.0.0.1")) >= DELAY


@one_of_each_kind
def test_two_ports_of_one_host_share_their_turns(site: Start, visit: Visit) -> None:
    asks, silent = site(f"User-agent: *\nCrawl-delay: {DELAY}\n"), site()
    client = visit()
    for number in range(2):
        client.get(asks.url(f"/{number}"))
        client.get(silent.url(f"/{number}"))
    # Of what the earlier and the later request are bound to, the larger counts.
    for earlier, later in itertools.pairwise(sorted(asks.log + silent.log, key=lambda it: it.time)):
        if asks.port in {earlier.port, later.port}:
            assert later.time - earlier.time >= DELAY


@pytest.mark.parametrize("visit", FACES, indirect=True)
def test_without_a_delay_pages_are_asked_for_side_by_side(site: Start, visit: Visit) -> None:
    place = site("User-agent: *\nDisallow: /private\n")
    client = visit()
    client.get(place.url("/warm"))
    client.get_all(place.url(f"/slow?headers=1.5&n={number}") for number in range(6))
    arrivals = [each.time for each in place.log[2:]]
    # The last one arrived before the first one was answered.
    assert max(arrivals) - min(arrivals) < 1.5


@one_of_each_kind
def test_the_delay_of_an_override_and_no_other(site: Start, visit: Visit) -> None:
    own, exempt = "127.0.0.2", "127.0.0.3"
    place = site(ROBOTS, addresses=("127.0.0.1", own, exempt))
    client = visit(
        policy=Policy(
            overrides={own: Policy(min_delay=0.15, obey_disallow=False)}, exempt_hosts=[exempt]
        )
    )
    for host in place.addresses[1:]:
        client.get(place.url("/private/1", host))
        seen = client.get(place.url("/private/2", host))
    assert seen.decision.reason is Reason.EXEMPT
    with pytest.raises(DisallowedByRobots):
        client.get(place.url("/private"))
    assert place.targets(own) == ["/robots.txt", "/private/1", "/private/2"]
    assert place.targets(exempt) == ["/private/1", "/private/2"]
    assert min(place.gaps(own)) >= 0.15
    assert place.targets("127.0.0.1") == ["/robots.txt"]


@one_of_each_kind
def test_request_rate_counts_where_it_asks_for_more(site: Start, visit: Visit) -> None:
    place = site("User-agent: *\nRequest-rate: 10/1s\nCrawl-delay: 0.05\n")
    client = visit()
    decision = client.get(place.url("/1")).decision
    client.get(place.url("/2"))
    assert decision.delay == 0.1
    assert min(place.gaps()) >= 0.1


@one_of_each_kind
@pytest.mark.parametrize(("opens", "closes", "sent"), [(-1, 1, True), (2, 3, False)])
def test_visit_time_is_kept_where_the_policy_says_so(
    site: Start, visit: Visit, opens: int, closes: int, sent: bool
) -> None:
    begin, end = (
        time.strftime("%H%M", time.gmtime(time.time() + hours * 3600)) for hours in (opens, closes)
    )
    place = site(f"User-agent: *\nVisit-time: {begin}-{end}\n")
    assert visit().get(place.url("/first")).status == 200
    client = visit(obey_visit_time=True, max_wait=60)
    if sent:
        client.get(place.url("/second"))
        assert place.targets() == ["/robots.txt", "/first", "/second"]
    else:
        with pytest.raises(WaitTooLong) as refused:
            client.get(place.url("/second"))
        assert 3600 < refused.value.wait <= 2 * 3600
        assert place.targets() == ["/robots.txt", "/first"]


def test_more_than_the_policy_allows_is_refused_and_not_shortened(
    site: Start, visit: Visit
) -> None:
    place = site("User-agent: *\nCrawl-delay: 20\n")
    with pytest.raises(WaitTooLong, match="max_delay=10") as refused:
        visit(max_delay=10).get(place.url("/page"))
    assert refused.value.wait == 20
    with pytest.raises(WaitTooLong, match=r"max_wait=0\.5") as refused:
        visit(max_wait=0.5).get(place.url("/page"))
    # At once: what it would have had to wait is still nearly all of the delay.
    assert 15 < refused.value.wait <= 20
    assert isinstance(refused.value, visit().native)
    assert place.targets() == ["/robots.txt"]


@one_of_each_kind
def test_obeying_the_delay_and_not_the_rules(
    site: Start, visit: Visit, caplog: pytest.LogCaptureFixture
) -> None:
    place = site(ROBOTS)
    client = visit(obey_disallow=False)
    seen = client.get(place.url("/private/x"))
    assert (seen.status, seen.decision.allowed) == (200, False)
    assert "line 2" in caplog.text
    assert place.targets() == ["/robots.txt", "/private/x"]
    assert min(place.gaps()) >= DELAY


@one_of_each_kind
def test_obeying_the_rules_and_not_the_delay(site: Start, visit: Visit) -> None:
    place = site("User-agent: *\nDisallow: /private\nCrawl-delay: 1000\n")
    client = visit(obey_crawl_delay=False)
    client.get_all([place.url("/1"), place.url("/2")])
    with pytest.raises(DisallowedByRobots):
        client.get(place.url("/private"))
    assert sorted(place.targets()) == ["/1", "/2", "/robots.txt"]


@one_of_each_kind
def test_obeying_neither_asks_for_nothing(site: Start, visit: Visit) -> None:
    place = site("User-agent: *\nDisallow: /\nCrawl-delay: 1000\n")
    seen = visit(obey_disallow=False, obey_crawl_delay=False).get(place.url("/page"))
    assert seen.decision.reason is Reason.NOT_ASKED
    assert place.targets() == ["/page"]


@one_of_each_kind
def test_an_absurd_delay_is_none_or_refused_and_hangs_nobody(site: Start, visit: Visit) -> None:
    delays = ("nan", "inf", "-1", "1e9", "0x10", "5s", "one", "9" * 400)
    hosts = {f"127.0.0.{number}": delay for number, delay in enumerate(delays, 1)}
    place = site(
        addresses=tuple(hosts),
        robots_by_address={
            host: f"User-agent: *\nCrawl-delay: {delay}\n" for host, delay in hosts.items()
        },
    )
    client = visit()
    for host, delay in hosts.items():
        if delay.isdigit():
            with pytest.raises(WaitTooLong):
                client.get(place.url("/page", host))
            assert place.targets(host) == ["/robots.txt"]
        else:
            assert client.get(place.url("/page", host)).decision.delay == 0
            assert place.targets(host) == ["/robots.txt", "/page"]


@pytest.mark.parametrize("visit", FACES, indirect=True)
def test_pace_from_body_waits_for_the_end_of_every_kind_of_body(site: Start, visit: Visit) -> None:
    content = b"x" * 1000
    kinds = {
        "127.0.0.1": Answer(body=content),
        "127.0.0.2": Answer(body=content, headers={"Transfer-Encoding": "chunked"}),
        "127.0.0.3": Answer(body=gzip.compress(content), headers={"Content-Encoding": "gzip"}),
        "127.0.0.4": Answer(),
        "127.0.0.5": Answer(status=204),
        "127.0.0.6": Answer(body=content, headers={"Connection": "close"}),
    }
    dripping = "127.0.0.7"
    place = site(ROBOTS, addresses=(*kinds, dripping))
    for host, answer in kinds.items():
        place.serve("/page", answer, host=host)
    place.serve("/page", Answer(body=b"x" * 10, drip=(1, 0.02)), host=dripping)
    client = visit(pace_from="body", turn_limit=20)
    seen = client.get_all(place.url("/page", host) for host in place.addresses for _ in range(3))
    assert [each.body for each in seen[:9]] == [content] * 9
    client.get(place.url("/page"), method="HEAD")
    client.get(place.url("/page"))
    gaps = place.gaps()
    assert len(place.log) == 7 * 4 + 2
    assert min(gaps) >= DELAY
    assert min(place.gaps(dripping)[1:]) >= 0.2 + DELAY
    # Nobody waited for the limit of a turn that was never given back.
    assert max(gaps) < 15
