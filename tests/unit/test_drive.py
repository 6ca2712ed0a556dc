"""The two drivers: waking, interruptions, waiting for oneself; in threads and on event loops."""

import asyncio
import gc
import threading
import time
from collections.abc import Callable, Coroutine, Iterator
from contextlib import suppress
from typing import Any

import anyio
import anyio.lowlevel
import anyio.to_thread
import pytest

from polite_transport import MemoryStore
from polite_transport.drive import run, run_async
from polite_transport.robots.access import Reply
from polite_transport.steps import Acquire, Claim, Fetch, Flow, Now, Release, Sleep, Step, Wait
from polite_transport.stores.base import Busy, Claimed, CopyKey, CopyWaiter, Seat, StoreFault
from polite_transport.stores.guard import Guard
from polite_transport.url import Target

HOST = "example.org"
FOR_EVER = 600.0  # seconds that no test may need: whoever waits so long was not woken
ROBOTS = Target("http://example.org/robots.txt", "http://example.org", HOST, "/robots.txt")
KEY = CopyKey("http://example.org", "mybot", "follow", 512_000, 10.0, 86_400.0)
FETCH = Fetch(ROBOTS, {}, 100, 1.0)


@pytest.fixture
def holder(store: MemoryStore) -> Iterator[Seat]:
    """Whoever has the turn, in another thread."""
    with InAnotherThread(lambda: Seat(HOST, 0.001, FOR_EVER)) as seat:
        store.acquire(seat)
        yield seat


class InAnotherThread:
    """What a function returns in a thread of its own, whose identity stays in use."""

    def __init__(self, make: Callable[[], Seat]) -> None:
        self.made: list[Seat] = []
        self.end = threading.Event()
        ready = threading.Event()

        def live() -> None:
            self.made.append(make())
            ready.set()
            self.end.wait()

        self.thread = threading.Thread(target=live)
        self.thread.start()
        ready.wait()

    def __enter__(self) -> Seat:
        return self.made[0]

    def __exit__(self, *_: object) -> None:
        self.end.set()
        self.thread.join()


def turn(seat: Seat) -> Flow[float]:
    """Wait for a turn as the politeness logic does."""
    waited = 0.0
    try:
        while True:
            answer = yield from Acquire(seat)
            if answer.granted and not answer.wait:
                return waited
            if answer.granted:
                waited += yield from Sleep(answer.wait)
            else:
                waited += yield from Wait(seat, FOR_EVER)
    except BaseException:
        yield from Release(seat, sent=False)
        raise


def until_queued(store: MemoryStore, seats: int = 1) -> None:
    """Return when so many wait, and have gone to sleep over it."""
    while True:
        queue = store._turns._hosts[HOST].queue
        if queue is not None and len(queue) == seats and all(each.wake for each in queue):
            return
        time.sleep(0.0001)


# --- blocking -------------------------------------------------------------------------------


def test_answers_go_back_in_and_the_result_comes_out(store: MemoryStore) -> None:
    def flow() -> Flow[Any]:
        now = yield from Now()
        slept = yield from Sleep(0.002)
        reply = yield from FETCH
        return now, slept, reply

    now, slept, reply = run(flow(), store, lambda _step: Reply(404))
    assert abs(now - time.time()) < 60
    assert slept >= 0.002
    assert reply.status == 404


def test_a_thread_is_woken_by_another(store: MemoryStore, holder: Seat) -> None:
    seat = Seat(HOST, 0.001, FOR_EVER)

    def free() -> None:
        until_queued(store)
        store.release(holder, sent=True)

    thread = threading.Thread(target=free)
    thread.start()
    assert 0 < run(turn(seat), store) < FOR_EVER
    thread.join()
    assert seat.held


def test_a_wake_up_before_the_wait_is_not_lost(store: MemoryStore) -> None:
    def flow() -> Flow[float]:
        seat = Seat(HOST, 1.0, FOR_EVER)
        seat.ready = True  # it was woken between asking and going to sleep
        return (yield from Wait(seat, FOR_EVER))

    assert run(flow(), store) < 60


def test_a_wait_ends_by_its_time(store: MemoryStore) -> None:
    def flow() -> Flow[float]:
        return (yield from Wait(Seat(HOST, 1.0, FOR_EVER), 0.003))

    assert 0.003 <= run(flow(), store) < 60


def test_what_a_flow_raises_is_raised(store: MemoryStore) -> None:
    def flow() -> Flow[None]:
        yield from Now()
        raise LookupError("its own")

    with pytest.raises(LookupError, match="its own"):
        run(flow(), store)


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit, StoreFault, OSError])
def test_what_interrupts_a_step_is_thrown_into_the_flow(
    store: MemoryStore, error: Callable[[str], BaseException]
) -> None:
    given_back = []

    def flow() -> Flow[None]:
        seat = Seat(HOST, 1.0, FOR_EVER)
        yield from Acquire(seat)
        try:
            yield from FETCH
        except BaseException:
            yield from Release(seat, sent=False)
            given_back.append(seat)
            raise

    def interrupted(_: Fetch) -> Reply:
        raise error("now")

    with pytest.raises(error):  # type: ignore[call-overload]
        run(flow(), store, interrupted)
    assert len(given_back) == 1
    assert store.acquire(Seat(HOST, 1.0, FOR_EVER)).granted


def test_a_flow_may_go_on_after_a_step_that_failed(store: MemoryStore) -> None:
    def flow() -> Flow[str]:
        try:
            yield from FETCH
        except OSError:
            yield from Sleep(0.0)
            return "went on"
        return "not reached"

    def fails(_: Fetch) -> Reply:
        raise OSError("down")

    assert run(flow(), store, fails) == "went on"


def test_nobody_can_perform_a_fetch_without_a_client(store: MemoryStore) -> None:
    def flow() -> Flow[Any]:
        return (yield from FETCH)

    with pytest.raises(TypeError, match="perform"):
        run(flow(), store)


def test_an_unknown_step_is_an_error(store: MemoryStore) -> None:
    def flow() -> Flow[Any]:
        return (yield from Step[None]())

    with pytest.raises(TypeError, match="perform"):
        run(flow(), store)


def test_waiting_for_ones_own_turn_is_told_at_once(store: MemoryStore) -> None:
    store.acquire(Seat(HOST, 1.0, FOR_EVER))
    seat = Seat(HOST, 1.0, FOR_EVER)
    with pytest.raises(RuntimeError, match="in this very thread") as told:
        run(turn(seat), store)
    assert HOST in str(told.value)
    assert "turn_limit" in str(told.value)
    assert "for ever" not in str(told.value)
    assert not seat.queued, "its place is given back"


def test_waiting_for_ones_own_fetch_is_told_at_once(store: MemoryStore) -> None:
    def flow() -> Flow[None]:
        waiter = CopyWaiter()
        claim = yield from Claim(KEY, waiter)
        assert isinstance(claim, Busy)
        yield from Wait(waiter, claim.ask_again, KEY)

    store.claim(KEY, CopyWaiter())
    with pytest.raises(RuntimeError, match="Nothing was sent") as told:
        run(flow(), store)
    assert f"{KEY.origin}/robots.txt" in str(told.value)


def test_threads_in_a_queue_go_one_after_the_other(store: MemoryStore, holder: Seat) -> None:
    order: list[int] = []
    threads = []

    def visit(number: int) -> None:
        seat = Seat(HOST, 0.001, FOR_EVER)
        run(turn(seat), store)
        order.append(number)
        store.release(seat, sent=True)

    for number in range(8):
        threads.append(threading.Thread(target=visit, args=(number,)))
        threads[-1].start()
        until_queued(store, number + 1)
    store.release(holder, sent=True)
    for each in threads:
        each.join()
    assert order == list(range(8))


# --- on event loops -------------------------------------------------------------------------


async def no_get(_: Fetch) -> Reply:
    raise AssertionError("nothing is fetched here")


@pytest.mark.anyio
async def test_async_answers_and_result(store: MemoryStore) -> None:
    async def get(_: Fetch) -> Reply:
        await anyio.lowlevel.checkpoint()
        return Reply(404)

    def flow() -> Flow[Any]:
        now = yield from Now()
        slept = yield from Sleep(0.002)
        reply = yield from FETCH
        return now, slept, reply

    now, slept, reply = await run_async(flow(), store, get)
    assert abs(now - time.time()) < 60
    assert slept >= 0.002
    assert reply.status == 404


@pytest.mark.anyio
async def test_a_task_is_woken_by_a_thread(store: MemoryStore, holder: Seat) -> None:
    seat = Seat(HOST, 0.001, FOR_EVER)

    async def free() -> None:
        await anyio.to_thread.run_sync(until_queued, store)
        await anyio.to_thread.run_sync(lambda: store.release(holder, sent=True))

    with anyio.fail_after(60):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(free)
            assert await run_async(turn(seat), store) > 0
    assert seat.held


@pytest.mark.anyio
async def test_a_task_is_woken_by_a_task(store: MemoryStore) -> None:
    first, second = Seat(HOST, 0.001, FOR_EVER), Seat(HOST, 0.001, FOR_EVER)
    await run_async(turn(first), store)
    with anyio.fail_after(60):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(run_async, turn(second), store)
            while not second.queued:
                await anyio.lowlevel.checkpoint()
            store.release(first, sent=True)
    assert second.held


@pytest.mark.anyio
async def test_a_wake_up_before_the_tasks_wait_is_not_lost(store: MemoryStore) -> None:
    def flow() -> Flow[float]:
        seat = Seat(HOST, 1.0, FOR_EVER)
        seat.ready = True
        return (yield from Wait(seat, FOR_EVER))

    with anyio.fail_after(60):
        await run_async(flow(), store)


@pytest.mark.anyio
async def test_a_tasks_wait_ends_by_its_time(store: MemoryStore) -> None:
    def flow() -> Flow[float]:
        return (yield from Wait(Seat(HOST, 1.0, FOR_EVER), 0.003))

    with anyio.fail_after(60):
        assert await run_async(flow(), store) >= 0.003


@pytest.mark.anyio
@pytest.mark.parametrize("place", [0, 1, 2])
async def test_a_cancelled_task_gives_its_place_away(
    store: MemoryStore, holder: Seat, place: int
) -> None:
    scopes = [anyio.CancelScope() for _ in range(3)]
    seats = [Seat(HOST, 0.001, FOR_EVER) for _ in range(3)]
    went: list[int] = []

    async def visit(number: int) -> None:
        with scopes[number]:
            await run_async(turn(seats[number]), store)
            went.append(number)
            store.release(seats[number], sent=True)

    with anyio.fail_after(60):
        async with anyio.create_task_group() as tasks:
            for number in range(3):
                tasks.start_soon(visit, number)
                while not seats[number].queued:
                    await anyio.lowlevel.checkpoint()
            scopes[place].cancel()
            while seats[place].queued:
                await anyio.lowlevel.checkpoint()
            store.release(holder, sent=True)
    assert went == [number for number in range(3) if number != place]
    assert store._turns._hosts[HOST].holder is None


@pytest.mark.anyio
async def test_a_task_cancelled_when_its_turn_has_come_gives_it_on(
    store: MemoryStore, holder: Seat
) -> None:
    seats = [Seat(HOST, 0.001, FOR_EVER) for _ in range(2)]
    first = anyio.CancelScope()

    async def visit(number: int) -> None:
        with first if number == 0 else anyio.CancelScope():
            await run_async(turn(seats[number]), store)

    with anyio.fail_after(60):
        async with anyio.create_task_group() as tasks:
            for number in range(2):
                tasks.start_soon(visit, number)
                while not seats[number].queued:
                    await anyio.lowlevel.checkpoint()
            store.release(holder, sent=True)  # the first one's now, but it has not run since
            first.cancel()
    assert [each.held for each in seats] == [False, True]


@pytest.mark.anyio
async def test_a_cancelled_sleep_gives_the_turn_back(store: MemoryStore) -> None:
    store.acquire(first := Seat(HOST, 500.0, FOR_EVER))
    store.release(first, sent=True)
    seat = Seat(HOST, 1.0, FOR_EVER)
    with anyio.move_on_after(0.005) as scope:
        await run_async(turn(seat), store)
    assert scope.cancelled_caught
    assert not seat.held


@pytest.mark.anyio
async def test_async_errors_are_thrown_into_the_flow(store: MemoryStore) -> None:
    def flow() -> Flow[str]:
        try:
            yield from FETCH
        except OSError:
            return "went on"
        return "not reached"

    async def fails(_: Fetch) -> Reply:
        raise OSError("down")

    assert await run_async(flow(), store, fails) == "went on"


@pytest.mark.anyio
async def test_a_blocking_request_within_a_task_that_holds_the_turn_is_told(
    store: MemoryStore,
) -> None:
    await run_async(turn(Seat(HOST, 1.0, FOR_EVER)), store)
    with pytest.raises(RuntimeError, match="use an asynchronous client"):
        run(turn(Seat(HOST, 1.0, FOR_EVER)), store)


@pytest.mark.parametrize("backend", ["asyncio", "trio"])
def test_a_loop_that_closed_with_the_turn_is_passed_over(store: MemoryStore, backend: str) -> None:
    held = Seat(HOST, 0.001, FOR_EVER)
    anyio.run(run_async, turn(held), store, backend=backend)
    assert held.held
    with InAnotherThread(lambda: Seat(HOST, 0.001, FOR_EVER)) as seat:
        assert run(turn(seat), store) < 60


@pytest.mark.parametrize("backend", ["asyncio", "trio"])
def test_a_loop_that_is_closed_says_so_to_who_wakes_it(store: MemoryStore, backend: str) -> None:
    seat = Seat(HOST, 1.0, FOR_EVER)

    def flow() -> Flow[None]:
        yield from Acquire(seat)
        yield from Wait(seat, 0.001)

    anyio.run(run_async, flow(), store, backend=backend)
    assert seat.is_gone
    assert not seat.wake_up()


def test_one_queue_for_threads_and_both_event_loops(store: MemoryStore, holder: Seat) -> None:
    """Each of them in turn hands on to the next, whatever that lives in."""
    order: list[str] = []

    def visit(name: str) -> None:
        seat = Seat(HOST, 0.001, FOR_EVER)
        run(turn(seat), store)
        order.append(name)
        store.release(seat, sent=True)

    async def visit_async(name: str) -> None:
        seat = Seat(HOST, 0.001, FOR_EVER)
        with anyio.fail_after(60):
            await run_async(turn(seat), store)
        order.append(name)
        store.release(seat, sent=True)

    def in_loop(name: str) -> None:
        anyio.run(visit_async, name, backend=name.partition(" ")[0])

    names = [f"{kind} {number}" for number in range(3) for kind in ("asyncio", "thread", "trio")]
    threads = []
    for count, name in enumerate(names, 1):
        act: Callable[[str], Any] = visit if name.startswith("thread") else in_loop
        threads.append(threading.Thread(target=act, args=(name,)))
        threads[-1].start()
        until_queued(store, count)
    store.release(holder, sent=True)
    for each in threads:
        each.join()
    assert order == names


# --- stores that may take their time ------------------------------------------------------------


class Slow(MemoryStore):
    """A store that answers from a disk or a network: never at once."""

    def __init__(self) -> None:
        super().__init__()
        self.threads: set[int] = set()
        self.gate = threading.Event()
        self.entered = threading.Event()
        self.gate.set()
        acquire = self.acquire

        def slowly(seat: Seat) -> Any:
            self.threads.add(threading.get_ident())
            self.entered.set()
            self.gate.wait()
            return acquire(seat)

        self.acquire = slowly

    @property
    def front(self) -> Any:
        return _Nothing()


class _Nothing:
    def __getattr__(self, name: str) -> Callable[..., Any]:
        def ask(*_: object, **__: object) -> None:
            from polite_transport.stores.base import AskShared

            raise AskShared(name)

        return ask


@pytest.mark.anyio
async def test_a_slow_store_never_blocks_the_event_loop() -> None:
    store = Slow()
    seat = Seat(HOST, 1.0, FOR_EVER)
    store.gate.clear()
    with anyio.fail_after(60):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(run_async, turn(seat), store)
            await anyio.to_thread.run_sync(store.entered.wait)
            store.gate.set()
    assert seat.held
    assert threading.get_ident() not in store.threads


def test_a_turn_taken_while_its_task_is_cancelled_is_given_back() -> None:
    """asyncio's own cancel() goes through every shield; the thread that asks cannot be stopped."""
    store = Slow()
    store.gate.clear()

    async def main() -> None:
        task = asyncio.create_task(run_async(turn(Seat(HOST, 1.0, FOR_EVER)), store))
        await asyncio.to_thread(store.entered.wait)
        for _ in range(3):  # by an impatient user
            task.cancel()
            await asyncio.sleep(0)
        assert not task.done(), "it went away, and its turn is taken by nobody"
        store.gate.set()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())
    assert store._turns._hosts[HOST].holder is None


@pytest.mark.anyio
async def test_a_scope_cancelled_while_a_turn_is_taken_leaves_it_to_the_flow() -> None:
    store = Slow()
    seat = Seat(HOST, 1.0, FOR_EVER)
    store.gate.clear()

    def then_sleep() -> Flow[None]:
        yield from turn(seat)
        try:
            yield from Sleep(FOR_EVER)
        finally:
            yield from Release(seat, sent=False)

    with anyio.fail_after(60):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(run_async, then_sleep(), store)
            await anyio.to_thread.run_sync(store.entered.wait)
            tasks.cancel_scope.cancel()
            threading.Timer(0.01, store.gate.set).start()
    assert store._turns._hosts[HOST].holder is None


@pytest.mark.anyio
async def test_what_a_slow_store_raises_reaches_the_flow() -> None:
    store = Slow()

    def fails(seat: Seat) -> Any:
        raise StoreFault(f"gone, with {seat.host}")

    store.acquire = fails
    with pytest.raises(StoreFault, match="gone"):
        await run_async(turn(Seat(HOST, 1.0, FOR_EVER)), store)


# --- coroutines that the garbage collector closes -----------------------------------------------


async def send(seat: Seat, store: MemoryStore) -> None:
    """Take a turn, and give it back when the site's answer is there, or whatever comes."""
    await run_async(turn(seat), store)
    try:
        await anyio.sleep(FOR_EVER)
    finally:
        await run_async(give_back(seat), store)


def give_back(seat: Seat) -> Flow[None]:
    yield from Release(seat, sent=False)


class InterruptedLock:
    """A lock whose holder is interrupted: by the garbage collector, or by a signal's handler."""

    def __init__(self, lock: Any, act: Callable[[], object]) -> None:
        self._lock = lock
        self._is_owned = lock._is_owned
        self._act = act

    def __enter__(self) -> None:
        self._lock.acquire()
        try:
            self._act()
        except BaseException:
            self._lock.release()
            raise

    def __exit__(self, *_: object) -> None:
        self._lock.release()


def interrupt(guard: Guard, act: Callable[[], object]) -> None:
    guard.lock = InterruptedLock(guard.lock, act)


def let_collector_in(guard: Guard) -> None:
    """Let it come in a section, as it may wherever it gets memory."""
    interrupt(guard, gc.collect)


def leave_on_closed_loop(coroutine: Coroutine[Any, Any, None], reached: Callable[[], bool]) -> None:
    """Close an event loop over a request that waits, as a script does that cancels nothing."""
    loop = asyncio.new_event_loop()
    loop.set_exception_handler(lambda *_: None)  # it would be told that the task was pending

    async def main() -> None:
        task = asyncio.create_task(coroutine)
        while not reached():  # noqa: ASYNC110 - no event is set there
            await asyncio.sleep(0.001)
        assert not task.done()

    loop.run_until_complete(main())
    loop.close()


@pytest.mark.parametrize("where", ["before its turn", "on the wire"])
def test_what_the_collector_closes_is_given_back_and_blocks_nobody(
    store: MemoryStore, where: str
) -> None:
    if where == "before its turn":
        first = Seat(HOST, FOR_EVER, FOR_EVER)
        store.acquire(first)
        store.release(first, sent=True)
    seat = Seat(HOST, 1.0, FOR_EVER)
    gc.collect()
    gc.disable()
    try:
        leave_on_closed_loop(send(seat, store), lambda: seat.held)
        assert seat.held
        let_collector_in(store._turns._guard)
        # In a thread that can be given up.
        other = threading.Thread(target=store.acquire, args=(Seat("other", 1.0, 1.0),), daemon=True)
        other.start()
        other.join(60)
        assert not other.is_alive(), "a lock is waited for by its own holder"
    finally:
        gc.enable()
    assert not seat.held


def test_a_fetch_that_the_collector_closes_is_the_next_ones(store: MemoryStore) -> None:
    fetcher = CopyWaiter()

    async def fetch() -> None:
        store.claim(KEY, fetcher)
        try:
            await anyio.sleep(FOR_EVER)
        finally:
            store.publish(KEY, fetcher, None)

    gc.collect()
    gc.disable()
    try:
        leave_on_closed_loop(fetch(), lambda: bool(store._copies._claims))
        let_collector_in(store._copies._guard)
        other = KEY._replace(product_token="other")
        claiming = threading.Thread(target=store.claim, args=(other, CopyWaiter()), daemon=True)
        claiming.start()
        claiming.join(60)
        assert not claiming.is_alive(), "a lock is waited for by its own holder"
    finally:
        gc.enable()
    assert store.claim(KEY, CopyWaiter()) == Claimed(None)


def test_a_request_amid_the_taking_of_a_turn_is_refused(store: MemoryStore) -> None:
    mine, handlers = Seat(HOST, 1.0, FOR_EVER), Seat(HOST, 1.0, FOR_EVER)
    interrupt(store._turns._guard, lambda: store.acquire(handlers))
    with pytest.raises(RuntimeError, match="signal handler"):
        store.acquire(mine)
    assert not mine.held
    assert not handlers.held


def test_and_so_is_one_amid_the_claim_of_a_copy(store: MemoryStore) -> None:
    interrupt(store._copies._guard, lambda: store.claim(KEY, CopyWaiter()))
    with pytest.raises(RuntimeError, match="signal handler"):
        store.claim(KEY, CopyWaiter())
    assert not store._copies._claims


def test_a_coroutine_that_is_closed_while_a_slow_store_is_asked_comes_to_its_end() -> None:
    store = Slow()
    store.gate.clear()
    waiting = send(Seat(HOST, 1.0, FOR_EVER), store)
    leave_on_closed_loop(waiting, store.entered.is_set)
    store.gate.set()
    closing = threading.Thread(target=suppressed, args=(waiting.close,), daemon=True)
    closing.start()
    closing.join(60)
    assert not closing.is_alive(), "it goes round in circles"


def suppressed(act: Callable[[], object]) -> None:
    with suppress(RuntimeError):  # there is no event loop, which anyio minds
        act()
