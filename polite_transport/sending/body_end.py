"""Giving a turn back at the end of a response's body: ``Policy(pace_from="body")``.

For the blocking clients whose bodies are read from a file of sorts: urllib3's response, beneath
requests too, and that of http.client.
"""

import _thread
import weakref
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import cache
from typing import Any

from polite_transport.flow import Attempt
from polite_transport.sending.hand import Hand


def leave_at_end(raw: Any, hand: Hand, attempt: Attempt) -> None:
    """Give the turn back when the body has been read, closed or dropped; renew it as bytes come in.

    raw: what the body is read from. It gets a class of its own, over the one that it has: methods
        put on the object would hold it, and it would live on when the script drops it. The turn of
        one that does not let itself be changed, as ``io.BytesIO``, which holds its bytes already,
        is given back at once, like that of a body that has come to its end.
    """
    if _is_at_end(raw):
        hand.leave(attempt)
        return
    raw_class: Any = raw.__class__
    try:
        raw.polite_body = body = _Body(hand, attempt)
        raw.__class__ = _watched(raw_class)
    except (AttributeError, TypeError):
        hand.leave(attempt)
        return
    body.dropped = weakref.finalize(raw, _dropped, body)
    body.dropped.atexit = False


def _is_at_end(raw: Any) -> bool:
    # urllib3 counts down the first of them, http.client the second; chunks have no count.
    left = getattr(raw, "length_remaining", getattr(raw, "length", None))
    is_closed = getattr(raw, "isclosed", None)
    return left == 0 or bool(getattr(raw, "closed", False) or (is_closed and is_closed()))


class _Body:
    """The turn that ends with a body.

    dropped: gives it back where the body is dropped unread; dead once the turn is over.
    """

    def __init__(self, hand: Hand, attempt: Attempt) -> None:
        self._hand = hand
        self._attempt = attempt
        self._seat = None if hand.call is None else hand.call.seat
        self.dropped: Any = None

    @property
    def _has_turn(self) -> bool:
        """Whether the turn is still this body's: a later attempt of the request has its own."""
        return self._hand.call is not None and self._hand.call.seat is self._seat

    def renew(self) -> None:
        if self._has_turn:
            self._hand.renew()

    def end(self) -> None:
        if self.dropped.detach() is not None:
            self.leave()

    def leave(self) -> None:
        if self._has_turn:
            self._hand.leave(self._attempt)


def _dropped(body: _Body) -> None:
    """Give the turn of a dropped body back.

    The garbage collector comes at any time, also while this thread holds a lock of the store.
    """
    with suppress(RuntimeError):  # no threads any more: then the turn ends by its limit
        _thread.start_new_thread(body.leave, ())


@cache
def _watched(raw_class: Any) -> Any:
    """Return a subclass of what bodies are read from, with an eye on their end.

    Only of those methods that there are: scripts, and requests, ask for some of them.
    """
    watched = {
        name: watching(getattr(raw_class, name))
        for name, watching in _WAYS.items()
        if hasattr(raw_class, name)
    }
    return type(raw_class.__name__, (raw_class,), {"__module__": raw_class.__module__, **watched})


def _reading(method: Callable[..., Any]) -> Callable[..., Any]:
    some = _reading_some(method)

    def read(raw: Any, *args: Any, **kwargs: Any) -> Any:
        size = args[0] if args else kwargs.get("amt", kwargs.get("size"))
        if size == 0:
            return method(raw, *args, **kwargs)
        content = some(raw, *args, **kwargs)
        if size is None or size < 0:  # that was all of it
            raw.polite_body.end()
        return content

    return read


def _reading_some(method: Callable[..., Any]) -> Callable[..., Any]:
    def read(raw: Any, *args: Any, **kwargs: Any) -> Any:
        try:
            content = method(raw, *args, **kwargs)
        except BaseException:
            raw.polite_body.end()
            raise
        if content and not _is_at_end(raw):
            raw.polite_body.renew()
        else:
            raw.polite_body.end()
        return content

    return read


def _streaming(method: Callable[..., Iterator[bytes]]) -> Callable[..., Iterator[bytes]]:
    def stream(raw: Any, *args: Any, **kwargs: Any) -> Iterator[bytes]:
        try:
            for chunk in method(raw, *args, **kwargs):
                raw.polite_body.renew()
                yield chunk
        except Exception:
            raw.polite_body.end()
            raise
        raw.polite_body.end()

    return stream


def _ending(method: Callable[..., Any]) -> Callable[..., Any]:
    def end(raw: Any, *args: Any, **kwargs: Any) -> Any:
        try:
            return method(raw, *args, **kwargs)
        finally:
            raw.polite_body.end()

    return end


_WAYS: dict[str, Callable[[Callable[..., Any]], Callable[..., Any]]] = {
    "read": _reading,
    "read1": _reading_some,
    "readinto": _reading_some,
    "readline": _reading_some,
    "stream": _streaming,
    "read_chunked": _streaming,
    "drain_conn": _ending,
    "release_conn": _ending,
    "close": _ending,
}
