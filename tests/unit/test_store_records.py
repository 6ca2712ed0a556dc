"""A host's record in a shared store, on a virtual clock."""

import itertools

import pytest

from polite_transport.stores.base import NOW, Turn
from polite_transport.stores.ledger import CLAIM, PASS, Leave, token
from polite_transport.stores.records import HostRecord

LEASE = 10.0
numbers = itertools.count()


def asker(delay: float = 1.0, channel: str = "a") -> str:
    return token(channel, next(numbers), delay)


def acquire(
    record: HostRecord, who: str, now: float, *, not_before: float = 0.0, epoch: float = -1e9
) -> Turn:
    return record.acquire(who, not_before, LEASE, now, epoch)[0]


def release(record: HostRecord, who: str, now: float, **leave: float | bool) -> str:
    options = {"sent": True, "delay": 1.0, **leave}
    return record.release(who, Leave(**options), now, -1e9)[1]  # type: ignore[arg-type]


@pytest.mark.parametrize(("next_one", "wait"), [(1.0, 4.0), (5.0, 7.0), (0.0, 4.0)])
def test_one_that_died_in_mid_request_counts_as_unanswered_from_the_end_of_its_lease(
    next_one: float, wait: float
) -> None:
    record, dead, other = HostRecord(), asker(2.0), asker(next_one)
    assert acquire(record, dead, 100.0) == NOW
    assert not acquire(record, other, 100.0 + LEASE - 0.1).granted
    turn = acquire(record, other, 100.0 + LEASE)
    assert turn == Turn(granted=True, wait=wait)


@pytest.mark.parametrize(("next_one", "wait"), [(1.0, 4.0), (5.0, 7.0), (0.0, 4.0)])
def test_without_an_answer_it_may_arrive_for_one_of_its_delays(
    next_one: float, wait: float
) -> None:
    record, who = HostRecord(), asker(2.0)
    acquire(record, who, 100.0)
    release(record, who, 103.0, delay=2.0, arrived=False)
    assert acquire(record, asker(next_one), 103.0) == Turn(granted=True, wait=wait)


def test_one_bound_to_nothing_that_ends_later_hides_no_late_arrival() -> None:
    record, who = HostRecord(), asker(2.0)
    acquire(record, who, 100.0)
    release(record, who, 103.0, delay=2.0, arrived=False)
    release(record, "", 104.0, delay=0.0)
    assert acquire(record, asker(5.0), 104.0).wait == pytest.approx(1.0 + 5.0)


def test_one_that_died_before_it_confirmed_costs_its_claim_and_no_delay() -> None:
    record, first, dead, third = HostRecord(), asker(), asker(), asker()
    acquire(record, first, 100.0)
    acquire(record, dead, 100.0)
    assert not acquire(record, third, 100.0).granted
    assert release(record, first, 100.0) == dead
    waiting = acquire(record, third, 101.0)
    assert not waiting.granted
    assert waiting.ask_again == pytest.approx(CLAIM)
    assert acquire(record, third, 101.0 + CLAIM) == NOW


def test_one_that_lost_its_turn_queues_behind_those_who_came_since() -> None:
    record, slow, other = HostRecord(), asker(), asker()
    acquire(record, slow, 100.0)
    acquire(record, other, 100.0)
    assert acquire(record, other, 100.0 + LEASE + 2.0) == NOW
    assert not acquire(record, slow, 100.0 + LEASE + 2.0).granted
    release(record, other, 120.0)
    assert acquire(record, slow, 121.0) == NOW


def test_renewed_a_lease_goes_on_and_a_lost_one_is_taken_again_only_where_it_is_free() -> None:
    record, holder, other = HostRecord(), asker(), asker()
    acquire(record, holder, 100.0)
    record.renew(holder, LEASE, 108.0)
    assert not acquire(record, other, 117.0).granted
    forgetful = HostRecord()  # as after a restart that lost everything
    forgetful.renew(holder, LEASE, 109.0)
    assert not acquire(forgetful, other, 118.0).granted
    taken = HostRecord()
    acquire(taken, other, 109.0)
    taken.renew(holder, LEASE, 110.0)
    assert taken.holder == other


def test_a_host_that_nothing_was_sent_to_since_the_store_came_up_waits_a_delay_from_then() -> None:
    record, first = HostRecord(), asker(5.0)
    turn = acquire(record, first, 101.0, epoch=100.0)
    assert turn.wait == pytest.approx(4.0)
    assert turn.pushed == 0.0
    assert acquire(record, first, 105.0, epoch=100.0) == NOW
    record.release(first, Leave(sent=True, delay=5.0), 105.0, 100.0)
    assert acquire(record, asker(5.0), 106.0, epoch=100.0).wait == pytest.approx(4.0)


def test_an_old_record_waits_too_after_a_restart() -> None:
    record = HostRecord(last=50.0, delay=5.0)
    assert acquire(record, asker(5.0), 101.0, epoch=100.0).wait == pytest.approx(4.0)


def test_the_processes_own_reasons_count_for_its_start() -> None:
    assert acquire(HostRecord(), asker(), 100.0, not_before=3.0).wait == pytest.approx(3.0)


def test_others_that_may_have_passed_count_until_the_last_moment_and_ones_own_do_not() -> None:
    record = HostRecord()
    assert record.let_pass("a", 100.0) == PASS
    assert acquire(record, asker(1.0, "b"), 100.1).wait == pytest.approx(PASS + 1.0 - 0.1)
    record = HostRecord()
    assert record.let_pass("a", 100.0) == PASS
    assert acquire(record, asker(1.0, "a"), 100.1) == NOW


def test_whoever_passed_last_does_not_hide_who_passed_before() -> None:
    record = HostRecord()
    record.let_pass("a", 100.0)
    record.let_pass("b", 101.0)
    assert acquire(record, asker(30.0, "b"), 101.0).wait == pytest.approx(PASS + 30.0)


@pytest.mark.parametrize("bound", ["held", "queued", "pushed", "delayed", "in trouble"])
def test_nobody_passes_where_someone_is_bound(bound: str) -> None:
    record, who = HostRecord(), asker()
    if bound in {"held", "queued"}:
        acquire(record, who, 100.0)
        if bound == "queued":
            record.queue, record.holder = [record.holder], ""
    elif bound == "pushed":
        release(record, "", 100.0, push=5.0, delay=0.0)
    elif bound == "delayed":
        acquire(record, who, 99.9)
        release(record, who, 100.0)
    else:
        record.strikes = 1
    assert record.let_pass("a", 100.5) == 0.0


def test_a_pause_is_not_counted_twice_for_requests_that_met_it_together() -> None:
    record = HostRecord()
    for now in (100.0, 100.1, 100.2):
        release(record, "", now, delay=0.0, overloaded=True)
    assert record.strikes == 1
    assert 101.0 <= record.floor <= 101.25


def test_a_late_answer_keeps_its_delay_even_so() -> None:
    record, late, other = HostRecord(), asker(3.0), asker(1.0)
    acquire(record, late, 100.0)
    acquire(record, other, 117.0)
    assert record.holder == other
    release(record, late, 118.0, delay=3.0)
    assert record.holder == other
    assert record.start(0.0) == 121.0
    assert record.floor < 118.0, "it is no pause that the site asked for"


def test_a_late_end_without_an_answer_counts_from_then() -> None:
    record, late, other = HostRecord(), asker(3.0), asker(1.0)
    acquire(record, late, 100.0)
    acquire(record, other, 117.0)
    release(record, late, 118.0, delay=3.0, arrived=False)
    release(record, other, 118.5, delay=1.0)
    assert [record.start(delay) for delay in (0.0, 5.0)] == [124.0, 126.0]


def test_the_wait_of_a_queue_is_told_at_the_least() -> None:
    record = HostRecord()
    acquire(record, asker(1.0), 100.0)
    acquire(record, asker(2.0), 100.0)
    assert acquire(record, asker(3.0), 100.0).wait == pytest.approx(1.0 + 2.0)


def test_nothing_is_forgotten_that_someone_may_have_to_wait_for() -> None:
    record, who = HostRecord(), asker()
    acquire(record, who, 100.0)
    assert record.needed_until > 100.0 + LEASE
    slow = HostRecord()
    acquire(slow, asker(400.0), 100.0)
    assert slow.needed_until >= 100.0 + LEASE + 2 * 400.0
    release(record, who, 101.0, push=900.0)
    assert record.needed_until == pytest.approx(1001.0)
