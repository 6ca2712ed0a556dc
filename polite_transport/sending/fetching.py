"""One fetch of a robots.txt by a blocking client: in bounded time, and with whole headers.

Each single read of such a client has its timeout anew, so that a site which sends byte by byte
could hold a fetch up for hours. And http.client, which urllib3 stands on, takes headers that break
off for whole ones, so that a connection which is cut there would pass for a robots.txt without
rules.

Every touch of what http.client does not call public stands in this file:
``HTTPConnection.response_class``, and what a response does when it begins.
"""

import http.client
import socket
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from types import TracebackType
from typing import Any

from polite_transport.sending.hand import Hand
from polite_transport.stores.base import Store
from polite_transport.url import Target

_AGAIN = 0.1  # seconds; a socket that was about to be replaced, for TLS, is tried again


class Fetching(Hand):
    """The GET of one robots.txt URL, in hand.

    seconds: what it may take in all, from now. When they are over, the socket that is watched is
        shut down, so that whatever is waited for on it ends.
    """

    __slots__ = ("_before", "_connection", "_ended", "_ends_at", "_response", "_sock", "seconds")

    def __init__(self, target: Target, store: Store, seconds: float) -> None:
        super().__init__(target, "GET", store, None)
        self.seconds = seconds
        self._ends_at = time.monotonic() + seconds
        self._connection: Any = None
        self._before: Callable[..., Any] | None = None
        self._response: _WholeResponse | None = None
        self._sock: Any = None
        self._ended: threading.Lock | None = None  # held while a thread looks after the time

    @property
    def elapsed(self) -> float:
        """Seconds since the start."""
        return time.monotonic() - self._ends_at + self.seconds

    @property
    def time_is_up(self) -> bool:
        """Whether the fetch has taken all the time that it may."""
        return time.monotonic() >= self._ends_at

    def watch(self, connection: Any) -> None:
        """Let the answer come over this connection, one of http.client or built like it."""
        own = getattr(connection, "response_class", None)
        if own is None or self._before is not None:
            return
        self._connection, self._before = connection, own
        connection.response_class = partial(_WholeResponse, self)
        self._keep_time()

    def watch_socket(self, sock: Any) -> None:
        """Let the answer come over this socket."""
        self._sock = sock
        self._keep_time()

    def _keep_time(self) -> None:
        if self._ended is None:
            ended = threading.Lock()
            ended.acquire()
            with suppress(RuntimeError):  # no more threads: then each read has its own timeout
                threading.Thread(target=self._look_after, args=(ended,), daemon=True).start()
            self._ended = ended

    def stop(self) -> None:
        """Shut nothing down from now on: what was watched may be another request's soon."""
        ended, self._ended = self._ended, None
        if ended is not None:
            ended.release()

    def let_go(self) -> None:
        """Leave the connection as it was, for the requests after this one."""
        before, self._before = self._before, None
        if before is not None:
            self._connection.response_class = before

    def heard(self, response: "_WholeResponse") -> None:
        """Take note of what now reads from the connection."""
        self._response = response

    def _look_after(self, ended: threading.Lock) -> None:
        pause = max(self._ends_at - time.monotonic(), 0.0)
        while not ended.acquire(timeout=pause):
            self._cut()
            pause = _AGAIN

    def _cut(self) -> None:
        response = self._response
        if self._sock is not None:
            sock = self._sock
        elif response is None:
            sock = self._connection.sock
        elif response.isclosed():  # its connection may be another request's by now
            return
        else:
            sock = response.sock
        # Beneath TLS: SSLSocket's own shutdown takes the keys from whoever is reading. Where TLS is
        # no SSLSocket (pyOpenSSL, TLS within TLS) the socket stands in ``socket``.
        beneath = getattr(sock, "socket", sock)
        if isinstance(beneath, socket.socket):
            with suppress(OSError):
                socket.socket.shutdown(beneath, socket.SHUT_RDWR)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.stop()
        self.let_go()
        super().__exit__(kind, error, traceback)


class _WholeResponse(http.client.HTTPResponse):
    """A response that begins only once all of its headers are there."""

    def __init__(self, fetching: Fetching, sock: socket.socket, *args: Any, **options: Any) -> None:
        super().__init__(sock, *args, **options)
        self.sock = sock
        self._fetching = fetching
        fetching.heard(self)

    def begin(self) -> None:
        """Read the status line and the headers.

        Raises TimeoutError where the fetch has no time left, RemoteDisconnected where they break
        off, and what http.client raises.
        """
        beneath: Any = self.fp
        told: Any = _LastLine(beneath)
        self.fp = told
        try:
            super().begin()
        except (OSError, http.client.HTTPException) as error:
            self._fail_late(error)
            raise
        if told.last not in (b"\r\n", b"\n"):
            cut = http.client.RemoteDisconnected("the connection ended within the headers")
            self._fail_late(cut)
            raise cut
        if self.fp is told:
            self.fp = beneath

    def _fail_late(self, error: Exception) -> None:
        if self._fetching.time_is_up:
            seconds = self._fetching.seconds
            raise TimeoutError(f"robots.txt was not there within {seconds:g} s") from error


class _LastLine:
    """A file that remembers the last line read from it."""

    def __init__(self, file: Any) -> None:
        self._file = file
        self.last = b""

    def readline(self, *limit: int) -> bytes:
        line: bytes = self._file.readline(*limit)
        self.last = line
        return line

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)
