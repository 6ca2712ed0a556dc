"""What may go wrong with a file: each has its own message, nothing is sent, and it mends itself."""

import itertools
import os
import re
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import requests

from polite_transport import PoliteSession, SQLiteStore, StoreUnavailable
from polite_transport.stores.base import Seat, StoreFault, Turn
from polite_transport.testing import Site

Sites = Callable[..., Site]
UA = "MyBot/1.0 (+https://example.org/bot)"
ROBOTS = "User-agent: *\nCrawl-delay: 0.05\n"


def get(store: SQLiteStore, place: Site) -> None:
    with PoliteSession(ua=UA, store=store) as session:
        assert session.get(place.url("/page")).status_code == 200


def assert_unavailable(store: SQLiteStore, place: Site, said: str) -> None:
    """The page is refused with a message that says ``said`` and names the file; none is sent."""
    before = len(place.log)
    with PoliteSession(ua=UA, store=store) as session, pytest.raises(StoreUnavailable) as caught:
        session.get(place.url("/page"))
    assert isinstance(caught.value, requests.RequestException)
    assert re.search(said, str(caught.value)), caught.value
    assert store.path in str(caught.value)
    assert place.host in str(caught.value)
    assert len(place.log) == before


def test_a_folder_that_does_not_exist_and_then_does(site: Sites, tmp_path: Path) -> None:
    place = site(ROBOTS)
    store = SQLiteStore(tmp_path / "missing" / "store.sqlite")
    assert_unavailable(store, place, "folder has to exist")
    (tmp_path / "missing").mkdir()
    get(store, place)


def test_a_folder_is_no_file(site: Sites, tmp_path: Path) -> None:
    assert_unavailable(SQLiteStore(tmp_path), site(ROBOTS), "it is a folder: name a file in it")


def test_what_was_not_fetched_is_not_said_to_be_not_shared(
    site: Sites, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    place = site(ROBOTS)
    (tmp_path / "there").mkdir()
    store = SQLiteStore(tmp_path / "there" / "store.sqlite")
    get(store, place)
    (tmp_path / "there").rename(tmp_path / "gone")
    fresh = site(ROBOTS, addresses=("127.0.0.2",))
    for _ in range(2):
        assert_unavailable(store, fresh, "folder has to exist")
    assert "not shared" not in caplog.text
    (tmp_path / "gone").rename(tmp_path / "there")
    get(store, fresh)


def test_a_file_that_is_no_database(site: Sites, tmp_path: Path) -> None:
    place = site(ROBOTS)
    path = tmp_path / "notes.txt"
    path.write_text("these are my notes, and no database\n" * 100)
    before = path.read_bytes()
    store = SQLiteStore(path)
    assert_unavailable(store, place, "not a SQLite file")
    assert path.read_bytes() == before
    path.rename(tmp_path / "moved.txt")
    get(store, place)


def test_another_programs_database_is_not_written_to(site: Sites, tmp_path: Path) -> None:
    place = site(ROBOTS)
    path = tmp_path / "shop.sqlite"
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("CREATE TABLE customers (name TEXT)")
    before = path.read_bytes()
    assert_unavailable(SQLiteStore(path), place, "another program's database")
    assert path.read_bytes() == before


def test_a_newer_version_is_not_touched(site: Sites, tmp_path: Path) -> None:
    place = site(ROBOTS)
    path = tmp_path / "store.sqlite"
    store = SQLiteStore(path)
    get(store, place)
    store.close()
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("PRAGMA user_version=99")
    assert_unavailable(store, place, "another version of polite_transport .*99")


def test_a_damaged_file_is_neither_trusted_nor_thrown_away(site: Sites, tmp_path: Path) -> None:
    place = site(ROBOTS)
    path = tmp_path / "store.sqlite"
    store = SQLiteStore(path)
    get(store, place)
    store.close()
    with path.open("r+b") as file:
        file.seek(100)
        file.write(os.urandom(path.stat().st_size - 100))
    before = path.stat().st_size
    assert_unavailable(store, place, "damaged|not a SQLite file")
    assert path.stat().st_size == before
    path.unlink()
    get(store, place)


def test_a_locked_file_is_waited_for_and_then_given_up(site: Sites, tmp_path: Path) -> None:
    place = site(ROBOTS)
    path = tmp_path / "store.sqlite"
    store = SQLiteStore(path, timeout=0.5)
    get(store, place)
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        started = time.monotonic()
        assert_unavailable(store, place, r"locked by another process for \d")
        assert 0.5 <= time.monotonic() - started < 3.0
        other.execute("ROLLBACK")
    get(store, place)


def test_a_deleted_file_is_made_anew_and_the_first_request_waits_a_delay(
    site: Sites, tmp_path: Path
) -> None:
    place = site("User-agent: *\nCrawl-delay: 0.6\n")
    path = tmp_path / "store.sqlite"
    store, other = SQLiteStore(path), SQLiteStore(path)
    get(store, place)
    for each in tmp_path.iterdir():
        each.unlink()
    # A handle on the deleted file would see no turn of the other's.
    get(other, place)
    get(store, place)
    assert path.exists()
    pages = [arrival.time for arrival in place.log if arrival.target == "/page"]
    assert len(pages) == 3
    assert min(b - a for a, b in itertools.pairwise(pages)) >= 0.6


def first_wait(store: SQLiteStore) -> float:
    turn = store.acquire(Seat("example.org", 5.0, 60.0))
    assert turn.granted
    return turn.wait


def test_assumed_cold_a_new_file_has_nothing_to_wait_for(tmp_path: Path) -> None:
    path = tmp_path / "store.sqlite"
    assert first_wait(SQLiteStore(path, assume_cold=True)) == 0.0
    # It is the file that is cold then, and not one who looks at it.
    turn = SQLiteStore(path).acquire(Seat("other.org", 5.0, 60.0))
    assert turn == Turn(granted=True, wait=0.0)


def test_assumed_cold_a_file_that_others_have_begun_is_as_they_began_it(tmp_path: Path) -> None:
    path = tmp_path / "store.sqlite"
    SQLiteStore(path).acquire(Seat("other.org", 5.0, 60.0))
    assert first_wait(SQLiteStore(path, assume_cold=True)) > 4.0


def test_assumed_cold_the_machine_may_have_been_started_since(tmp_path: Path) -> None:
    path = tmp_path / "store.sqlite"
    for assume_cold in (True, False):
        store = SQLiteStore(path)
        store.acquire(Seat("example.org", 5.0, 60.0))
        store.close()
        with closing(sqlite3.connect(path)) as connection, connection:
            connection.execute("UPDATE clock SET boot='another'")
        wait = first_wait(SQLiteStore(path, assume_cold=assume_cold))
        assert wait == 0.0 if assume_cold else wait > 4.0


def test_assumed_cold_what_is_lost_later_is_waited_for(tmp_path: Path) -> None:
    path = tmp_path / "store.sqlite"
    store = SQLiteStore(path, assume_cold=True)
    seat = Seat("example.org", 5.0, 60.0)
    store.acquire(seat)
    store.release(seat, sent=True)
    for each in tmp_path.iterdir():
        each.unlink()
    assert SQLiteStore(path).acquire(Seat("other.org", 0.0, 60.0)).granted
    assert 4.0 < store.acquire(Seat("third.org", 5.0, 60.0)).wait <= 5.0


@pytest.mark.skipif(not hasattr(os, "geteuid"), reason="POSIX alone has these permissions")
def test_a_file_that_this_user_may_not_write_to(
    site: Sites, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = site(ROBOTS)
    path = tmp_path / "store.sqlite"
    writable = SQLiteStore(path)
    get(writable, place)
    writable.close()
    connect = sqlite3.connect

    def read_only(name: str, **options: Any) -> sqlite3.Connection:
        # root may write to everything, so that the file is opened as one who may not would get it.
        opened: sqlite3.Connection = connect(f"file:{name}?mode=ro", uri=True, **options)
        return opened

    monkeypatch.setattr(sqlite3, "connect", read_only)
    assert_unavailable(SQLiteStore(path), place, "read-only")


def test_a_full_disk_and_space_again(site: Sites, tmp_path: Path) -> None:
    place = site(ROBOTS)
    store = SQLiteStore(tmp_path / "store.sqlite")
    get(store, place)
    connection = store._ledger._database._connection  # type: ignore[attr-defined]
    pages = connection.execute("PRAGMA page_count").fetchone()[0]
    # SQLite's own bound on the size of a file answers as a full disk does.
    connection.execute(f"PRAGMA max_page_count={pages}")

    def fill() -> None:
        for number in range(10_000):
            store.acquire(Seat(f"{number}.example.org", 1.0, 60.0))

    with pytest.raises(StoreFault, match="the disk is full") as caught:
        fill()
    assert not caught.value.passing
    connection.execute("PRAGMA max_page_count=1000000")
    get(store, place)


@pytest.mark.parametrize("path", [":memory:", "file:x?mode=memory", ""])
def test_what_is_no_path_is_refused_at_once(path: str) -> None:
    with pytest.raises(ValueError, match="path of a file"):
        SQLiteStore(path)


def test_without_a_path_the_folder_is_private(site: Sites) -> None:
    place = site(ROBOTS)
    store = SQLiteStore()
    get(store, place)
    assert Path(store.path).parent.stat().st_mode & 0o077 == 0
    store.close()


TEMPORARY = """
import multiprocessing, os, pickle, subprocess, sys, time
from polite_transport import SQLiteStore
from polite_transport.stores.base import Seat

def take_turn(store, wait=0.0):
    time.sleep(wait)
    assert os.path.exists(os.path.dirname(store.path)), "it is gone"
    seat = Seat("example.org", 0.01, 60.0)
    while (turn := store.acquire(seat)).wait or not turn.granted:
        time.sleep(turn.wait)
    store.release(seat, sent=True)

if __name__ == "__main__":
    manager = multiprocessing.Manager()  # a child that is not waited for, but stopped
    store = SQLiteStore()
    take_turn(store)
    context = multiprocessing.get_context("spawn")
    child = context.Process(target=take_turn, args=(store, 1.0))
    child.start()
    if not os.fork():
        take_turn(store)
        sys.exit()  # with all that is done at an exit
    os.wait()
    take_turn(store)
    print(os.path.dirname(store.path), flush=True)
    {end}
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
@pytest.mark.parametrize("end", ["", "sys.exit(3)", "raise ValueError"])
def test_without_a_path_the_folder_goes_with_its_maker(tmp_path: Path, end: str) -> None:
    script = tmp_path / "script.py"
    script.write_text(TEMPORARY.replace("{end}", end))
    ended = subprocess.run(
        [sys.executable, str(script)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        env={**os.environ, "TMPDIR": str(tmp_path)},
    )
    assert Path(ended.stdout.strip()).parent == tmp_path, ended.stderr
    assert "it is gone" not in ended.stderr  # the child was waited for
    assert list(tmp_path.iterdir()) == [script]


def test_what_could_not_be_made_leaves_no_folder_behind(tmp_path: Path) -> None:
    script = "from polite_transport import SQLiteStore\nSQLiteStore(lease=-1)"
    ended = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        env={**os.environ, "TMPDIR": str(tmp_path)},
    )
    assert "lease=-1" in ended.stderr
    assert not list(tmp_path.iterdir())


def test_many_who_open_a_new_file_at_once_all_find_it_in_order(tmp_path: Path) -> None:
    stores = [SQLiteStore(tmp_path / f"{number // 8}.sqlite") for number in range(80)]
    together = threading.Barrier(8)
    failed: list[StoreFault] = []

    def take_turns(number: int) -> None:
        for store in stores[number::8]:
            together.wait()
            seat = Seat("example.org", 0.0, 60.0)
            try:
                store.acquire(seat)
            except StoreFault as fault:
                failed.append(fault)
            store.release(seat, sent=False)

    threads = [threading.Thread(target=take_turns, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for store in stores:
        store.close()
    assert failed == []
