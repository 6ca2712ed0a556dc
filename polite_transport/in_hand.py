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
from polite_transport.passage import check, enter, leave, leave_async
from polite_transport.stores.base import Store
from polite_transport.url import Target

log = logging.getLogger("polite_transport")

R = TypeVar("R")


class Hand:
    """One request on its way down, or one fetch of a robots.txt.

    target, method: which request it is.
    request: the client's own object for it; None where it has none.
    on_wire: whether only the site lies beneath, and no client that has an object of its own for it,
        or none. What comes then is another request, such as one that an upload body makes.
    call: what is decided about it; None for the fetch of a robots.txt, whose turns are taken by
        the logic that asked for it.
    get: how the wire layer fetches robots.txt again, should the copy run out while it waits.
    paced_by: the layer that takes its turns; None = the first wire layer that asks.
    """

    __slots__ = (
        "_layers",
        "_pacer",
        "_requests",
        "_token",
        "call",
        "get",
        "is_open",
        "method",
        "on_wire",
        "store",
        "target",
    )

    def __init__(
        self,
        target: Target,
        method: str,
        store: Store,
        call: Call | None,
        get: Get | None = None,
        *,
        request: object = None,
        on_wire: bool = False,
        paced_by: object = None,
    ) -> None:
        self.target = target
        self.method = method
        self.store = store
        self.call = call
        self.get = get
        self.is_open = False
        self.on_wire = on_wire
        self._pacer = paced_by
        self._requests: tuple[object, ...] = () if request is None else (request,)
        self._layers: tuple[object, ...] = ()

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

    def carries(self, method: str, target: Target, request: object = None) -> bool:
        """Whether what a layer meets is the request in hand, and not another one like it.

        request: the client's own object for it; None where it has none.

        Its own object tells. A client beneath has one of its own for it, the first to come.
        """
        if not self.is_open or target != self.target or method != self.method:
            return False
        if self.call is None:  # nothing else asks for a robots.txt meanwhile, but a re-send of it
            return True
        known = self._requests
        if any(request is each for each in known):
            return True
        if self.on_wire or any(type(request) is type(each) for each in known):
            return False
        if request is not None:
            self._requests = (*known, request)
        return True

    def is_in_the_way_of(self, target: Target) -> bool:
        """Whether another request, made meanwhile, would wait for this one."""
        # Once this one is closed, only a body that is still read may hold the turn, and goes on.
        return self.is_open and target.host == self.target.host

    def is_new_to(self, layer: object) -> bool:
        """Whether a layer beneath meets the request for the first time.

        If not, something in between sends it once more by itself.
        """
        if any(layer is each for each in self._layers):
            return False
        self._layers = (*self._layers, layer)
        return True


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


def handed_down(method: str, target: Target, request: object = None) -> Hand | None:
    """Return what a layer of ours above has in hand, if it is this very request.

    request: as for ``Hand.carries``.

    Another one to the same host ends the turn of the one in hand. Made while that is being sent, by
    an upload body that downloads, it would wait for itself otherwise.
    """
    hand = IN_HAND.get()
    if hand is None or hand.carries(method, target, request):
        return hand
    if hand.is_in_the_way_of(target):
        hand.leave(UNANSWERED)
    return None


async def handed_down_async(method: str, target: Target, request: object) -> Hand | None:
    """As ``handed_down``, on asyncio or trio."""
    hand = IN_HAND.get()
    if hand is None or hand.carries(method, target, request):
        return hand
    if hand.is_in_the_way_of(target) and hand.call is not None:
        await leave_async(hand.call, UNANSWERED, hand.store)
    return None


def is_in_hand(method: str, target: Target, request: object = None) -> bool:
    """Whether a layer of ours above has this very request in hand, so that it is only passed on."""
    return handed_down(method, target, request) is not None


Native = Callable[[PoliteError | NoAnswer], Exception]


def send_checked(
    call: Call,
    store: Store,
    get: Get,
    send: Callable[[], R],
    native: Native,
    request: object = None,
) -> R:
    """Check a request and send it, blocking: what every blocking client layer does.

    send: the client's own send, beneath which the wire layer takes the turns.
    native: turns a refusal into the client's own exception.
    request: as for ``Hand``.
    """
    try:
        check(call, store, get)
        with Hand(call.target, call.method, store, call, get, request=request):
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
    # A layer beneath may have given it the flavour of another client.
    own = next((flavour for kind, flavour in flavours.items() if isinstance(error, kind)), None)
    if own is None or isinstance(error, own):
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
