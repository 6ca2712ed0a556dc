"""Wake-ups between the processes of one machine: datagrams on the loopback interface."""

import os
import secrets
import socket
from collections.abc import Sequence
from contextlib import suppress

from polite_transport.stores.ledger import channel_of


class Datagrams:
    """A mailbox on a loopback port. Forged and lost datagrams do no harm: who is woken asks."""

    def __init__(self) -> None:
        self._socket: socket.socket | None = None
        port = 0
        with suppress(OSError):  # no loopback network here: nobody can be woken, everybody polls
            self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
            self._socket.bind(("127.0.0.1", 0))
            port = self._socket.getsockname()[1]
        self.channel = f"{port}.{_network()}.{secrets.token_hex(6)}"

    def listen(self, seconds: float) -> Sequence[str] | None:
        """See ``Mailbox.listen``."""
        if self._socket is None:
            return None
        self._socket.settimeout(seconds)
        try:
            return [self._socket.recv(512).decode("ascii", "replace")]
        except TimeoutError:
            return []

    def close(self) -> None:
        """See ``Mailbox.close``."""
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
