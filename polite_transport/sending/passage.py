"""What every client does with a request: check it, enter the wire for an attempt, leave it again.

Once for threads, once for event loops. What can be done at once is; the rest is driven step by
step.
"""

from polite_transport import flow
from polite_transport.drive import AsyncGet, Get, run, run_async
from polite_transport.flow import Attempt, Call
from polite_transport.flow.at_once import check_at_once, enter_at_once, leave_at_once
from polite_transport.stores.base import Store


def check(call: Call, store: Store, get: Get) -> None:
    """Decide about a request, blocking while its origin's robots.txt is read; see ``flow.check``.

    get: makes the GET of robots.txt.
    """
    if not check_at_once(call, store):
        run(flow.check(call), store, get)


def enter(call: Call, store: Store, get: Get | None) -> None:
    """Take the turn of one attempt, blocking until it comes; see ``flow.enter``."""
    if not enter_at_once(call, store):
        run(flow.enter(call), store, get)


def leave(call: Call, attempt: Attempt, store: Store) -> None:
    """Give the turn back, if it is not already; see ``flow.leave``."""
    if call.seat is not None and not leave_at_once(call, attempt, store):
        run(flow.leave(call, attempt), store)


async def check_async(call: Call, store: Store, get: AsyncGet) -> None:
    """As ``check``, on asyncio or trio."""
    if not check_at_once(call, store):
        await run_async(flow.check(call), store, get)


async def enter_async(call: Call, store: Store, get: AsyncGet) -> None:
    """As ``enter``, on asyncio or trio."""
    if not enter_at_once(call, store):
        await run_async(flow.enter(call), store, get)


async def leave_async(call: Call, attempt: Attempt, store: Store) -> None:
    """As ``leave``, on asyncio or trio."""
    if call.seat is not None and not leave_at_once(call, attempt, store):
        await run_async(flow.leave(call, attempt), store)
