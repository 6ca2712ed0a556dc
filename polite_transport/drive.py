"""The two drivers that perform the steps: one blocking, one on anyio (asyncio and trio).

The only home of sleep. No lock is held here over a wait.
"""

import os
import sys
import threading
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from polite_transport.robots.access import Reply
from polite_transport.steps import Acquire, Claim, Fetch, Flow, Sleep, Step, StoreStep, Wait
from polite_transport.stores.base import AskShared, Seat, Store, Waiter

if TYPE_CHECKING:
    from concurrent.futures import Future, ThreadPoolExecutor

# Waits are cut into days: some clocks refuse more at once. The flow asks again after each.
LONGEST_NAP = 86_400.0
# That many calls of all event loops may be under way to shared stores.
STORE_THREADS = 16

T = TypeVar("T")
Get = Callable[[Fetch], Reply]
AsyncGet = Callable[[Fetch], Awaitable[Reply]]


def run(flow: Flow[T], store: Store, get: Get | None = None) -> T:
    """Drive a flow to its end, blocking this thread where it has to wait.

    get: makes the one request that a flow may ask for, that of robots.txt.
    Raises what the flow raises. What interrupts a step is thrown into the flow, so that it gives
    its turns and claims back.
    """
    send: Callable[[Any], Step[Any]] = flow.send
    answer: Any = None
    try:
        while True:
            step = send(answer)
            send = flow.send
            try:
                answer = (
                    step.perform(store) if isinstance(step, StoreStep) else _act(step, store, get)
                )
            except BaseException as error:  # noqa: BLE001 - the flow cleans up and raises it again
                send, answer = flow.throw, error
    except StopIteration as end:
        return end.value  # type: ignore[no-any-return]


def _act(step: Step[Any], store: Store, get: Get | None) -> object:
    if isinstance(step, Sleep):
        return _timed(time.sleep, min(step.seconds, LONGEST_NAP))
    if isinstance(step, Wait):
        return _timed(_wait, step, store)
    if isinstance(step, Fetch) and get is not None:
        return get(step)
    raise TypeError(f"nothing here can perform {step!r}")


def _timed(act: Callable[..., object], *arguments: object) -> float:
    """Return the seconds that it took."""
    started = time.monotonic()
    act(*arguments)
    return time.monotonic() - started


def _wait(step: Wait, store: Store) -> None:
    """Block this thread on a lock that the waker releases.

    Raises RuntimeError where it would be in vain: only this thread could end the wait, which would
    go on until the other's time is up.
    """
    waiter = step.waiter
    if store.is_blocked_by(threading.get_ident(), waiter, step.key):
        raise RuntimeError(_blocked(step))
    gate = threading.Lock()
    gate.acquire()
    waiter.wake = gate.release
    if not waiter.ready:
        gate.acquire(timeout=min(step.seconds, LONGEST_NAP))


def _blocked(step: Wait) -> str:
    """Say what keeps a request from its turn, or from its robots.txt, and what to do about it."""
    if step.key is not None:
        what, end = f"{step.key.origin}/robots.txt, which another one reads", "gives up"
    else:
        host = step.waiter.host if isinstance(step.waiter, Seat) else "the same host"
        what, end = f"another one to {host} that is still open", "has had its turn for turn_limit"
    return (
        f"this request would wait for {what} in this very thread, until that one {end}. In a "
        'coroutine, use an asynchronous client; with pace_from="body", read or close the earlier '
        "response first. Nothing was sent."
    )


async def run_async(flow: Flow[T], store: Store, get: AsyncGet | None = None) -> T:
    """Drive a flow to its end on asyncio or trio; otherwise as ``run``."""
    send: Callable[[Any], Step[Any]] = flow.send
    answer: Any = None
    try:
        while True:
            step = send(answer)
            send = flow.send
            try:
                if isinstance(step, StoreStep):
                    if isinstance(step, Acquire | Claim):
                        _say_where(step.waiter)
                    try:
                        answer = step.perform(store.front)
                    except AskShared:
                        _suspended.add(flow)
                        answer = await _in_thread(step, store)
                else:
                    _suspended.add(flow)
                    answer = await _act_async(step, get)
            except BaseException as error:  # noqa: BLE001 - the flow cleans up and raises it again
                send, answer = flow.throw, error
    except StopIteration as end:
        return end.value  # type: ignore[no-any-return]
    finally:
        _suspended.discard(flow)


# The flows of coroutines that may be suspended. The garbage collector closes a coroutine and all
# that only it holds, in any order: of a flow that is held here too, the coroutine can make an end.
_suspended: "set[Flow[Any]]" = set()


async def _in_thread(step: StoreStep[T], store: Store) -> T:
    """Perform a step that may wait for a disk or a network.

    Whatever cancels the task meanwhile has to wait until the step is done: one that went on by
    itself could take a turn that nobody gives back. Every store sees to it that this has an end.
    The threads are ours, so that a program whose own threads all wait for turns cannot keep those
    turns from being given back.
    """
    import anyio

    ended = anyio.Event()
    post = _post_to_loop()
    done = _store_threads().submit(step.perform, store)
    done.add_done_callback(partial(_tell, post, ended.set))
    cancelled: BaseException | None = None
    is_closed = False
    while not ended.is_set():
        try:
            with anyio.CancelScope(shield=True):
                try:
                    await ended.wait()
                except GeneratorExit:
                    is_closed = True  # anyio makes an error of its own of it
                    raise
        except BaseException as error:
            if is_closed:
                raise
            cancelled = error  # asyncio's own cancel() goes through a shield
    if cancelled is not None:
        raise cancelled
    return done.result()


def _tell(
    post: Callable[[Callable[[], object]], object],
    ended: Callable[[], object],
    _: "Future[Any]",
) -> None:
    with suppress(RuntimeError):  # the loop is closed, so that nobody waits any more
        post(ended)


_executor: "list[ThreadPoolExecutor]" = []


def _store_threads() -> "ThreadPoolExecutor":
    from concurrent.futures import ThreadPoolExecutor

    if not _executor:
        _executor.append(ThreadPoolExecutor(STORE_THREADS, "polite_transport"))
    return _executor[0]


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_executor.clear)  # its threads are the parent's


async def _act_async(step: Step[Any], get: AsyncGet | None) -> object:
    import anyio

    started = time.monotonic()
    if isinstance(step, Sleep):
        await anyio.sleep(min(step.seconds, LONGEST_NAP))
    elif isinstance(step, Wait):
        event = anyio.Event()
        step.waiter.wake = partial(_post_to_loop(), event.set)
        if not step.waiter.ready:
            with anyio.move_on_after(min(step.seconds, LONGEST_NAP)):
                await event.wait()
    elif isinstance(step, Fetch) and get is not None:
        return await get(step)
    else:
        raise TypeError(f"nothing here can perform {step!r}")
    return time.monotonic() - started


def _post_to_loop() -> Callable[[Callable[[], object]], object]:
    """Return what runs a callable in this event loop, from any thread.

    It raises RuntimeError once the loop is closed.
    """
    import asyncio

    try:
        return asyncio.get_running_loop().call_soon_threadsafe
    except RuntimeError:
        return _trio_token().run_sync_soon  # type: ignore[no-any-return]


def _say_where(waiter: Waiter) -> None:
    """Tell the others which event loop a waiter lives in."""
    if waiter.ended is None:
        waiter.ended = _loop_ended()


def _loop_ended() -> Callable[[], bool]:
    """Return what tells whether this event loop is closed."""
    import asyncio

    try:
        return asyncio.get_running_loop().is_closed
    except RuntimeError:
        return partial(_trio_ended, _trio_token())


def _trio_token() -> Any:
    # Imported already, or this would not be running on it.
    return sys.modules["trio"].lowlevel.current_trio_token()


def _trio_ended(token: Any) -> bool:
    try:
        token.run_sync_soon(_nothing)
    except RuntimeError:
        return True
    return False


def _nothing() -> None:
    """Ask nothing of an event loop but whether it still runs."""
