"""A lock for which the garbage collector cannot make its own holder wait."""

import threading
from collections import deque
from collections.abc import Callable
from typing import Any


class Guard:
    """A lock over short critical sections, and what came up amid one.

    The garbage collector comes wherever memory is asked for, and closes coroutines there: what they
    give back in the end may need a section that the very thread is in. It is put off then.

    lock: to be taken by ``with``. (A lock of Python's own: Ctrl-C cannot come between taking it and
        being in the section, as it could within an ``__enter__`` that is written in Python.)
    """

    __slots__ = ("_put_off", "lock")

    def __init__(self) -> None:
        # One that may be taken again, since only such a lock tells whose it is.
        self.lock: Any = threading.RLock()
        self._put_off: deque[Callable[[], object]] = deque()

    @property
    def is_ours(self) -> bool:
        """Whether this thread is in a section."""
        is_owned: bool = self.lock._is_owned()  # noqa: SLF001 - threading.Condition asks it so too
        return is_owned

    def refuse_within(self) -> None:
        """Refuse what must have an answer now, where a section of this thread is half done.

        Raises RuntimeError: only a signal handler, a ``__del__`` or a weak reference's callback
        comes there.
        """
        if self.is_ours:
            raise RuntimeError(
                "a request was made while this very thread was taking a turn for another: by a "
                "signal handler, a __del__ or a weakref callback. Let it set a flag, and make the "
                "request from the main code or another thread."
            )

    def put_off(self, act: Callable[[], object]) -> None:
        """Let something be done when the section is over."""
        self._put_off.append(act)

    def catch_up(self) -> None:
        """Do what was put off; to be called behind each section."""
        while self._put_off:
            self._put_off.popleft()()
