"""For suites that mock HTTP: no mock has to know a robots.txt."""

import inspect
from collections.abc import Callable
from functools import wraps
from types import TracebackType
from typing import Any, ParamSpec, Self, TypeVar

from polite_transport.assumption import ASSUMED_ALLOWED

P = ParamSpec("P")
R = TypeVar("R")


class Assumption:
    """What ``assume_allowed`` gives: a context manager, and a decorator."""

    def __enter__(self) -> Self:
        ASSUMED_ALLOWED.append(self)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        ASSUMED_ALLOWED.remove(self)

    def __call__(self, function: Callable[P, R]) -> Callable[P, R]:
        """Return the function so that it runs, to the end of its coroutine, within this."""
        if isinstance(function, type) or _is_generator(function):
            raise TypeError("assume_allowed() decorates functions; elsewhere, use with")
        if inspect.iscoroutinefunction(function):
            coroutine: Any = function

            @wraps(function)
            async def awaited(*args: P.args, **kwargs: P.kwargs) -> Any:
                with self:
                    return await coroutine(*args, **kwargs)

            decorated: Any = awaited
            return decorated  # type: ignore[no-any-return]

        @wraps(function)
        def called(*args: P.args, **kwargs: P.kwargs) -> R:
            with self:
                return function(*args, **kwargs)

        return called


def _is_generator(function: object) -> bool:
    return inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function)


def assume_allowed() -> Assumption:
    """Take it that every robots.txt allows everything, and asks for no delay.

    Within it nothing is fetched, checked or waited for, in the whole process; what is mocked must
    be the network. A response's Decision has ``Reason.ASSUMED``. Use it in a ``with`` statement,
    or as a decorator of a function, async ones included.
    """
    return Assumption()
