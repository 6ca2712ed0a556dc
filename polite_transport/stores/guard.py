"""A lock for which the garbage collector cannot make its own holder wait."""

import threading
from collections import deque
from collections.abc import Callable
from typing import Any


class Guard:
    """A lock over short critical sections (``with guard:``), and what came up amid one.

    The garbage collector comes wherever memory is asked for, and closes coroutines there: what they
    give back in the end may need a section that the very thread is in. It is put off then.
    """

    __slots__ = ("_lock", "_put_off")

    def __init__(self) -> None:
        # One that may be taken again, since only such a lock tells whose it is.
        self._lock: Any = threading.RLock()
        self._put_off: deque[Callable[[], object]] = deque()

    @property
    def is_ours(self) -> bool:
        """Whether this thread is in a section."""
        is_owned: bool = self._lock._is_owned()  # noqa: SLF001 - threading.Condition asks it so too
        return is_owned

    def put_off(self, act: Callable[[], object]) -> None:
        """Let something be done when the section is over."""
        self._put_off.append(act)

    def __enter__(self) -> None:
        self._lock.acquire()

    def __exit__(self, *_: object) -> None:
        self._lock.release()
        while self._put_off:
            self._put_off.popleft()()
