"""``RedisStore``: turns and robots.txt copies for many machines, in Redis 6.2 or newer, or Valkey.

Every verb is one Lua script, atomic on the server and on its clock (``turns.lua``,
``copies.lua``). All keys of a namespace share one hash tag, so that a cluster keeps them together.
"""

import re
import secrets
from collections.abc import Sequence
from contextlib import suppress
from importlib.resources import files
from typing import Any

from polite_transport.pacing.retry_after import backoff
from polite_transport.stores.base import StoreFault, Turn
from polite_transport.stores.ledger import (
    LEASE,
    Elsewhere,
    Failed,
    Granted,
    Kept,
    Leave,
    Packed,
)
from polite_transport.stores.outage import OnError
from polite_transport.stores.redis_connection import ANSWER_TIMEOUT, Connection, text_of
from polite_transport.stores.shared import SharedStore

_SECOND = 1_000_000
_NAMESPACE = re.compile(r"[A-Za-z0-9_.-]{1,64}")
_ROW_OF_OVERLOADS = 8  # by then every pause is the longest one


class RedisStore(SharedStore):
    """Turns and robots.txt copies in Redis or Valkey, for any number of machines.

    server: a URL (``redis://``, ``rediss://``, ``unix://``), or a client of redis-py or valkey-py,
        whose settings are taken over; its own connections stay its own.
    namespace: robots of one namespace are one robot to every site. Letters, digits, ``_.-``.
    timeout: seconds that a request waits for a server that is away, before StoreUnavailable.
    lease: seconds that a process which dies in mid-request holds its host up; the same in all.
    copies_bytes: what robots.txt copies may take in this process's memory, see ``MemoryStore``.
    on_error: "raise" StoreUnavailable where the server cannot be used, or go on "local": each
        process by itself, at ``max_processes`` times each site's delay, until it can; never
        unpaced.
    max_processes: how many processes share the namespace at the most; "local" needs it.
    assume_cold: that nothing was sent before. Otherwise each host waits a delay after the namespace
        was made or the server started, if this process is the first to find it so.

    The server must not evict keys (``maxmemory-policy noeviction``).
    Pickled, it connects to the same server where it is loaded, if it was made from a URL; a deep
    copy is the store itself.
    Raises ImportError without the package: ``pip install polite-transport[redis]``; ValueError for
    a URL, namespace or options that make no sense; TypeError where one that was made from a client
    is pickled. The server is asked by the first request: what is wrong with it raises
    StoreUnavailable there.
    """

    def __init__(
        self,
        server: Any,
        *,
        namespace: str = "default",
        timeout: float = 5.0,
        lease: float = LEASE,
        copies_bytes: int = 128 * 2**20,
        on_error: OnError = "raise",
        max_processes: int | None = None,
        assume_cold: bool = False,
    ) -> None:
        if not _NAMESPACE.fullmatch(namespace):
            raise ValueError(
                f"RedisStore(namespace={namespace!r}): it takes up to 64 letters, digits, '_.-'"
            )
        self._server = server
        self._options = {
            "namespace": namespace,
            "timeout": timeout,
            "lease": lease,
            "copies_bytes": copies_bytes,
            "on_error": on_error,
            "max_processes": max_processes,
            "assume_cold": assume_cold,
        }
        connection = Connection(server, timeout)
        self._shown = f"RedisStore({connection.name!r}, namespace={namespace!r})"
        super().__init__(
            RedisLedger(connection, namespace, lease, assume_cold=assume_cold),
            lease=lease,
            copies_bytes=copies_bytes,
            on_error=on_error,
            max_processes=max_processes,
        )

    def made_of(self) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """See ``SharedStore.made_of``."""
        if not isinstance(self._server, str):
            raise TypeError("a RedisStore made from a client cannot be pickled: make it from a URL")
        return (self._server,), self._options

    def __repr__(self) -> str:
        return self._shown


class RedisLedger:
    """The ledger in Redis; its clock is the server's."""

    def __init__(
        self, connection: Connection, namespace: str, lease: float, *, assume_cold: bool
    ) -> None:
        self._redis = connection
        self._assume_cold = assume_cold
        self._prefix = f"polite:{{{namespace}}}"
        self._epoch = f"{self._prefix}:epoch"
        self._lease = round(lease * _SECOND)
        client = connection.client
        self._turns = client.register_script(_lua("turns.lua"))
        self._copies = client.register_script(_lua("copies.lua"))
        self._hello = _lua("hello.lua")
        connection.on_new_server(self._greet)

    def _greet(self, connection: Any, run_id: str) -> None:
        command = ("EVAL", self._hello, 1, self._epoch, run_id, int(self._assume_cold))
        connection.send_command(*command, check_health=False)
        connection.read_response()

    def open_mailbox(self) -> "Subscription":
        """See ``Ledger.open_mailbox``."""
        self._redis.check_memory()
        if self._assume_cold:
            self._redis.call(self._redis.client.set, self._epoch, "? 0", nx=True)
            self._assume_cold = False  # what is lost from now on was sent while we were there
        return Subscription(self._redis)

    def close(self) -> None:
        """See ``Ledger.close``."""
        self._redis.close()

    def forget_parent(self) -> None:
        """See ``Ledger.forget_parent``: the client's pool notices a fork by itself."""
        self._redis.forget_parent()

    # --- turns ------------------------------------------------------------------------------

    def _turn_verb(self, host: str, *arguments: str | int) -> Any:
        keys = (f"{self._prefix}:turn:{host}", self._epoch)
        client = self._redis.of_this_thread
        return self._redis.call(self._turns, keys=keys, args=arguments, client=client)

    def acquire(self, host: str, token: str, not_before: float) -> Turn:
        """See ``Ledger.acquire``."""
        granted, wait, pushed, ask_again = self._turn_verb(
            host, "acquire", token, _micro(not_before), self._lease
        )
        return Turn(bool(granted), wait / _SECOND, pushed / _SECOND, ask_again / _SECOND)

    def release(self, host: str, token: str, leave: Leave) -> float:
        """See ``Ledger.release``."""
        pauses: list[int] = []
        if leave.overloaded:
            pauses = [
                _micro(backoff(strikes, leave.delay)) for strikes in range(1, _ROW_OF_OVERLOADS + 1)
            ]
        overloaded = -1 if leave.overloaded is None else int(leave.overloaded)
        push: int = self._turn_verb(
            host,
            "release",
            token,
            int(leave.sent),
            _micro(leave.delay),
            int(leave.arrived),
            _micro(leave.push),
            overloaded,
            *pauses,
        )
        return push / _SECOND

    def let_pass(self, host: str, channel: str) -> float:
        """See ``Ledger.let_pass``."""
        micro: int = self._turn_verb(host, "let_pass", channel)
        return micro / _SECOND

    def renew(self, turns: Sequence[tuple[str, str]], claims: Sequence[tuple[str, str]]) -> None:
        """See ``Ledger.renew``; each is atomic for itself."""
        for host, token in turns:
            self._turn_verb(host, "renew", token, self._lease)
        for key, token in claims:
            self._copy_verb(key, "renew", token, self._lease)

    # --- copies -----------------------------------------------------------------------------

    def _copy_verb(self, key: str, *arguments: str | bytes | float) -> Any:
        keys = (f"{self._prefix}:copy:{key}",)
        client = self._redis.of_this_thread
        return self._redis.call(self._copies, keys=keys, args=arguments, client=client)

    def claim(
        self, key: str, token: str, waited: float, wall: float
    ) -> Kept | Granted | Elsewhere | Failed:
        """See ``Ledger.claim``."""
        kind, *parts = self._copy_verb(key, "claim", token, _micro(waited), wall, self._lease)
        if kind == b"kept":
            return Kept(_packed(parts))
        if kind == b"failed":
            return Failed(text_of(parts[0]))
        if kind == b"elsewhere":
            return Elsewhere(int(parts[0]) / _SECOND)
        return Granted(_packed(parts) if parts else None)

    def publish(self, key: str, token: str, outcome: Packed | str | None) -> None:
        """See ``Ledger.publish``."""
        if isinstance(outcome, Packed):
            parts = (outcome.head, outcome.body, outcome.digest, repr(outcome.expires_at))
            self._copy_verb(key, "publish", token, "copy", *parts)
        elif isinstance(outcome, str):
            self._copy_verb(key, "publish", token, "failure", outcome)
        else:
            self._copy_verb(key, "publish", token, "nothing")

    def discard(self, key: str) -> None:
        """See ``Ledger.discard``."""
        self._copy_verb(key, "discard", "")


class Subscription:
    """A mailbox on a pub/sub channel of its own."""

    def __init__(self, connection: Connection) -> None:
        self._redis = connection
        self.channel = f"polite.{secrets.token_hex(8)}"
        self._subscribed: Any = None
        self._subscribe()

    def _subscribe(self) -> None:
        subscribed = self._redis.client.pubsub()
        self._redis.call(subscribed.subscribe, self.channel)
        self._redis.call(subscribed.get_message, timeout=ANSWER_TIMEOUT)  # the server has it now
        self._subscribed = subscribed

    def listen(self, seconds: float) -> Sequence[str] | None:
        """See ``Mailbox.listen``."""
        subscribed, self._subscribed = self._subscribed, None
        try:
            if subscribed is None:
                self._subscribe()
                return None  # what was said meanwhile is lost
            # Its own reconnect would lose messages without a word: a broken one is not used again.
            message = self._redis.call(subscribed.get_message, timeout=seconds)
        except StoreFault:
            if subscribed is not None:
                _close_quietly(subscribed)
            return None
        self._subscribed = subscribed
        if message is None or message["type"] != "message":
            return []
        return [text_of(message["data"])]

    def close(self) -> None:
        """See ``Mailbox.close``."""
        if self._subscribed is not None:
            _close_quietly(self._subscribed)


def _lua(name: str) -> str:
    return files("polite_transport.stores").joinpath(name).read_text(encoding="utf-8")


def _micro(seconds: float) -> int:
    return round(seconds * _SECOND)


def _packed(parts: Sequence[bytes]) -> Packed:
    head, body, digest, expires_at = parts
    return Packed(head, body, digest, float(expires_at))


def _close_quietly(subscribed: Any) -> None:
    with suppress(Exception):  # it may be broken already
        subscribed.close()
