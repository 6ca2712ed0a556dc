"""How a request is handed from layer to layer, and told apart from the next one.

The client layer (``HTTPAdapter.send``, an httpx transport) puts the request in hand around its
inner send. The wire layer (urllib3's pools) finds it there. Any further layer of ours that sees the
same request passes it on: one check, one turn.
"""

import re
from contextvars import ContextVar
from types import TracebackType
from typing import Self
from urllib.parse import unquote_to_bytes

from polite_transport.drive import Get
from polite_transport.flow import UNANSWERED, Attempt, Call
from polite_transport.robots.octets import resolved
from polite_transport.sending.native import note
from polite_transport.sending.passage import enter, leave, leave_async
from polite_transport.stores.base import Store
from polite_transport.url import Target


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
        "_lends",
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
        self._lends = False
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
            note(error, f"polite_transport met this while it asked for {self.target.url}")

    def is_paced_by(self, layer: object) -> bool:
        """Whether this layer takes the request's turns: the first one that asks."""
        if self._pacer is None:
            self._pacer = layer
        return self._pacer is layer

    def lend(self) -> None:
        """Take the turn, blocking, for a layer that cannot see what is sent in it.

        The first layer beneath that sees each attempt goes on with it, and paces from then on.
        """
        self.enter()
        self._lends = True

    def borrows(self, layer: object) -> bool:
        """Whether this layer, which sees each attempt, goes on with the turn of one above."""
        if not self._lends:
            return False
        self._lends = False
        self._pacer = layer
        # Another request, made before this one was sent, may have ended it.
        return self.call is not None and self.call.seat is not None

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
        if not self.is_open or method != self.method:
            return False
        if self.call is None:  # nothing else asks for a robots.txt meanwhile, but a re-send of it
            return target.origin == self.target.origin and _meant(target) == _meant(self.target)
        if target != self.target:
            return False
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


def _meant(where: Target) -> str:
    """Return a path and query without what clients spell each in its own way.

    They do where a robots.txt is moved to: escapes, dot segments, slashes in front, an empty query.
    """
    octets = unquote_to_bytes(_LONE_PERCENT.sub("%25", where.path))
    return resolved("/" + octets.decode("latin-1").lstrip("/")).rstrip("?")


_LONE_PERCENT = re.compile(r"%(?![0-9A-Fa-f]{2})")

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
