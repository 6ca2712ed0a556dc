"""One Redis or Valkey server: its restarts are noticed, and its troubles named."""

import re
import threading
import time
from collections.abc import Callable
from importlib import import_module
from typing import Any, NoReturn
from urllib.parse import urlsplit, urlunsplit

from polite_transport.stores.base import StoreFault

ANSWER_TIMEOUT = 2.0  # seconds
_CONNECT_TIMEOUT = 1.0
_PING_EVERY = 10  # seconds; a listener whose server vanished without a word notices by this

# Settings that belong to one connection's errors and hooks, which here are ours.
_OURS = ("retry", "retry_on_error", "retry_on_timeout", "decode_responses", "redis_connect_func")


class Connection:
    """A Redis client of our own, whose troubles are named and whose restarts are noticed."""

    def __init__(self, server: Any, patience: float) -> None:
        self._patience = patience
        if isinstance(server, str):
            if server.startswith("valkey"):
                server = "redis" + server.removeprefix("valkey")
            package, client = "redis", None
        else:
            module = type(server).__module__
            if ".asyncio" in module:
                raise ValueError(
                    f"RedisStore takes a URL or a client that blocks, and none of {module}: "
                    "asynchronous clients of polite_transport are served by it too"
                )
            package, client = module.partition(".")[0], server
        library = import_module(package)
        self._errors = import_module(f"{package}.exceptions")
        settings = {
            "socket_connect_timeout": _CONNECT_TIMEOUT,
            "socket_timeout": ANSWER_TIMEOUT,
            "health_check_interval": _PING_EVERY,
            # At once and once: verbs are idempotent, and an idle connection may have been dropped.
            "retry": import_module(f"{package}.retry").Retry(
                import_module(f"{package}.backoff").NoBackoff(), 1
            ),
            "redis_connect_func": self._greet,
        }
        pool = getattr(client, "connection_pool", None)
        self.is_cluster = False
        if client is None:
            self.name = _without_userinfo(server)
            client_class = getattr(library, "Redis")  # noqa: B009 - of either package
            self.client = client_class.from_url(server, **settings)
            own = self.client.connection_pool
            try:
                own.connection_class(**own.connection_kwargs)  # it connects when it is first used
            except TypeError as error:
                raise ValueError(
                    f"the store's URL for {self.name} has an option that nobody takes ({error})"
                ) from error
        elif pool is None:  # a cluster's client has connections of its own, one pool for each node
            self.name = type(client).__name__
            self.client = client
            self.is_cluster = True
        else:
            kept = {k: v for k, v in pool.connection_kwargs.items() if k not in _OURS}
            self.name = _place(kept)
            own = type(pool)(connection_class=pool.connection_class, **{**kept, **settings})
            self.client = type(client)(connection_pool=own)
        self._greeting: Callable[[Any, str], None] | None = None
        self._of_threads = threading.local()

    @property
    def of_this_thread(self) -> Any:
        """A client with a connection of this thread's own: half the time of one from a pool."""
        try:
            return self._of_threads.client
        except AttributeError:
            own = self.client if self.is_cluster else self.call(self.client.client)
            self._of_threads.client = own
            return own

    def forget_parent(self) -> None:
        """In a forked child: the connections are the parent's, which goes on using them."""
        _of_parents.append(self._of_threads)
        self._of_threads = threading.local()

    def on_new_server(self, greeting: Callable[[Any, str], None]) -> None:
        """Call ``greeting`` with a connection and the run id of its server, before anything else.

        Silent reconnects are the reason: a restart must be noticed before the next turn.
        """
        self._greeting = greeting

    def _greet(self, connection: Any) -> None:
        # A check of the connection's health would, where it fails, connect again from in here.
        connection.on_connect_check_health(check_health=False)
        try:
            connection.send_command("INFO", "server", check_health=False)
            info = text_of(connection.read_response())
        except self._errors.ResponseError as error:
            if not self._is_forbidden(error):
                raise
            return  # without INFO a restart shows only by what the server has lost
        run_id = re.search(r"^run_id:(\w+)", info, re.MULTILINE)
        if run_id and self._greeting is not None:
            self._greeting(connection, run_id[1])

    def call(self, act: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """Call something of the client. Raises StoreFault."""
        started = time.monotonic()
        try:
            return act(*args, **kwargs)
        except self._errors.RedisError as error:
            self._fail(error, time.monotonic() - started)

    def close(self) -> None:
        """Close the connections that are not in use; the others close when they come back."""
        if self.is_cluster:
            return  # it is the program's own
        self._of_threads = threading.local()
        self.client.connection_pool.disconnect(inuse_connections=False)

    def check_memory(self) -> None:
        """Refuse a server that drops keys when its memory is full: a lost key is a lost gap."""
        try:
            info = self.call(self.client.info, "memory")
        except StoreFault as fault:
            if self._is_forbidden(fault.__cause__):
                return
            raise
        policy = str(info.get("maxmemory_policy", "noeviction"))
        if int(info.get("maxmemory", 0)) and policy != "noeviction":
            raise StoreFault(
                f"Redis at {self.name} throws keys away when its memory is full "
                f"(maxmemory-policy {policy}), and a turn with them: set it to noeviction"
            )

    def _fail(self, error: Exception, spent: float) -> NoReturn:
        errors = self._errors
        said = str(error)
        where = f"Redis at {self.name}"
        refused = said.startswith(("NOAUTH", "WRONGPASS"))
        if refused or isinstance(error, errors.AuthenticationError):
            cause = "refuses the user or the password: set them in the store's URL"
        elif isinstance(error, errors.BusyLoadingError):
            self._away(f"{where} is still loading its file", spent, error)
        elif isinstance(error, errors.ConnectionError | errors.TimeoutError):
            self._away(f"{where} does not answer: start it, or mend the way to it", spent, error)
        elif isinstance(error, errors.OutOfMemoryError) or said.startswith("OOM"):
            cause = "is out of memory: raise its maxmemory, or free some"
        elif said.startswith("NOREPLICAS"):
            cause = "does not write for want of replicas: bring them back"
        elif isinstance(error, errors.ReadOnlyError) or said.startswith("READONLY"):
            cause = "is a read-only replica: name its primary"
        elif said.startswith("MISCONF"):
            cause = "cannot save to its disk and takes no writes: mend that"
        elif self._is_forbidden(error):
            cause = f"forbids this user a command: allow it ({said})"
        else:
            cause = f"answers with an error ({said})"
        raise StoreFault(f"{where} {cause}", spent=spent) from error

    def _is_forbidden(self, error: BaseException | None) -> bool:
        # Known codes are cut off the message, and their errors have a class of their own.
        return isinstance(error, self._errors.NoPermissionError) or "NOPERM" in str(error)

    def _away(self, cause: str, spent: float, error: Exception) -> NoReturn:
        raise StoreFault(cause, passing=True, spent=spent, patience=self._patience) from error


_of_parents: list[threading.local] = []


def text_of(value: Any) -> str:
    """Return what a server has said as text."""
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)


def _without_userinfo(url: str) -> str:
    parts = urlsplit(url)
    place = parts.netloc.rpartition("@")[2]
    return urlunsplit((parts.scheme, place, parts.path, "", ""))  # a query may hold a password too


def _place(settings: dict[str, Any]) -> str:
    return str(settings.get("path") or f"{settings.get('host')}:{settings.get('port')}")
