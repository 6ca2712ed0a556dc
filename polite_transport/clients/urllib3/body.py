"""Giving a turn back at the end of a response's body; requests builds on this too."""

from collections.abc import Callable, Iterator
from typing import Any

from polite_transport.flow import Attempt
from polite_transport.in_hand import Hand


def leave_at_end(raw: Any, hand: Hand, attempt: Attempt) -> None:
    """Give the turn back when the body has been read or given up; renew it as bytes come in.

    raw: what the body is read from: urllib3's response, or a file. Others make these objects, so
        that their methods are replaced one by one. The turn of one that does not let itself be
        changed, as ``io.BytesIO``, which holds its bytes already, is given back at once.
    """
    watch = _Watch(hand, attempt)
    try:
        for name, watching in watch.ways.items():
            method = getattr(raw, name, None)
            if method is not None:
                setattr(raw, name, watching(method))
    except AttributeError:
        watch.end()


class _Watch:
    """The methods of a body, each with an eye on its end."""

    def __init__(self, hand: Hand, attempt: Attempt) -> None:
        self._hand = hand
        self._attempt = attempt
        self.ways = {
            "read": self._reading,
            "read1": self._reading_some,
            "stream": self._streaming,
            "release_conn": self._ending,
            "close": self._ending,
        }

    def end(self) -> None:
        self._hand.leave(self._attempt)

    def _reading(self, method: Callable[..., Any]) -> Callable[..., Any]:
        some = self._reading_some(method)

        def read(*args: Any, **kwargs: Any) -> Any:
            content = some(*args, **kwargs)
            size = args[0] if args else kwargs.get("amt", kwargs.get("size"))
            if size is None or size < 0:  # that was all of it
                self.end()
            return content

        return read

    def _reading_some(self, method: Callable[..., Any]) -> Callable[..., Any]:
        def read(*args: Any, **kwargs: Any) -> Any:
            try:
                content = method(*args, **kwargs)
            except BaseException:
                self.end()
                raise
            if content:
                self._hand.renew()
            else:
                self.end()
            return content

        return read

    def _streaming(self, method: Callable[..., Iterator[bytes]]) -> Callable[..., Iterator[bytes]]:
        def stream(*args: Any, **kwargs: Any) -> Iterator[bytes]:
            try:
                for chunk in method(*args, **kwargs):
                    self._hand.renew()
                    yield chunk
            except Exception:
                self.end()
                raise
            self.end()

        return stream

    def _ending(self, method: Callable[..., Any]) -> Callable[..., Any]:
        def end(*args: Any, **kwargs: Any) -> Any:
            self.end()
            return method(*args, **kwargs)

        return end
