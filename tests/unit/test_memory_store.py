"""The store of one process: what it shares, what it copies, and what a fork does to it."""

import copy
import logging
import os
import pickle
import subprocess
import sys
from collections.abc import Callable

import pytest

from polite_transport import MemoryStore, Policy
from polite_transport.stores.base import Claimed, CopyKey, CopyWaiter, Seat
from polite_transport.stores.memory import PROCESS_STORE
from polite_transport.visitor import Visitor

KEY = CopyKey("http://example.org", "mybot", "follow", 512_000, 10.0, 86_400.0)


def is_same(one: MemoryStore, other: MemoryStore) -> bool:
    one.acquire(seat := Seat("same.example", 1.0, 60.0))
    try:
        return not other.acquire(Seat("same.example", 1.0, 60.0)).granted
    finally:
        one.release(seat, sent=False)


def test_two_stores_know_nothing_of_each_other() -> None:
    assert not is_same(MemoryStore(), MemoryStore())


def test_a_deep_copy_is_the_store_itself(store: MemoryStore) -> None:
    assert copy.deepcopy(store) is store
    assert copy.deepcopy(Visitor(None, Policy(), store)).store is store


def test_a_pickle_in_the_same_process_is_the_store_itself(store: MemoryStore) -> None:
    assert pickle.loads(pickle.dumps(store)) is store


def test_a_pickle_in_another_process_is_one_new_store() -> None:
    code = (
        "import pickle, sys\n"
        "one, two = (pickle.loads(sys.stdin.buffer.read(int(size))) for size in sys.argv[1:])\n"
        "from polite_transport.stores.memory import PROCESS_STORE\n"
        "print(one is two, one is PROCESS_STORE, one._copies_bytes)"
    )
    store = MemoryStore(copies_bytes=12_345)
    pickles = [pickle.dumps(store), pickle.dumps(store)]
    told = subprocess.run(
        [sys.executable, "-c", code, *(str(len(each)) for each in pickles)],
        input=b"".join(pickles),
        check=True,
        capture_output=True,
        timeout=60,
    )
    assert told.stdout.decode().split() == ["True", "False", "12345"]


def test_it_answers_at_once(store: MemoryStore) -> None:
    assert store.front is store


def test_robots_txt_copies_are_bounded_by_what_it_is_told() -> None:
    store = MemoryStore(copies_bytes=1)
    assert store.claim(KEY, CopyWaiter()) == Claimed(None)
    assert store._copies._max_bytes == 1


def in_child(act: Callable[[], object]) -> str:
    """Return what an act in a forked child comes to."""
    read, write = os.pipe()
    child = os.fork()
    if not child:
        try:
            os.write(write, repr(act()).encode())
        finally:
            os._exit(0)
    os.close(write)
    with os.fdopen(read) as pipe:
        told = pipe.read()
    os.waitpid(child, 0)
    return told


forks = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")


@forks
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_child_says_once_that_it_keeps_turns_of_its_own(
    store: MemoryStore, caplog: pytest.LogCaptureFixture
) -> None:
    def visit() -> list[str]:
        caplog.clear()
        store.acquire(Seat("free.example", 0.0, 60.0))
        told = [len(caplog.records)]
        for host in ("a.example", "b.example"):
            store.acquire(Seat(host, 1.0, 60.0))
            told.append(len(caplog.records))
        levels = [each.levelno for each in caplog.records]
        return [str(told), str(levels == [logging.WARNING]), str("SQLiteStore" in caplog.text)]

    assert in_child(visit) == repr(["[0, 1, 1]", "True", "True"])
    assert not caplog.records, "the parent has nothing to say"


@forks
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_child_waits_for_no_fetch_of_its_parent(store: MemoryStore) -> None:
    store.claim(KEY, CopyWaiter())
    assert in_child(lambda: store.claim(KEY, CopyWaiter())) == repr(Claimed(None))
    assert not isinstance(store.claim(KEY, CopyWaiter()), Claimed)


@forks
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_the_process_store_starts_anew_too() -> None:
    held = Seat("fork.example", 1.0, 60.0)
    PROCESS_STORE.acquire(held)
    try:
        ask = Seat("fork.example", 1.0, 60.0)
        assert in_child(lambda: PROCESS_STORE.acquire(ask).granted) == "True"
        assert not PROCESS_STORE.acquire(ask).granted
        PROCESS_STORE.release(ask, sent=False)
    finally:
        PROCESS_STORE.release(held, sent=False)
