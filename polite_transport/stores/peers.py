"""Which of the processes that share a file have ended, where the system tells: on Linux.

A process is known by its pid and, since pids are used again, by when it was started. Of those in
another pid namespace, and on other systems, nothing is known: their turns end with their leases.
"""

import os
import select
import threading
from pathlib import Path

_MOST = 1_000  # kept in mind; whoever is forgotten is looked at anew
# Places in /proc/<pid>/stat, counted from behind the program's name (proc(5)).
_STATE, _THREADS, _STARTED = 0, 17, 19
_UNWATCHED = -1


def own_identity() -> str:
    """Return pid namespace, pid and start of this process, with dots between; zeros if unknown."""
    pid = os.getpid()
    try:
        # The /proc of another namespace would tell of other processes.
        if os.readlink("/proc/self") == str(pid):  # noqa: PTH115
            namespace = os.stat("/proc/self/ns/pid").st_ino  # noqa: PTH116
            return f"{namespace}.{pid}.{_stat(pid)[_STARTED]}"
    except (OSError, IndexError):
        pass
    return "0.0.0"


class Peers:
    """The processes that this one has met in a file, by their channels.

    An end is noticed by the system's word where it gives it (pidfds, since Linux 5.3), else when
    somebody asks.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._own = own_identity()
        self._alive: dict[str, int] = {}  # with a pidfd, or UNWATCHED where it will not be known
        self._watched: dict[int, str] = {}  # the other way round
        self._dead: dict[str, None] = {}  # in order
        self._epoll: select.epoll | None = None
        if hasattr(select, "epoll") and hasattr(os, "pidfd_open"):
            self._epoll = select.epoll()

    @property
    def bell(self) -> int | None:
        """A file descriptor that can be read from once one has ended; None where there is none."""
        return None if self._epoll is None else self._epoll.fileno()

    def has_ended(self, channel: str) -> bool:
        """Whether a process is known to have ended."""
        if channel in self._alive:
            return False
        if channel in self._dead:
            return True
        with self._lock:
            return channel in self._dead or (channel not in self._alive and self._look(channel))

    def _look(self, channel: str) -> bool:
        namespace, pid, started = identity_of(channel).split(".")
        own_namespace, own_pid, _ = self._own.split(".")
        if pid in ("0", own_pid) or namespace != own_namespace:
            if len(self._alive) >= _MOST:
                self._alive = {name: fd for name, fd in self._alive.items() if fd != _UNWATCHED}
            self._alive[channel] = _UNWATCHED
            return False
        watch = self._watch(int(pid))  # first, so that nothing is missed after the look
        if _has_ended(int(pid), started):
            if watch is not None:
                os.close(watch)
            self._bury(channel)
            return True
        if watch is not None and self._epoll is not None:
            self._alive[channel] = watch
            self._watched[watch] = channel
            self._epoll.register(watch, select.EPOLLIN)
        return False

    def _watch(self, pid: int) -> int | None:
        if self._epoll is None:
            return None
        try:
            return os.pidfd_open(pid)
        except OSError:
            return None  # it has ended, or this system has none to give

    def _bury(self, channel: str) -> None:
        if len(self._dead) >= _MOST:
            del self._dead[next(iter(self._dead))]
        self._dead[channel] = None

    def notice(self) -> bool:
        """Take note of those who have ended since the last time; return whether anyone has."""
        with self._lock:
            if self._epoll is None:
                return False
            ended = [watch for watch, _ in self._epoll.poll(0)]
            for watch in ended:
                channel = self._watched.pop(watch)
                self._bury(channel)
                del self._alive[channel]
                self._epoll.unregister(watch)  # closing is not enough where a fork has it too
                os.close(watch)
        return bool(ended)

    def close(self) -> None:
        """Watch nobody any more."""
        with self._lock:
            if self._epoll is not None:
                self._epoll.close()
                self._epoll = None
            for watch in self._watched:
                os.close(watch)
            self._watched = {}
            self._alive = {}

    def forget_parent(self) -> None:
        """In a forked child: let go of what is the parent's, who goes on to use it."""
        self._lock = threading.Lock()
        self.close()


def identity_of(channel: str) -> str:
    """Return the identity within a channel; unknown where it has none."""
    parts = channel.split(".")[2:5]
    return ".".join(parts) if len(parts) == 3 and all(map(str.isdigit, parts)) else "0.0.0"


def _has_ended(pid: int, started: str) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    except OSError:
        pass  # another user's
    try:
        stat = _stat(pid)
    except OSError:
        return False  # hidden from this user
    if stat[_STARTED] != started:
        return True
    # Not waited for yet; a first thread that has ended before the others looks the same.
    return stat[_STATE] in "ZX" and int(stat[_THREADS]) <= 1


def _stat(pid: int) -> list[str]:
    text = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    return text.rpartition(")")[2].split()  # a program's name may hold anything
