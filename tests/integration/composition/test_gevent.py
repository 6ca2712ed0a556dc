"""gevent, which puts its own in the place of sockets, locks and sleep: in a process of its own."""

import subprocess
import sys
from collections.abc import Callable

from polite_transport.testing import Site

DELAY = 0.2
ROBOTS = f"User-agent: *\nDisallow: /private\nCrawl-delay: {DELAY}\n"

SCRIPT = """
from gevent import monkey; monkey.patch_all()

import sys, time
import gevent, requests, urllib3
from polite_transport import DisallowedByRobots, PoliteSession, install, politely

origin, ua = sys.argv[1], "MyBot/1.0 (+https://example.org/bot)"
late = []

def tick():
    while True:
        asleep = time.monotonic()
        gevent.sleep(0.01)
        late.append(time.monotonic() - asleep)

ticking = gevent.spawn(tick)
session, pools = PoliteSession(ua=ua), politely(urllib3.PoolManager(), ua=ua)
install(ua=ua)
asks = [session.get, lambda url: pools.request("GET", url), requests.get]
going = [gevent.spawn(ask, f"{origin}/{number}") for ask in asks for number in range(2)]
gevent.joinall(going, raise_error=True)
try:
    session.get(origin + "/private")
except DisallowedByRobots:
    print("refused")
print("longest", max(late))
"""


def test_greenlets_take_turns_and_wait_without_stopping_the_others(
    site: Callable[..., Site],
) -> None:
    place = site(ROBOTS)
    ran = subprocess.run(
        [sys.executable, "-c", SCRIPT, place.origin],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    refused, longest = ran.stdout.splitlines()
    assert refused == "refused"
    # Had a wait held the thread, the ticking greenlet would have stood still for six turns.
    assert float(longest.removeprefix("longest ")) < 5 * DELAY
    assert place.targets()[0] == "/robots.txt"
    assert sorted(place.targets()[1:]) == ["/0", "/0", "/0", "/1", "/1", "/1"]
    assert min(place.gaps()) >= DELAY
