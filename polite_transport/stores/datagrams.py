"""Wake-ups between the processes of one machine: datagrams on the loopback interface."""

import os
import secrets
import select
import socket
from collections.abc import Sequence
from contextlib import suppress

from polite_transport.stores.ledger import channel_of
from polite_transport.stores.peers import Peers, own_identity


class Datagrams:
    """A mailbox on a loopback port. Forged and lost datagrams do no harm: who is woken asks.

    peers: the processes that write to it, whose end wakes everyone here.
    """

    def __init__(self) -> None:
        self._socket: socket.socket | None = None
        port = 0
        with suppress(OSError):  # no loopback network here: nobody can be woken, everybody polls
            self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
            self._socket.bind(("127.0.0.1", 0))
            port = self._socket.getsockname()[1]
        self.channel = f"{port}.{_network()}.{own_identity()}.{secrets.token_hex(6)}"
        self.peers = Peers()
        self._poll: select.poll | None = None
        if self._socket is not None and self.peers.bell is not None:
            self._poll = select.poll()
            self._poll.register(self._socket, select.POLLIN)
            self._poll.register(self.peers.bell, select.POLLIN)

    def listen(self, seconds: float) -> Sequence[str] | None:
        """See ``Mailbox.listen``."""
        if self._socket is None:
            self.peers.notice()
            return None
        if self._poll is not None:
            self._poll.poll(seconds * 1000)
            if self.peers.notice():
                return None  # whose turn came by that is for the ledger to say
            seconds = 0.0
        self._socket.settimeout(seconds)
        try:
            return [self._socket.recv(512).decode("ascii", "replace")]
        except (TimeoutError, BlockingIOError):
            return []

    def close(self) -> None:
        """See ``Mailbox.close``."""
        self.peers.close()
        if self._socket is not None:
            self._socket.close()


def can_reach(one: str, other: str) -> bool:
    """Whether the processes of two tokens can send each other datagrams."""
    places = [channel_of(token).split(".")[:2] for token in (one, other)]
    return all(port != "0" for port, _ in places) and places[0][1] == places[1][1]


def _network() -> int:
    """Return the number of this process's network namespace; 0 where there is no such thing."""
    try:
        return os.stat("/proc/self/ns/net").st_ino  # noqa: PTH116
    except OSError:
        return 0
