"""The politeness logic on a virtual clock, in any interleaving: no socket, no thread, no real time.

A small world runs many requests through check, enter and leave over one MemoryStore, with the
order of events, the time of arrival within each request, failures and cancellations all drawn.
"""

import heapq
import itertools
from collections.abc import Callable, Generator
from dataclasses import dataclass, field
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from polite_transport import MemoryStore, Policy
from polite_transport.errors import PoliteError
from polite_transport.flow import UNANSWERED, Attempt, Call, NoAnswer, check, enter, leave
from polite_transport.robots.access import Reply
from polite_transport.steps import Fetch, Sleep, Step, StoreStep, Wait
from polite_transport.visitor import Visitor

UA = "MyBot/1.0 (+https://example.org/bot)"
DELAYS = [0.0, 0.5, 1.0, 2.5]
Task = Generator["Step[Any] | Page", Any, None]


class Cancelled(BaseException):
    """What a cancelled task is thrown."""


@dataclass
class Page:
    """One attempt on the wire. seconds until it arrives, and from there to its headers."""

    call: Call
    to_arrival: float
    to_headers: float
    fails: bool


@dataclass
class Arrived:
    """A line of the site's log. sent: when it was let go. bound: to how many seconds."""

    time: float
    origin: str
    host: str
    target: str
    sent: float
    bound: float

    @property
    def lateness(self) -> float:
        """How long after its client has given up it may still arrive, in seconds.

        Two delays of its own follow such an end; what is left of them beside the longest delay
        that the next request may be bound to.
        """
        return max(2 * self.bound - max(DELAYS), 0.0)

    @property
    def took_no_turn(self) -> bool:
        return not self.bound and self.target != "/robots.txt"


@dataclass
class Running:
    task: Task
    waiting_for: int = 0  # the number of the event that resumes it; others are out of date
    in_flight: Arrived | None = None
    ended: bool = False


@dataclass
class World:
    """Virtual time, tasks in it, and a site that logs what arrives."""

    robots: dict[str, list[Reply]]
    robots_seconds: float
    now: float = 1_000.0
    log: list[Arrived] = field(default_factory=list)
    events: list[tuple[float, int, Callable[[], None]]] = field(default_factory=list)
    numbers: Any = field(default_factory=itertools.count)
    steps: int = 0

    def __post_init__(self) -> None:
        self.store = MemoryStore(clock=lambda: self.now, wall=lambda: self.now)
        self.running: list[Running] = []

    def at(self, seconds: float, act: Callable[[], None]) -> int:
        number: int = next(self.numbers)
        heapq.heappush(self.events, (self.now + seconds, number, act))
        return number

    def start(self, task: Task, after: float) -> Running:
        running = Running(task)
        self.running.append(running)
        self.at(after, lambda: self.resume(running, None))
        return running

    def run(self) -> None:
        while self.events:
            self.now, _, act = heapq.heappop(self.events)
            act()

    def resume(self, running: Running, answer: Any, *, throw: bool = False) -> None:
        """Go on with a task until it has to wait for time or for another."""
        while not running.ended:
            self.steps += 1
            try:
                send = running.task.throw if throw else running.task.send
                step = send(answer)
            except StopIteration:
                running.ended = True
                return
            throw = False
            if isinstance(step, StoreStep):
                answer = step.perform(self.store)
            elif self._begin(running, step):
                return
            else:
                answer = 0.0

    def _begin(self, running: Running, step: object) -> bool:
        """Begin what takes time; whether the task has to wait at all."""
        began = self.now
        running.in_flight = None

        def resume_at(seconds: float, answer: Callable[[], Any]) -> None:
            def act() -> None:
                if running.waiting_for == number:
                    self.resume(running, answer())

            running.waiting_for = number = self.at(seconds, act)

        if isinstance(step, Sleep):
            resume_at(step.seconds, lambda: self.now - began)
        elif isinstance(step, Wait):
            waiter = step.waiter
            if waiter.ready:
                return False
            waiter.wake = lambda: resume_at(0.0, lambda: self.now - began)
            resume_at(step.seconds, lambda: self.now - began)
        elif isinstance(step, Fetch):
            replies = self.robots[step.target.origin]
            reply = replies.pop(0) if len(replies) > 1 else replies[0]
            # Its own delay binds it once the reply is read; a cancelled fetch never learns it.
            line = Arrived(0, step.target.origin, step.target.host, "/robots.txt", began, 0.0)
            self.arrive(self.robots_seconds / 2, line)

            def read() -> Reply:
                line.bound = robots_delay(reply)
                return reply

            resume_at(self.robots_seconds, read)
        elif isinstance(step, Page):
            call = step.call
            bound = call.decision.delay
            where = call.target
            line = Arrived(0, where.origin, where.host, where.path, began, bound)
            running.in_flight = line
            if step.fails:
                self.arrive(step.to_headers + min(step.to_arrival, line.lateness), line)
                resume_at(step.to_headers, lambda: False)
            else:
                self.arrive(step.to_arrival, line)
                resume_at(step.to_arrival + step.to_headers, lambda: True)
        else:
            raise TypeError(step)
        return True

    def arrive(self, seconds: float, line: Arrived) -> None:
        def act() -> None:
            if not line.time:
                line.time = self.now
                self.log.append(line)

        self.at(seconds, act)

    def cancel(self, running: Running) -> None:
        if not running.ended:
            running.waiting_for = -1
            if running.in_flight is not None:
                self.arrive(running.in_flight.lateness, running.in_flight)
            try:
                self.resume(running, Cancelled(), throw=True)
            except Cancelled:
                running.ended = True


def robots_delay(reply: Reply) -> float:
    for line in reply.body.decode().splitlines():
        if line.startswith("Crawl-delay: "):
            return float(line.removeprefix("Crawl-delay: "))
    return 0.0


def request(
    visitor: Visitor, url: str, attempts: list[tuple[float, float, bool]], refused: list[str]
) -> Task:
    """What a client does with one request, over as many attempts as its retries make."""
    call = visitor.call("GET", url, UA)
    assert isinstance(call, Call)
    try:
        yield from check(call)
        for to_arrival, to_headers, fails in attempts:
            yield from enter(call)
            try:
                answered = yield Page(call, to_arrival, to_headers, fails)
            except BaseException:
                yield from leave(call, UNANSWERED)
                raise
            yield from leave(call, Attempt(200) if answered else UNANSWERED)
    except (PoliteError, NoAnswer):
        refused.append(url)


seconds = st.floats(0.0, 3.0, allow_nan=False)
delays = st.sampled_from(DELAYS)
ORIGINS = ["http://a.example", "http://a.example:81", "http://b.example"]


@st.composite
def robots_txt(draw: st.DrawFn) -> list[Reply]:
    body = b"User-agent: *\nDisallow: /private\n"
    delay = draw(delays)
    if delay:
        body += b"Crawl-delay: %g\n" % delay
    fine = Reply(200, {}, body)
    first = draw(
        st.sampled_from([fine, fine, fine, Reply(503), Reply(None, error=OSError("down"))])
    )
    return [first, fine]


@settings(max_examples=300, deadline=None)
@given(data=st.data())
def test_any_interleaving_keeps_the_promise(data: st.DataObject) -> None:
    """Gap kept, one fetch an origin, nothing disallowed sent, nobody stranded."""
    world = World(
        {origin: data.draw(robots_txt()) for origin in ORIGINS}, data.draw(st.floats(0.0, 1.0))
    )
    first = {origin: replies[0] for origin, replies in world.robots.items()}
    visited: set[str] = set()
    visitors = [
        Visitor(UA, Policy(min_delay=data.draw(delays), turn_limit=1e6), world.store)
        for _ in range(2)
    ]
    refused: list[str] = []
    cancelled: set[int] = set()
    count = data.draw(st.integers(1, 8))
    for number in range(count):
        origin = data.draw(st.sampled_from(ORIGINS))
        visited.add(origin)
        path = data.draw(st.sampled_from(["/page", "/page", "/private/page"]))
        attempts = data.draw(
            st.lists(st.tuples(seconds, seconds, st.booleans()), min_size=1, max_size=3)
        )
        visitor = data.draw(st.sampled_from(visitors))
        running = world.start(
            request(visitor, origin + path, attempts, refused), data.draw(seconds)
        )
        if data.draw(st.integers(0, 3)) == 0:
            cancelled.add(number)
            world.at(data.draw(st.floats(0.0, 10.0)), lambda it=running: world.cancel(it))  # type: ignore[misc]

    world.run()

    assert all(running.ended for running in world.running), "someone was left waiting"
    assert not [each for each in world.log if each.target.startswith("/private")]
    for host in ("a.example", "b.example"):
        arrivals = [each for each in world.log if each.host == host]
        for earlier, later in itertools.pairwise(arrivals):
            assert later.time - earlier.time >= delay_in_force(earlier, later) - 1e-6
    for origin in visited:
        here = [each for each in world.log if each.origin == origin]
        fetches = [each for each in here if each.target == "/robots.txt"]
        tries = 2 if first[origin].failed else 1
        if cancelled:
            assert len(fetches) <= 2 * (len(cancelled) + 1)
        else:
            assert len(fetches) == tries, "one fetch an origin, and one more where it failed"
    assert world.steps < 200 * count, "someone polls"


def delay_in_force(earlier: Arrived, later: Arrived) -> float:
    """Return the least gap that was promised between two arrivals, in seconds."""
    for one, other in ((earlier, later), (later, earlier)):
        if one.took_no_turn and one.sent <= other.sent:
            return 0.0  # let go before the other, bound to nothing: it took no turn
    # What a robots.txt asks for is not known before it is read.
    return max(earlier.bound, 0.0 if later.target == "/robots.txt" else later.bound)
