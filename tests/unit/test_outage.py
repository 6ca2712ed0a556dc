"""How a process paces by itself while its ledger is away, on a virtual clock."""

from typing import Any

import pytest

from polite_transport import RedisStore, SQLiteStore
from polite_transport.stores.base import Seat
from polite_transport.stores.outage import Outage
from polite_transport.stores.turns import Turns

PROCESSES = 4
HOST = "example.org"


class Alone:
    """Turns of one process in an outage that began at 100 s."""

    def __init__(self) -> None:
        self.now = 90.0
        self.turns = Turns(lambda: self.now)
        self.outage = Outage(self.turns, lambda: self.now, PROCESSES, self.now)

    def send(self, delay: float, at: float) -> None:
        self.now = at
        seat = Seat(HOST, delay, 60.0)
        self.turns.acquire(seat)
        self.outage.leave(seat, sent=True)
        self.turns.release(seat, sent=True)

    def begin(self) -> None:
        self.now = 100.0
        self.outage.begin()

    def rest(self, delay: float) -> float:
        return self.outage.rest(Seat(HOST, delay, 60.0))


@pytest.fixture
def alone() -> Alone:
    return Alone()


@pytest.mark.parametrize(("earlier", "later"), [(2.0, 2.0), (2.0, 1.0), (1.0, 2.0), (2.0, 0.0)])
def test_the_larger_delay_counts_as_often_as_there_are_processes(
    alone: Alone, earlier: float, later: float
) -> None:
    alone.begin()
    alone.send(earlier, at=120.0)
    alone.now = 121.0
    assert alone.rest(later) == pytest.approx(PROCESSES * 2.0 - 1.0)
    alone.now = 120.0 + PROCESSES * 2.0
    assert alone.rest(later) == 0.0


def test_a_bound_request_keeps_its_distance_from_one_that_was_bound_to_nothing(
    alone: Alone,
) -> None:
    alone.begin()
    alone.send(0.0, at=120.0)
    assert alone.rest(2.0) == pytest.approx(PROCESSES * 2.0)
    assert alone.rest(0.0) == 0.0


def test_processes_that_are_cut_off_together_go_on_at_different_times() -> None:
    rests: list[float] = []
    for _ in range(200):
        alone = Alone()
        alone.begin()
        rests.append(alone.rest(2.0))
        assert alone.rest(2.0) == rests[-1]  # asked again it stays, or the wait would not end
    # Others may have sent something just before, and there are so many places in the row.
    assert min(rests) >= 2.0
    assert max(rests) <= PROCESSES * 2.0
    assert max(rests) - min(rests) > PROCESSES


def test_what_was_sent_before_it_began_does_not_hold_longer_than_the_row(alone: Alone) -> None:
    alone.send(2.0, at=99.0)
    alone.begin()
    assert 2.0 <= alone.rest(2.0) <= PROCESSES * 2.0


def test_what_was_not_sent_holds_nobody_off(alone: Alone) -> None:
    alone.begin()
    alone.now = 120.0
    alone.outage.leave(Seat(HOST, 2.0, 60.0), sent=False)
    assert alone.rest(0.0) == 0.0


def test_hosts_that_are_over_are_forgotten(alone: Alone) -> None:
    alone.begin()
    alone.now = 120.0
    for number in range(10_000):
        alone.outage.leave(Seat(f"{number}.example", 1.0, 60.0), sent=True)
    alone.now = 130.0
    alone.outage.leave(Seat(HOST, 1.0, 60.0), sent=True)
    assert len(alone.outage._ended) == 1


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"on_error": "open"}, 'on_error=\'open\'.*"raise" or "local"'),
        ({"on_error": "local"}, "max_processes"),
        ({"on_error": "local", "max_processes": 0}, "max_processes=0"),
        ({"on_error": "local", "max_processes": 2.5}, r"max_processes=2\.5"),
        ({"on_error": "local", "max_processes": True}, "max_processes=True"),
        ({"max_processes": -1}, "max_processes=-1"),
    ],
)
def test_what_is_wrong_with_the_options_is_told(options: Any, told: str) -> None:
    with pytest.raises(ValueError, match=told):
        SQLiteStore("store.sqlite", **options)
    with pytest.raises(ValueError, match=told):
        RedisStore("redis://127.0.0.1:1", **options)
