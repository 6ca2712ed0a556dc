"""How a request is handed from layer to layer, and told apart from the next one.

The client layer (``HTTPAdapter.send``, an httpx transport) puts the request in hand around its
inner send. The wire layer (urllib3's pools) finds it there. Any further layer of ours that sees the
same request passes it on: one check, one turn.
"""

import copy
import logging
from collections.abc import Callable, Mapping
from contextvars import ContextVar
from functools import lru_cache
from traceback import walk_tb
from types import TracebackType
from typing import Self, TypeVar

from polite_transport.decision import Decision
from polite_transport.drive import Get
from polite_transport.errors import DisallowedByRobots, PoliteError, RobotsUnreachable
from polite_transport.flow import UNANSWERED, Attempt, Call, NoAnswer
from polite_transport.passage import check, enter, leave
from polite_transport.stores.base import Store
from polite_transport.url import Target

log = logging.getLogger("polite_transport")

R = TypeVar("R")


class Hand:
    """One request on its way down, or one fetch of a robots.txt.

    target, method: which request it is.
    call: what is decided about it; None for the fetch of a robots.txt, whose turns are taken by
        the logic that asked for it.
    get: how the wire layer fetches robots.txt again, should the copy run out while it waits.
    paced_by: the layer that takes its turns; None = the first wire layer that asks.
    """

    __slots__ = ("_pacer", "_token", "call", "get", "is_open", "method", "store", "target")

    def __init__(
        self,
        target: Target,
        method: str,
        store: Store,
        call: Call | None,
        get: Get | None = None,
        *,
        paced_by: object = None,
    ) -> None:
        self.target = target
        self.method = method
        self.store = store
        self.call = call
        self.get = get
        self.is_open = False
        self._pacer = paced_by

    def __enter__(self) -> Self:
        self._token = IN_HAND.set(self)
        self.is_open = True
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        # Tasks and threads that were started meanwhile keep this context: to them it is closed.
        self.is_open = False
        IN_HAND.reset(self._token)
        if self.call is None and isinstance(error, Exception):
            # No client says "no answer" like this: a mock that was told of no robots.txt.
            _note(error, f"polite_transport met this while it asked for {self.target.url}")

    def is_paced_by(self, layer: object) -> bool:
        """Whether this layer takes the request's turns: the first one that asks."""
        if self._pacer is None:
            self._pacer = layer
        return self._pacer is layer

    def enter(self) -> None:
        """Take the turn of one attempt, blocking."""
        if self.call is not None:
            enter(self.call, self.store, self.get)

    def leave(self, attempt: Attempt) -> None:
        """Give the turn back; nothing where it is given back already."""
        if self.call is not None:
            leave(self.call, attempt, self.store)

    def renew(self) -> None:
        """Let the turn's limit run anew: the response is still coming in."""
        if self.call is not None and self.call.seat is not None:
            self.store.renew(self.call.seat)

    def carries(self, method: str, target: Target) -> bool:
        """Whether a request is the one in hand."""
        return self.is_open and target == self.target and method == self.method


_MOCKS = {"responses", "requests_mock", "respx", "pytest_httpx", "aioresponses", "vcr"}
_ASSUME = (
    "HTTP is mocked here: let the mock answer /robots.txt (a 404 allows everything), or use "
    "polite_transport.testing.assume_allowed()"
)


def _note(error: BaseException, note: str) -> None:
    """Say what an exception is about, once, and what to do about it where it comes of a mock."""
    if note not in getattr(error, "__notes__", ()):
        error.add_note(note)
        frames = (frame for frame, _ in walk_tb(error.__traceback__))
        if any(frame.f_globals.get("__name__", "").partition(".")[0] in _MOCKS for frame in frames):
            error.add_note(_ASSUME)


IN_HAND: ContextVar[Hand | None] = ContextVar("polite_transport_in_hand", default=None)


def is_in_hand(method: str, target: Target) -> bool:
    """Whether a layer of ours above has this very request in hand, so that it is only passed on.

    Another one to the same host ends the turn of the one in hand. Made while that is being sent, by
    an upload body that downloads, it would wait for itself otherwise.
    """
    hand = IN_HAND.get()
    if hand is None:
        return False
    if hand.carries(method, target):
        return True
    if hand.target.host == target.host:
        hand.leave(UNANSWERED)
    return False


Native = Callable[[PoliteError | NoAnswer], Exception]


def send_checked(call: Call, store: Store, get: Get, send: Callable[[], R], native: Native) -> R:
    """Check a request and send it, blocking: what every blocking client layer does.

    send: the client's own send, beneath which the wire layer takes the turns.
    native: turns a refusal into the client's own exception.
    """
    try:
        check(call, store, get)
        with Hand(call.target, call.method, store, call, get):
            return send()
    except (PoliteError, NoAnswer) as error:
        refusal = native(error)
    raise refusal  # out here, where its own causes stay as they are


def decided(call: Call, store: Store, get: Get, native: Native) -> Decision:
    """Return what ``check`` decides about a request that is not sent, blocking."""
    try:
        check(call, store, get)
    except (DisallowedByRobots, RobotsUnreachable) as no:
        return no.decision
    except (PoliteError, NoAnswer) as error:
        refusal = native(error)
    else:
        return call.decision
    raise refusal


@lru_cache(maxsize=256)
def say_replaced(script_sets: str, ua: str) -> None:
    """Log once that a User-Agent which the script sets is replaced by ``ua=``."""
    log.warning("the script sets the User-Agent %r; %r is sent instead (ua=)", script_sets, ua)


Flavours = Mapping[type[PoliteError], type[PoliteError]]


def flavoured(error: PoliteError, flavours: Flavours) -> PoliteError:
    """Return a refusal as the client's own subclass, so that its native handlers see it."""
    own = flavours.get(type(error))
    if own is None:
        return error
    translated = own(*error.made_of())
    for note in getattr(error, "__notes__", ()):
        translated.add_note(note)
    return translated


def native_error(
    no_answer: NoAnswer, native: type[Exception], fallback: type[Exception]
) -> Exception:
    """Return what the client raises where robots.txt got no answer: its own exception, with a note.

    native: the client's base error. fallback: what stands for another client's exception, where
        that client's fetch was the one that failed.
    """
    error = no_answer.error
    if not isinstance(error, native):
        error = fallback(str(error) or type(error).__name__)
    elif no_answer.shared:
        error = copy.copy(error)  # one exception raised in two threads would mix their tracebacks
    _note(error, no_answer.note)
    return error
