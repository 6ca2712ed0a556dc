"""Who is dead: asked of real processes."""

import os
import select
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from polite_transport.stores.peers import Peers, identity_of, own_identity

pytestmark = pytest.mark.skipif(
    not Path("/proc/self/stat").exists(), reason="only Linux tells who has ended"
)
SCRIPT = """
import sys
from polite_transport.stores.datagrams import Datagrams
print(Datagrams().channel, flush=True)
sys.stdin.read()
"""


class Other:
    """Another process with a mailbox."""

    def __init__(self) -> None:
        self.running = subprocess.Popen(
            [sys.executable, "-c", SCRIPT], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        assert self.running.stdout is not None
        self.channel = self.running.stdout.readline().strip()

    def kill(self) -> None:
        """Kill it, and leave it as a zombie."""
        self.running.kill()
        os.waitid(os.P_PID, self.running.pid, os.WEXITED | os.WNOWAIT)

    def bury(self) -> None:
        self.running.kill()
        self.running.wait()
        for stream in (self.running.stdin, self.running.stdout):
            if stream is not None:
                stream.close()


@pytest.fixture
def other() -> Iterator[Other]:
    one = Other()
    yield one
    one.bury()


@pytest.fixture
def peers() -> Iterator[Peers]:
    known = Peers()
    yield known
    known.close()


def test_one_that_lives_is_not_dead_and_its_end_is_noticed(other: Other, peers: Peers) -> None:
    assert not peers.has_ended(other.channel)
    assert not peers.notice()
    other.kill()
    if peers.bell is not None:
        bell = select.poll()
        bell.register(peers.bell, select.POLLIN)
        assert bell.poll(10_000)
        assert peers.notice()
        assert not peers.notice()
    assert peers.has_ended(other.channel)


def test_one_that_was_stopped_is_not_dead(other: Other, peers: Peers) -> None:
    other.running.send_signal(signal.SIGSTOP)
    assert not peers.has_ended(other.channel)


def test_one_that_nobody_has_waited_for_is_dead(other: Other, peers: Peers) -> None:
    other.kill()
    assert peers.has_ended(other.channel)
    assert not peers.notice()


def test_one_that_is_gone_is_dead(other: Other, peers: Peers) -> None:
    other.bury()
    assert peers.has_ended(other.channel)


def test_one_whose_pid_is_anothers_now_is_dead(other: Other, peers: Peers) -> None:
    port, network, namespace, pid, started, rest = other.channel.split(".")
    earlier = ".".join([port, network, namespace, pid, str(int(started) - 1), rest])
    assert peers.has_ended(earlier)
    assert not peers.has_ended(other.channel)


def test_of_another_namespace_nothing_is_known(other: Other, peers: Peers) -> None:
    port, network, _, pid, started, rest = other.channel.split(".")
    other.bury()
    assert not peers.has_ended(f"{port}.{network}.1.{pid}.{started}.{rest}")


@pytest.mark.parametrize("channel", ["", "*", "1.2.abc", "polite.0a1b", "1.2.0.0.0.abc"])
def test_of_a_channel_that_names_no_process_nothing_is_known(peers: Peers, channel: str) -> None:
    assert not peers.has_ended(channel)


def test_we_ourselves_live(peers: Peers) -> None:
    assert not peers.has_ended(f"1.2.{own_identity()}.abc")


def test_without_the_systems_word_it_is_looked_at_each_time(
    other: Other, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr(os, "pidfd_open", raising=False)
    peers = Peers()
    assert peers.bell is None
    assert not peers.has_ended(other.channel)
    other.kill()
    assert peers.has_ended(other.channel)


def test_what_was_closed_or_is_the_parents_still_answers(other: Other, peers: Peers) -> None:
    assert not peers.has_ended(other.channel)
    peers.close()
    assert not peers.notice()
    assert not peers.has_ended(other.channel)
    peers.forget_parent()
    other.kill()
    assert peers.has_ended(other.channel)


def test_no_more_are_kept_in_mind_than_may_be_needed(peers: Peers) -> None:
    for number in range(2_500):
        peers.has_ended(f"1.2.1.{number}.1.abc")
    gone = own_identity().split(".")[0]
    for number in range(2_500):  # the machine has no such pids
        assert peers.has_ended(f"1.2.{gone}.{2**22 + 1 + number}.1.abc")
    assert len(peers._alive) <= 1_000
    assert len(peers._dead) <= 1_000


def test_an_identity_is_that_of_this_process(other: Other) -> None:
    assert identity_of(f"1.2.{own_identity()}.abc") == own_identity()
    assert identity_of(other.channel).split(".")[1] == str(other.running.pid)
