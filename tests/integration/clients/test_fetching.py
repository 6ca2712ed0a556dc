"""Fetching robots.txt: whatever comes back, in bounded time and bytes, and only once."""

import gzip
import itertools
import time
import zlib
from collections.abc import Callable
from typing import Any

import pytest

from polite_transport import DisallowedByRobots, MemoryStore, Policy, RobotsUnreachable
from polite_transport.decision import Reason
from polite_transport.testing import Answer, Site

from .faces import Visitor

FORBIDS = b"User-agent: *\nDisallow: /private\n"
ALL = b"User-agent: *\nDisallow: /\n"
# Told at once: the retry of an unreachable robots.txt would come after robots_timeout.
LATER = {"Retry-After": "600"}
Start = Callable[..., Site]
Visit = Callable[..., Visitor]
GZIP, DEFLATE = {"Content-Encoding": "gzip"}, {"Content-Encoding": "deflate"}


def test_concurrent_first_requests_make_one_fetch(site: Start, visit: Visit) -> None:
    place = site(Answer(body=FORBIDS, delay=0.2))
    visit().get_all(place.url(f"/{number}?q={number}") for number in range(8))
    assert place.targets()[0] == "/robots.txt"
    assert place.targets().count("/robots.txt") == 1
    assert len(place.log) == 9


READABLE: dict[str, Answer] = {
    "plain": Answer(body=ALL),
    "gzip": Answer(body=gzip.compress(ALL), headers=GZIP),
    "two gzip members": Answer(
        body=gzip.compress(ALL[:20]) + gzip.compress(ALL[20:]), headers=GZIP
    ),
    "deflate": Answer(body=zlib.compress(ALL), headers=DEFLATE),
    "chunked": Answer(body=ALL, headers={"Transfer-Encoding": "chunked"}),
    "chunked gzip": Answer(
        body=gzip.compress(ALL), headers={**GZIP, "Transfer-Encoding": "chunked"}
    ),
    "dripping": Answer(body=ALL, drip=(5, 0.01)),
    "byte order mark": Answer(body=b"\xef\xbb\xbf" + ALL),
    "no encoding at all": Answer(body=b"\xff\xfe\x00\r" + ALL + b"\x00\xff"),
    "another 2xx": Answer(status=203, body=ALL),
    "a bomb behind it": Answer(body=gzip.compress(ALL + b"#" * 10**8, 9), headers=GZIP),
}
BROKEN: dict[str, Answer] = {
    "ends early": Answer(body=FORBIDS, close="body", headers=LATER),
    "gzip ends early": Answer(body=gzip.compress(FORBIDS)[:-9], headers=GZIP | LATER),
    "no gzip": Answer(body=FORBIDS, headers=GZIP | LATER),
    "unknown encoding": Answer(body=FORBIDS, headers={"Content-Encoding": "br", **LATER}),
    "a part that nobody asked for": Answer(
        status=206,
        body=FORBIDS,
        headers={"Content-Range": f"bytes 0-{len(FORBIDS) - 1}/{len(FORBIDS)}", **LATER},
    ),
    "500": Answer(status=500, body=FORBIDS, headers=LATER),
    "599": Answer(status=599, headers=LATER),
    "600": Answer(status=600, headers=LATER),
    "999": Answer(status=999, headers=LATER),
    "429": Answer(status=429, headers=LATER),
    "a 304 that nobody asked for": Answer(status=304, headers=LATER),
    "no Location": Answer(status=302, headers=LATER),
    "another scheme": Answer(status=302, headers={"Location": "ftp://127.0.0.1/", **LATER}),
    "no URL": Answer(status=302, headers={"Location": "http://[bad", **LATER}),
}
WITHOUT_RULES: dict[str, Answer] = {
    "empty": Answer(),
    "web page": Answer(body=b"<!doctype html><html><title>Disallow: /</title>"),
    "noise": Answer(body=bytes(range(256)) * 100),
    "UTF-16": Answer(body=ALL.decode().encode("utf-16")),
    "a file that is gzip itself": Answer(body=gzip.compress(ALL)),
    "401": Answer(status=401, body=ALL),
    "403": Answer(status=403, body=ALL),
    "404": Answer(status=404, body=ALL),
    "410": Answer(status=410, body=ALL),
    "loop": Answer(status=302, headers={"Location": "/robots.txt"}),
}


WRONG: dict[str, str] = {
    "ends early": "its body ends early",
    "gzip ends early": "its compressed body ends early",
    "no gzip": "its compressed body is broken",
    "unknown encoding": "its Content-Encoding is 'br'",
    "a part that nobody asked for": "it is a part of a file",
    "no Location": "it redirects without a Location",
    "another scheme": "it redirects to 'ftp://127.0.0.1/'",
}
ODD = ["noise", "UTF-16", "a file that is gzip itself"]


def test_what_is_wrong_with_an_answer_is_said(
    site: Start, visit: Visit, caplog: pytest.LogCaptureFixture
) -> None:
    kinds = {kind: (BROKEN | WITHOUT_RULES)[kind] for kind in (*WRONG, *ODD)}
    hosts = {kind: f"127.0.0.{number}" for number, kind in enumerate(kinds, 1)}
    place = site(
        addresses=tuple(hosts.values()),
        robots_by_address={hosts[kind]: answer for kind, answer in kinds.items()},
    )
    client = visit()
    in_httpx = {"ends early": "peer closed connection"}  # its own words
    for kind, wrong in (WRONG | in_httpx if client.name in {"httpx", "trio"} else WRONG).items():
        caplog.clear()
        with pytest.raises(RobotsUnreachable) as refused:
            client.get(place.url("/page", hosts[kind]))
        said = f"robots.txt answered {kinds[kind].status} ({wrong}"
        assert said in str(refused.value), kind
        assert said in caplog.text, kind
    for kind in ODD:
        caplog.clear()
        for _ in range(2):
            decision = client.get(place.url("/page", hosts[kind])).decision
        assert "is it text in UTF-8?" in str(decision), kind
        assert caplog.text.count("is it text in UTF-8?") == 1, kind


def test_every_answer_leads_to_what_it_should(site: Start, visit: Visit) -> None:
    kinds = READABLE | BROKEN | WITHOUT_RULES
    hosts = {f"127.0.0.{number}": kind for number, kind in enumerate(kinds, 1)}
    place = site(
        addresses=tuple(hosts),
        robots_by_address={host: kinds[kind] for host, kind in hosts.items()},
    )
    client = visit()
    came: dict[str, Any] = {}
    for host, kind in hosts.items():
        try:
            came[kind] = client.get(place.url("/page", host)).status
        except client.native as error:
            came[kind] = type(error).__mro__[1]
        pages = [target for target in place.targets(host) if target != "/robots.txt"]
        assert pages == (["/page"] if kind in WITHOUT_RULES else [])
    wanted: dict[str, Any] = dict.fromkeys(READABLE, DisallowedByRobots)
    wanted |= dict.fromkeys(BROKEN, RobotsUnreachable) | dict.fromkeys(WITHOUT_RULES, 200)
    assert came == wanted
    assert place.targets().count("/robots.txt") == len(kinds)


def test_no_more_is_read_than_is_wanted(site: Start, visit: Visit) -> None:
    limit = 100_000
    place = site(Answer(body=FORBIDS + b"# padding\n" * 1_000, endless=True))
    with pytest.raises(DisallowedByRobots):
        visit(robots_max_bytes=limit).get(place.url("/private"))
    # Beyond that lies only what the sockets' buffers took before the connection was closed.
    assert place.sent("/robots.txt") < limit + 16_000_000
    assert place.targets() == ["/robots.txt"]


def test_a_dripping_body_has_its_time_and_no_more(site: Start, visit: Visit) -> None:
    size = 100_000
    place = site(Answer(body=b"#" * size, drip=(100, 0.02), headers=LATER))
    with pytest.raises(RobotsUnreachable):
        visit(robots_timeout=0.2).get(place.url("/page"))
    assert place.targets() == ["/robots.txt"]
    assert place.sent("/robots.txt") < size


def test_one_that_is_impatient_shuts_nobody_out(
    site: Start, visit: Visit, store: MemoryStore
) -> None:
    place = site(Answer(body=FORBIDS, drip=(8, 0.15), headers=LATER))  # 0.6 seconds
    with pytest.raises(RobotsUnreachable) as by_the_client:
        visit(store=store).get(place.url("/hurried"), timeout=0.1)
    assert by_the_client.value.retry_in == 0
    hurried = visit(store=store, policy=Policy(robots_timeout=0.3))
    for _ in range(2):
        with pytest.raises(RobotsUnreachable) as by_the_policy:
            hurried.get(place.url("/hurried"))
        assert by_the_policy.value.retry_in > 500
    # Its own policy has closed the site to it for now: it does not ask before each page.
    assert place.targets() == ["/robots.txt"] * 2
    patient = visit(store=store)
    assert patient.get(place.url("/page")).status == 200
    with pytest.raises(DisallowedByRobots):
        patient.get(place.url("/private"))
    assert place.targets() == [*["/robots.txt"] * 3, "/page"]


def test_a_file_that_is_cut_for_one_is_whole_for_another(
    site: Start, visit: Visit, store: MemoryStore
) -> None:
    place = site(b"User-agent: *\nDisallow: /other\n" + FORBIDS)
    short = visit(store=store, policy=Policy(robots_max_bytes=40))
    assert short.get(place.url("/private")).status == 200
    with pytest.raises(DisallowedByRobots):
        visit(store=store).get(place.url("/private"))
    assert place.targets() == ["/robots.txt", "/private", "/robots.txt"]


def test_who_wants_a_younger_copy_fetches_it(site: Start, visit: Visit, store: MemoryStore) -> None:
    place = site([FORBIDS, ALL])
    assert visit(store=store).get(place.url("/1")).status == 200
    with pytest.raises(DisallowedByRobots):
        visit(store=store, policy=Policy(robots_ttl=1)).get(place.url("/2"))
    assert place.targets() == ["/robots.txt", "/1", "/robots.txt"]


def test_rules_found_elsewhere_belong_to_who_was_asked(site: Start, visit: Visit) -> None:
    elsewhere = site(FORBIDS)
    elsewhere.serve("/moved", ALL)
    hops = ["/1", "/2", "/3", "/4", elsewhere.url("/moved")]
    place = site(Answer(status=308, headers={"Location": hops[0]}))
    for here, there in itertools.pairwise(hops):
        place.serve(here, Answer(status=307, headers={"Location": there}))
    client = visit()
    with pytest.raises(DisallowedByRobots) as refused:
        client.get(place.url("/page"))
    assert refused.value.decision.robots_url == place.url("/robots.txt")
    cited = f"{elsewhere.url('/moved')} (to which {place.url('/robots.txt')} redirects)"
    assert f"line 2 of {cited} says 'Disallow: /'" in str(refused.value)
    assert client.get(elsewhere.url("/page")).status == 200
    assert place.targets() == ["/robots.txt", "/1", "/2", "/3", "/4"]
    assert elsewhere.targets() == ["/moved", "/robots.txt", "/page"]


def test_a_sixth_hop_and_a_loop_are_no_robots_txt(site: Start, visit: Visit) -> None:
    place = site(Answer(status=302, headers={"Location": "/1"}))
    for hop in range(1, 9):
        place.serve(f"/{hop}", Answer(status=302, headers={"Location": f"/{hop + 1}"}))
    loop = site(Answer(status=302, headers={"Location": "/a"}))
    loop.serve("/a", Answer(status=302, headers={"Location": "/robots.txt"}))
    client = visit()
    assert client.get(place.url("/page")).decision.reason is Reason.UNAVAILABLE
    assert client.get(loop.url("/page")).decision.reason is Reason.UNAVAILABLE
    assert place.targets() == ["/robots.txt", "/1", "/2", "/3", "/4", "/5", "/page"]
    assert loop.targets() == ["/robots.txt", "/a", "/page"]


def test_a_changed_file_counts_from_the_end_of_the_old_one_s_life(
    site: Start, visit: Visit
) -> None:
    first = Answer(body=FORBIDS, headers={"ETag": '"1"'})
    changed = Answer(body=ALL, headers={"Last-Modified": "Tue, 01 Sep 2026 10:00:00 GMT"})
    down = Answer(status=503, headers=LATER)
    place = site([first, first, changed, down])
    client = visit(robots_ttl=0.15)

    def at_its_end(outcome: type[Exception] | None) -> None:
        time.sleep(0.2)
        if outcome is None:
            assert client.get(place.url("/page")).status == 200
        else:
            with pytest.raises(outcome):
                client.get(place.url("/page"))

    client.get(place.url("/page"))
    client.get(place.url("/page"))
    at_its_end(None)  # unchanged
    at_its_end(DisallowedByRobots)  # changed
    at_its_end(DisallowedByRobots)  # the copy held before stands in for the outage
    fetches = [each for each in place.log if each.target == "/robots.txt"]
    asked = [{name for name in each.headers if name.startswith("if-")} for each in fetches]
    assert asked == [set(), {"if-none-match"}, {"if-none-match"}, {"if-modified-since"}]
    assert place.targets().count("/page") == 3


def test_a_request_that_outlives_its_copy_in_the_queue_is_checked_again(
    site: Start, visit: Visit
) -> None:
    place = site([b"User-agent: *\nCrawl-delay: 0.2\n", ALL])
    with pytest.raises(DisallowedByRobots):
        visit(robots_ttl=0.1).get(place.url("/page"))
    assert place.targets() == ["/robots.txt", "/robots.txt"]
    assert min(place.gaps()) >= 0.2


def test_many_clients_and_policies_share_one_copy(
    site: Start, visit: Visit, store: MemoryStore
) -> None:
    place = site(FORBIDS)
    for number in range(5):
        visit(policy=Policy(min_delay=number / 1000), store=store).get(place.url(f"/{number}"))
    assert place.targets() == ["/robots.txt", "/0", "/1", "/2", "/3", "/4"]
