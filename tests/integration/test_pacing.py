"""How turns are kept, over real sockets; the site's log is the judge."""

import os
import threading
import time
from collections.abc import Callable

import pytest

from polite_transport import (
    MemoryStore,
    Policy,
    PoliteSession,
    WaitTooLong,
)
from polite_transport.testing import Site

UA = "MyBot/1.0 (+https://example.org/bot)"
DELAY = 0.15
PACED = f"User-agent: *\nCrawl-delay: {DELAY}\n"
OPEN = "User-agent: *\nDisallow:\n"
Start = Callable[..., Site]


def session(store: MemoryStore, **policy: object) -> PoliteSession:
    return PoliteSession(ua=UA, store=store, policy=Policy(**policy))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("robots", "policy", "delay"),
    [
        (PACED, {"min_delay": 0.3}, 0.3),
        (PACED, {"min_delay": 0.05}, DELAY),
        (OPEN, {"min_delay": 0.2}, 0.2),
        ("User-agent: *\nRequest-rate: 5/1\nCrawl-delay: 0.1\n", {}, 0.2),
        ("User-agent: *\nCrawl-delay: 9\n\nUser-agent: MyBot\nCrawl-delay: 0.2\n", {}, 0.2),
        (PACED, {"obey_crawl_delay": False, "min_delay": 0.2}, 0.2),
    ],
)
def test_the_larger_delay_counts(
    site: Start, store: MemoryStore, robots: str, policy: dict[str, float], delay: float
) -> None:
    place = site(robots)
    with session(store, **policy) as client:
        for number in range(3):
            response = client.get(place.url(f"/{number}"))
    assert response.polite.delay == delay  # type: ignore[attr-defined]
    # Between robots.txt and the first page too.
    assert min(place.gaps()) >= delay


def test_no_burst_is_saved_up(site: Start, store: MemoryStore) -> None:
    place = site(PACED)
    with session(store) as client:
        client.get(place.url("/first"))
        time.sleep(4 * DELAY)
        for number in range(4):
            client.get(place.url(f"/{number}"))
    assert min(place.gaps()) >= DELAY


def test_other_hosts_do_not_wait(site: Start, store: MemoryStore) -> None:
    slow = site("User-agent: *\nCrawl-delay: 60\n")
    quick = site(OPEN, addresses=("127.0.0.2",))
    with session(store) as client:
        started = time.monotonic()
        waiting = threading.Thread(target=swallow, args=(client, slow.url("/1")))
        waiting.start()
        slow.wait_for(1)
        client.get(quick.url("/1"))
        assert time.monotonic() - started < 10
        waiting.join()


def swallow(client: PoliteSession, url: str) -> None:
    with pytest.raises(WaitTooLong):
        PoliteSession(ua=UA, store=client.visitor.store, policy=Policy(max_wait=1.0)).get(url)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
def test_a_forked_child_goes_on_with_turns_of_its_own_and_says_so(
    site: Start, store: MemoryStore
) -> None:
    place = site(PACED)
    with session(store) as client:
        client.get(place.url("/parent"))
        read_end, write_end = os.pipe()
        child = os.fork()
        if not child:
            import logging

            told: list[str] = []
            handler = logging.Handler()
            handler.emit = lambda record: told.append(record.getMessage())  # type: ignore[method-assign]
            logging.getLogger("polite_transport").addHandler(handler)
            try:
                for number in range(2):
                    client.get(place.url(f"/child/{number}"))
                os.write(write_end, str(sum("SQLiteStore" in each for each in told)).encode())
            finally:
                os._exit(0)
        os.waitpid(child, 0)
        os.close(write_end)
        assert os.read(read_end, 100) == b"1"
        os.close(read_end)
    assert place.targets()[-2:] == ["/child/0", "/child/1"]
    assert min(place.gaps()) >= DELAY
