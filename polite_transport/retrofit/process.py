"""``install``: every request of this process, from one line at the top of a program.

Classes are patched where all requests of a client come through, so that functions imported
before, sessions made before, and subclasses are covered.
"""

from collections.abc import Callable, Collection
from functools import partial, wraps
from types import ModuleType, TracebackType
from typing import Any, Self
from weakref import WeakKeyDictionary

from polite_transport.policy import Policy
from polite_transport.retrofit.imports import no_longer, when_imported
from polite_transport.sending.local_sockets import is_local_socket
from polite_transport.stores.base import Store
from polite_transport.visitor import Visitor, visitor

Around = Callable[..., Any]  # (who, original, its arguments) -> what the original gives


class Installed:
    """What ``install`` did. ``undo`` takes it back, as does leaving it as a context manager."""

    def __init__(self, who: Visitor) -> None:
        self._who = who
        self._active = True
        self._undo: list[Callable[[], None]] = []
        self._waiting: list[Callable[[ModuleType], None]] = []
        for module, patch in _PATCHES.items():
            act = partial(patch, self)
            self._waiting.append(act)
            when_imported(module, act)

    def patch(self, owner: Any, name: str, around: Around) -> None:
        """Put ``around`` around a method of a class, until ``undo``."""
        original = getattr(owner, name)

        @wraps(original)
        def patched(*args: Any, **kwargs: Any) -> Any:
            if not self._active:  # buried under someone else's patch, so that it stays in place
                return original(*args, **kwargs)
            return around(self._who, original, *args, **kwargs)

        def undo() -> None:
            if owner.__dict__.get(name) is patched:
                setattr(owner, name, original)

        setattr(owner, name, patched)
        self._undo.append(undo)

    def undo(self) -> None:
        """Take it back. Where someone has patched on top since, ours stays beneath, inert."""
        self._active = False
        for act in self._waiting:
            no_longer(act)
        while self._undo:
            self._undo.pop()()
        if _installed and _installed[0] is self:
            _installed.clear()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.undo()


_installed: list[Installed] = []


def install(
    *,
    ua: str | None = None,
    policy: Policy | None = None,
    store: Store | None = None,
    hosts: Collection[str] | None = None,
    exempt_hosts: Collection[str] = (),
) -> Installed:
    """Make every request of this process polite that goes through a known client.

    Those are requests, httpx, urllib3, urllib.request, and aiohttp where it is installed.

    ua, policy, store: as for ``PoliteSession``.
    hosts: only these are checked and paced; None = all. Named as in ``Policy.exempt_hosts``.
    exempt_hosts: these are not, beside those of the policy. A User-Agent that the script has set
        for a host that is left alone goes as it is.

    Called again, it takes the place of what was installed before. Use what it returns as a
    context manager, or call its ``undo``, to take it back.
    Raises ValueError as ``PoliteSession`` does, and for hosts that are none at all.
    Requests raise what those of ``PoliteSession`` do, each in its own client's flavour.
    """
    who = visitor(ua, policy, store, hosts=hosts, exempt_hosts=exempt_hosts)
    if _installed:
        _installed[0].undo()
    _installed.append(Installed(who))
    return _installed[0]


# --- where the requests of each client come through -----------------------------------------


def _patch_requests(installed: Installed, module: ModuleType) -> None:
    from polite_transport.clients.requests import send_politely

    def send(
        who: Visitor,
        original: Any,
        adapter: Any,
        request: Any,
        stream: bool = False,
        timeout: Any = None,
        verify: Any = True,
        cert: Any = None,
        proxies: Any = None,
    ) -> Any:
        settings = {
            "stream": stream,
            "timeout": timeout,
            "verify": verify,
            "cert": cert,
            "proxies": proxies,
        }
        return send_politely(who, partial(original, adapter), request, settings)

    installed.patch(module.adapters.HTTPAdapter, "send", send)


def _patch_urllib3(installed: Installed, module: ModuleType) -> None:
    from polite_transport.clients.urllib3.bare import pool_make_request, pool_urlopen

    installed.patch(module.HTTPConnectionPool, "urlopen", pool_urlopen)
    installed.patch(module.HTTPConnectionPool, "_make_request", pool_make_request)


def _patch_httpx(installed: Installed, module: ModuleType) -> None:
    from polite_transport.clients.httpx import send_politely, send_politely_async, way_of

    ways: WeakKeyDictionary[Any, str] = WeakKeyDictionary()  # learnt once for each transport

    def route(original: Any, transport: Any) -> tuple[Any, str]:
        via = ways.get(transport)
        if via is None:
            via = ways[transport] = way_of(transport)
        return partial(original, transport), via

    def handle(who: Visitor, original: Any, transport: Any, request: Any) -> Any:
        if is_local_socket(transport):
            return original(transport, request)
        return send_politely(who, lambda _: route(original, transport), request)

    async def handle_async(who: Visitor, original: Any, transport: Any, request: Any) -> Any:
        if is_local_socket(transport):
            return await original(transport, request)
        return await send_politely_async(who, lambda _: route(original, transport), request)

    installed.patch(module.HTTPTransport, "handle_request", handle)
    installed.patch(module.AsyncHTTPTransport, "handle_async_request", handle_async)


def _patch_urllib(installed: Installed, module: ModuleType) -> None:
    from polite_transport.clients.urllib import open_politely

    def do_open(
        who: Visitor, original: Any, handler: Any, http_class: Any, req: Any, **connection: Any
    ) -> Any:
        if is_local_socket(http_class):
            return original(handler, http_class, req, **connection)
        return open_politely(who, partial(original, handler), http_class, req, connection)

    installed.patch(module.AbstractHTTPHandler, "do_open", do_open)


def _patch_aiohttp(installed: Installed, module: ModuleType) -> None:
    from polite_transport.clients.aiohttp import with_middleware

    def request(who: Visitor, original: Any, session: Any, *args: Any, **options: Any) -> Any:
        return original(session, *args, **with_middleware(who, session, options))

    installed.patch(module.ClientSession, "_request", request)


_PATCHES: dict[str, Callable[[Installed, ModuleType], None]] = {
    "requests": _patch_requests,
    "urllib3": _patch_urllib3,
    "httpx": _patch_httpx,
    "urllib.request": _patch_urllib,
    "aiohttp": _patch_aiohttp,
}
