"""Many processes, one robot: the site's log is the judge."""

import signal
import sqlite3
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from polite_transport import PoliteSession
from polite_transport.testing import Answer, Site

from .servers import Crawl, jain, open_place

Sites = Callable[..., Site]
Crawls = Callable[..., Crawl]
DELAY = 0.1
ROBOTS = f"User-agent: *\nCrawl-delay: {DELAY}\n"


def test_processes_with_clocks_apart_keep_one_delay(
    site: Sites, crawl: Crawls, shared_place: dict[str, Any]
) -> None:
    place = site(ROBOTS, accept_jitter=(0.0, 0.02))
    crawls = [
        crawl(shared_place, [place.url("/page")], threads=3, requests=3, client=client, clock=clock)
        for client, clock in (("requests", 0.0), ("requests", -7200.0), ("httpx", 7200.0))
    ]
    results = [each.result() for each in crawls]
    assert all(result == {"served": [3, 3, 3], "errors": {}} for result in results)
    assert len(place.log) == 1 + 27
    assert place.targets().count("/robots.txt") == 1
    assert min(place.gaps()) >= DELAY


def test_each_thread_of_each_process_gets_the_same(
    site: Sites, crawl: Crawls, shared_place: dict[str, Any]
) -> None:
    place = site("User-agent: *\nCrawl-delay: 0.05\n")
    crawls = [crawl(shared_place, [place.url("/page")], threads=4, seconds=4) for _ in range(2)]
    served = [count for each in crawls for count in each.result()["served"]]
    assert min(place.gaps()) >= 0.05
    assert sum(served) >= 30
    assert jain(served) >= 0.9, served  # the processes do not begin in the same moment


def test_one_fetch_for_each_origin_over_all_processes(
    site: Sites, crawl: Crawls, shared_place: dict[str, Any]
) -> None:
    addresses = [f"127.0.0.{last}" for last in range(1, 9)]
    place = site(ROBOTS, addresses=addresses)
    urls = [place.url("/page", host=address) for address in addresses]
    crawls = [crawl(shared_place, urls, threads=4, requests=8) for _ in range(2)]
    assert all(each.result()["errors"] == {} for each in crawls)
    assert place.targets().count("/robots.txt") == len(addresses)
    assert min(place.gaps()) >= DELAY


def test_a_site_that_asks_for_no_delay_is_not_slowed_down_but_by_its_pauses(
    site: Sites, crawl: Crawls, shared_place: dict[str, Any]
) -> None:
    place = site("User-agent: *\nDisallow: /private\n")
    crawls = [crawl(shared_place, [place.url("/page")], threads=2, requests=100) for _ in range(2)]
    assert all(each.result()["served"] == [100, 100] for each in crawls)
    assert min(place.gaps()) < 0.005


def test_a_pause_that_one_process_was_asked_for_holds_for_all(
    site: Sites, crawl: Crawls, shared_place: dict[str, Any]
) -> None:
    place = site("")
    busy = [crawl(shared_place, [place.url("/page")], threads=2, seconds=5) for _ in range(2)]
    place.wait_for(100, timeout=20.0)
    store = open_place(shared_place)
    with PoliteSession(ua="CrawlBot/1.0 (+https://example.org/bot)", store=store) as session:
        session.get(place.url("/status/503?retry_after=2"))
    store.close()
    for each in busy:
        each.result()
    log = place.log
    asked = next(arrival.time for arrival in log if arrival.target.startswith("/status"))
    within = [each.time - asked for each in log if asked < each.time < asked + 2]
    # What was under way, and what needed not ask for a quarter of a second.
    assert max(within, default=0.0) < 1.0
    assert any(each.time >= asked + 2 for each in log)


def test_killed_in_mid_request_the_others_go_on_when_the_lease_is_over(
    site: Sites, crawl: Crawls, shared_place: dict[str, Any]
) -> None:
    place = site(ROBOTS)
    leased = {**shared_place, "lease": 1.0}
    victim = crawl(leased, [place.url("/slow?headers=9")], threads=1)
    place.wait_for(2)  # its robots.txt, and the request that never ends
    killed = time.monotonic()
    victim.kill()
    survivor = crawl(leased, [place.url("/page")], threads=1, requests=3)
    assert survivor.result()["served"] == [3]
    first = next(arrival for arrival in place.log if arrival.target == "/page")
    # The lease, then two delays: nobody knows what became of the request.
    assert first.time - killed < 1.0 + 2 * DELAY + 2.0
    assert min(place.gaps()) >= DELAY


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="only Linux tells who has ended")
@pytest.mark.parametrize("is_waiting", [True, False], ids=["waits already", "comes later"])
def test_killed_in_mid_request_on_this_machine_no_lease_has_to_end(
    site: Sites, crawl: Crawls, tmp_path: Path, is_waiting: bool
) -> None:
    place = site(ROBOTS)
    leased = {"kind": "sqlite", "place": str(tmp_path / "store.sqlite"), "lease": 600.0}
    victim = crawl(leased, [place.url("/slow?headers=60")], threads=1)
    place.wait_for(2)
    if is_waiting:
        survivor = crawl(leased, [place.url("/page")], threads=2, requests=2)
        wait_for_queue(tmp_path / "store.sqlite")
    killed = time.monotonic()
    victim.kill()
    if not is_waiting:
        survivor = crawl(leased, [place.url("/page")], threads=2, requests=2)
    assert survivor.result()["served"] == [2, 2]
    first = next(arrival for arrival in place.log if arrival.target == "/page")
    # It may have been sent at the last moment, and have taken a delay to arrive.
    assert first.time - killed >= 2 * DELAY
    assert min(place.gaps()) >= DELAY


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="only Linux tells who has ended")
def test_killed_while_it_fetches_robots_txt_another_fetches_it(
    site: Sites, crawl: Crawls, tmp_path: Path
) -> None:
    place = site(Answer(body=ROBOTS.encode(), delay=4.0))
    leased = {"kind": "sqlite", "place": str(tmp_path / "store.sqlite"), "lease": 600.0}
    victim = crawl(leased, [place.url("/page")], threads=1)
    place.wait_for(1)
    survivor = crawl(leased, [place.url("/page")], threads=1, requests=1)
    wait_for_queue(tmp_path / "store.sqlite", "SELECT waiting FROM copy")
    victim.kill()
    assert survivor.result()["served"] == [1]
    assert place.targets() == ["/robots.txt", "/robots.txt", "/page"]


def wait_for_queue(path: Path, what: str = "SELECT queue FROM turn") -> None:
    """Wait until someone stands in a queue of the file."""
    deadline = time.monotonic() + 20.0
    with closing(sqlite3.connect(path, timeout=5.0)) as connection:
        while not any(row[0] for row in connection.execute(what)):
            assert time.monotonic() < deadline
            time.sleep(0.05)


def test_stopped_for_longer_than_a_lease_it_comes_back_and_waits_its_turn(
    site: Sites, crawl: Crawls, shared_place: dict[str, Any]
) -> None:
    place = site(ROBOTS)
    leased = {**shared_place, "lease": 0.5}
    crawls = [crawl(leased, [place.url("/page")], threads=3, seconds=4) for _ in range(2)]
    place.wait_for(8, timeout=20.0)
    crawls[0].signal(signal.SIGSTOP)
    time.sleep(1.2)
    crawls[0].signal(signal.SIGCONT)
    results = [each.result() for each in crawls]
    assert all(result["errors"] == {} for result in results)
    assert min(place.gaps()) >= DELAY


def test_a_request_that_outlasts_its_lease_keeps_its_turn_while_its_process_lives(
    site: Sites, crawl: Crawls, shared_place: dict[str, Any]
) -> None:
    place = site(ROBOTS)
    leased = {**shared_place, "lease": 0.5}
    slow = crawl(leased, [place.url("/slow?headers=1.6")], threads=1, requests=1)
    place.wait_for(2)
    quick = crawl(leased, [place.url("/page")], threads=1, requests=1)
    assert slow.result()["served"] == quick.result()["served"] == [1]
    slow_at, quick_at = (each.time for each in place.log[1:])
    assert quick_at - slow_at >= 1.6 + DELAY
