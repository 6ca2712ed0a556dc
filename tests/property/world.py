"""A world on a virtual clock: sites that log what arrives, and parties that visit them.

No socket, no thread, no real time. Everything happens in the order of its time, and within one
instant in the order in which it was begun, so that a world that went wrong goes wrong again.
"""

import heapq
import itertools
from collections.abc import Callable, Generator
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from polite_transport import MemoryStore
from polite_transport.errors import PoliteError
from polite_transport.flow import UNANSWERED, Attempt, Call, NoAnswer, check, enter, leave
from polite_transport.flow.at_once import check_at_once, enter_at_once, leave_at_once
from polite_transport.robots.access import Access, Copy, Reply
from polite_transport.steps import (
    Acquire,
    Claim,
    Fetch,
    Now,
    Publish,
    Release,
    Sleep,
    Step,
    StoreStep,
    Wait,
)
from polite_transport.stores.base import Seat
from polite_transport.visitor import Visitor

UA = "MyBot/1.0 (+https://example.org/bot)"
WALL = 2.0**30  # seconds by which wall and monotonic clock differ; a sum with it stays exact
ENDLESS = 100_000  # steps; no world that is right comes near

Task = Generator["Step[Any] | Page | AtOnce", Any, None]


class Cancelled(BaseException):
    """What a cancelled party is thrown."""


@dataclass(frozen=True)
class Serving:
    """One answer of a site to robots.txt. seconds: until it arrives, and from there to its end."""

    reply: Reply
    to_arrival: float = 0.0
    to_end: float = 0.0


@dataclass(frozen=True)
class Exchange:
    """One attempt at a page. ends: how; None where the client gives up without an answer.

    to_arrival, to_end: seconds from sending to the site's log, and from there to the headers.
    late: whether it arrives only after it was given up.
    """

    to_arrival: float
    to_end: float
    ends: Attempt | None = field(default_factory=lambda: Attempt(200))
    late: bool = False

    @property
    def is_connected(self) -> bool:
        return self.ends is None or self.ends.status is not None


@dataclass(frozen=True)
class AtOnce:
    """The short way, which clients try first; its answer is whether it was gone."""

    act: Callable[..., bool]
    call: Call
    attempt: tuple[Attempt, ...] = ()


@dataclass(frozen=True)
class Page:
    """The step that a client performs between enter and leave; its answer is an Attempt."""

    call: Call
    exchange: Exchange


@dataclass(eq=False)
class Line:
    """One request as site and client saw it; times by the world's clock.

    before, after: seconds that bind it to those before it and to those after it.
    limit: of its turn. number: its place in the order in which they were let go.
    ended: when its client knew how it ended. answered: whether by headers. over: where in that
        order its turn was given back.
    """

    number: int
    origin: str
    host: str
    target: str
    sent: float
    before: float
    after: float
    limit: float
    arrived: float | None = None
    ended: float | None = None
    answered: bool = False
    over: float = float("inf")
    overloaded: bool = False
    retry_after: float = 0.0
    call: Call | None = None
    copy: Copy | None = None
    checked_again: bool = False
    unread: bool = False  # its client was interrupted before it could do what the answer asks

    @property
    def is_robots(self) -> bool:
        return self.call is None

    @property
    def is_free(self) -> bool:
        """Whether it is bound to nothing, so that it takes no turn."""
        return not self.before and not self.is_robots


@dataclass(eq=False)
class Party:
    """Someone who visits; cancelled at a step or at a time, or left behind by its event loop."""

    visitor: Visitor
    url: str
    exchanges: list[Exchange]
    cancel_at_step: int | None = None
    vanish_at_step: int | None = None
    hesitates: bool = False  # between any two steps of it others may go on, as between threads
    steps: int = 0
    checks: int = 0  # since it was last on the wire
    expected: int = 0  # the number of the event that resumes it; all others are out of date
    line: Line | None = None
    last_line: Line | None = None
    let_go: int = 0
    ended: bool = False
    vanished: bool = False
    outcome: str = ""

    def __post_init__(self) -> None:
        call = self.visitor.call("GET", self.url, UA)
        assert isinstance(call, Call)
        self.call = call
        self.task = self._visit()

    def _visit(self) -> Task:
        """What a client does with one request, over as many attempts as its retries make."""
        call = self.call
        try:
            if not (yield AtOnce(check_at_once, call)):
                yield from check(call)
            for exchange in self.exchanges:
                if not (yield AtOnce(enter_at_once, call)):
                    yield from enter(call)
                try:
                    attempt = yield Page(call, exchange)
                except BaseException:
                    yield from leave(call, UNANSWERED)
                    raise
                if not (yield AtOnce(leave_at_once, call, (attempt,))):
                    yield from leave(call, attempt)
            self.outcome = "sent"
        except (PoliteError, NoAnswer) as error:
            self.outcome = type(error).__name__


@dataclass(eq=False)
class Seated:
    """What became of one seat: when it first asked, how often, and when it was let go."""

    number: int
    asked: float
    acquires: int = 0
    released_at_first: int = 0
    releases: int = 0
    sent: float | None = None
    order: int | None = None


@dataclass(eq=False)
class World:
    """Where parties meet sites. servings: by URL, the last one again and again."""

    servings: dict[str, list[Serving]]
    now: float = 0.0

    def __post_init__(self) -> None:
        self.store = MemoryStore(clock=lambda: self.now, wall=lambda: WALL + self.now)
        self.lines: list[Line] = []
        self.parties: list[Party] = []
        self.seats: dict[Seat, Seated] = {}
        self.fetching: dict[str, Party] = {}
        self.read: dict[str, tuple[int | None, float]] = {}
        self.good_until: dict[str, float] = {}
        self.known_delay: dict[str, float] = {}
        self.releases: dict[str, int] = {}
        self.timeouts: list[Wait] = []
        self.steps = 0
        self._events: list[tuple[float, int, Callable[[], None]]] = []
        self._numbers = itertools.count(1)

    # --- time ---------------------------------------------------------------------------------

    def at(self, seconds: float, act: Callable[[], None]) -> int:
        number = next(self._numbers)
        heapq.heappush(self._events, (self.now + seconds, number, act))
        return number

    def run(self) -> None:
        try:
            while self._events:
                self.now, _, act = heapq.heappop(self._events)
                act()
        finally:
            for party in self.parties:
                if not party.ended:
                    _bury(party)

    # --- parties ------------------------------------------------------------------------------

    def send_in(self, party: Party, after: float) -> Party:
        self.parties.append(party)
        self.at(after, lambda: self._go_on(party, None))
        return party

    def cancel(self, party: Party) -> None:
        """Throw a cancellation into a party that waits for something."""
        if not party.ended and not party.vanished:
            self._interrupt(party)

    def _interrupt(self, party: Party) -> None:
        party.expected = -1
        if party.line is not None:
            party.line.ended = self.now
        self._go_on(party, Cancelled(), throw=True)

    def _go_on(self, party: Party, answer: Any, *, throw: bool = False) -> None:
        """Let a party go on until it has to wait for time or for another."""
        while True:
            self.steps += 1
            assert self.steps < ENDLESS, "the parties go round in circles"
            try:
                step = party.task.throw(answer) if throw else party.task.send(answer)
            except (StopIteration, Cancelled):
                party.ended = True
                self._forget_fetch(party)
                return
            throw = False
            if isinstance(step, AtOnce):  # a function: nothing interrupts it
                answer = self._at_once(party, step)
                continue
            party.steps += 1
            if party.vanish_at_step == party.steps:
                party.vanished = True
                self._forget_fetch(party)
            if isinstance(step, StoreStep):
                answer = self._perform(party, step)
            elif not party.vanished:
                self._begin(party, step)
            if party.vanished:
                _bury(party)
                return
            if party.cancel_at_step == party.steps:
                if party.line is not None:
                    party.line.ended = self.now
                elif isinstance(step, Now) and party.last_line is not None:
                    party.last_line.unread = True
                party.expected = -1
                throw, answer = True, Cancelled()
            elif not isinstance(step, StoreStep):
                return
            elif party.hesitates:
                self._later(party, 0.0, lambda it=answer: it)  # type: ignore[misc]
                return

    def _later(self, party: Party, seconds: float, answer: Callable[[], Any]) -> int:
        """Let a party go on after so many seconds, unless something else makes it go on before."""

        def act() -> None:
            if party.expected == number and not party.vanished:
                self._go_on(party, answer())

        party.expected = number = self.at(seconds, act)
        return number

    def _forget_fetch(self, party: Party) -> None:
        for origin, other in list(self.fetching.items()):
            if other is party:
                del self.fetching[origin]

    # --- steps --------------------------------------------------------------------------------

    def _perform(self, party: Party, step: StoreStep[Any]) -> Any:
        if isinstance(step, Acquire | Claim):
            step.waiter.ended = lambda: party.vanished
        if isinstance(step, Claim) and not step.waiter.ready:
            party.checks += 1
        if isinstance(step, Release) and party.last_line is not None:
            party.last_line.over = min(party.last_line.over, next(self._numbers))
        if isinstance(step, Release):
            self.releases[step.seat.host] = self.releases.get(step.seat.host, 0) + 1
        if isinstance(step, Publish) and isinstance(step.outcome, Copy):
            if self.fetching.get(step.key.origin) is party:
                self._published(step.key.origin, step.outcome)
            self._forget_fetch(party)
        elif isinstance(step, Publish):
            self._forget_fetch(party)
        answer = step.perform(self.store)
        if isinstance(step, Claim) and isinstance(answer, Copy) and step.waiter.outcome is None:
            assert WALL + self.now < answer.expires_at, "a copy counts beyond its life"
        if isinstance(step, Acquire):
            self._asked(party, step.waiter, answer.granted and not answer.wait)
        return answer

    def _at_once(self, party: Party, step: AtOnce) -> bool:
        done = step.act(step.call, *step.attempt, self.store)
        host = step.call.target.host
        if done and step.act is check_at_once:
            party.checks += 1
        elif done and step.act is enter_at_once:
            party.let_go = next(self._numbers)
        elif done and party.last_line is not None:
            party.last_line.over = min(party.last_line.over, next(self._numbers))
        if done and step.act is not check_at_once:
            self.releases[host] = self.releases.get(host, 0) + 1
        return done

    def _published(self, origin: str, copy: Copy) -> None:
        status, until = self.read[origin]
        if status in (200, 304, 404):
            self.good_until[origin] = until
        if copy.access is Access.FILE:
            self.known_delay[origin] = crawl_delay(copy.body)
        else:
            self.known_delay[origin] = 0.0

    def _asked(self, party: Party, seat: Seat, now: bool) -> None:
        releases = self.releases.get(seat.host, 0)
        known = self.seats.setdefault(
            seat, Seated(len(self.seats), self.now, released_at_first=releases)
        )
        known.acquires += 1
        if now and known.sent is None:
            known.sent = self.now
            known.order = party.let_go = next(self._numbers)
            if not seat.held:  # it passes, and those who are bound keep their distance from it too
                self.releases[seat.host] = releases + 1
            known.releases = releases - known.released_at_first

    def _begin(self, party: Party, step: object) -> None:
        began = self.now
        if isinstance(step, Sleep):
            self._later(party, step.seconds, lambda: self.now - began)
        elif isinstance(step, Wait):
            self._wait(party, step)
        elif isinstance(step, Fetch):
            self._fetch(party, step)
        elif isinstance(step, Page):
            self._visit(party, step)
        else:
            raise TypeError(step)

    def _wait(self, party: Party, step: Wait) -> None:
        began = self.now

        def wake() -> None:
            if party.vanished:
                raise RuntimeError("the event loop is closed")
            if party.expected == number:  # else it waits no longer: an old wake-up wakes nobody
                self._later(party, 0.0, lambda: self.now - began)

        def time_is_up() -> float:
            if not step.waiter.ready:
                self.timeouts.append(step)
            return self.now - began

        number = self._later(party, step.seconds, time_is_up)
        step.waiter.wake = wake
        if step.waiter.ready:
            wake()

    def _send(self, party: Party, line: Line, to_arrival: float) -> None:
        self.lines.append(line)
        party.line = party.last_line = line

        def arrive() -> None:
            line.arrived = self.now

        self.at(to_arrival, arrive)

    def _fetch(self, party: Party, step: Fetch) -> None:
        where, call = step.target, party.call
        origin = call.target.origin
        assert self.fetching.get(origin, party) is party, "two fetch one robots.txt at once"
        if origin not in self.fetching:
            assert self.now >= self.good_until.get(origin, 0.0), "fetched while its copy lives"
        self.fetching[origin] = party
        servings = self.servings[where.url]
        serving = servings.pop(0) if len(servings) > 1 else servings[0]
        reply = serving.reply
        if (
            "If-None-Match" in step.headers
            and reply.headers.get("etag") == (step.headers["If-None-Match"])
        ):
            reply = Reply(304, reply.headers)
        own = call.policy.min_delay
        if call.policy.obey_crawl_delay and where.host == call.target.host:
            own = max(own, self.known_delay.get(origin, 0.0))
        line = Line(
            *(party.let_go, where.origin, where.host, where.path),
            *(self.now, own, own, call.policy.turn_limit),
        )
        self._send(party, line, serving.to_arrival)

        def end() -> Reply:
            line.ended = self.now
            party.line = None
            line.answered = reply.status is not None
            _note_pause(line, reply.status, reply.headers.get("retry-after"))
            if where.host == call.target.host and call.policy.obey_crawl_delay:
                line.after = max(own, crawl_delay(reply.body) if reply.status == 200 else 0.0)
            self.read[origin] = reply.status, self.now + call.policy.robots_ttl
            return reply

        self._later(party, serving.to_arrival + serving.to_end, end)

    def _visit(self, party: Party, step: Page) -> None:
        call, exchange = step.call, step.exchange
        where = call.target
        bound = call.policy.min_delay
        if call.policy.obey_crawl_delay and call.copy is not None:
            bound = max(bound, crawl_delay(call.copy.body))
        line = Line(
            *(party.let_go, where.origin, where.host, where.path),
            *(self.now, bound, bound, call.policy.turn_limit),
            call=call,
            copy=call.copy,
            checked_again=party.checks > (0 if call.attempts > 1 else 1),
        )
        party.checks = 0
        if exchange.is_connected:
            late = exchange.to_end if exchange.late else 0.0
            self._send(party, line, exchange.to_arrival + late + (0.25 if late else 0.0))

        def end() -> Attempt:
            line.ended = self.now
            party.line = None
            if exchange.ends is None:
                return UNANSWERED
            line.answered = True
            _note_pause(line, exchange.ends.status, exchange.ends.retry_after)
            return exchange.ends

        to_end = exchange.to_end if exchange.late else exchange.to_arrival + exchange.to_end
        self._later(party, to_end, end)


def _bury(party: Party) -> None:
    """End what nobody goes on with, without one of its steps being performed."""
    # Whatever goes wrong in it now, it is no party any more.
    with suppress(Cancelled, Exception):
        party.task.throw(Cancelled())
        while True:
            party.task.send(None)


def _note_pause(line: Line, status: int | None, retry_after: str | None) -> None:
    line.overloaded = status in (429, 503)
    if retry_after is not None and status in (302, 429, 503):
        line.retry_after = float(retry_after)


def crawl_delay(body: bytes) -> float:
    for line in body.decode().split("\n"):
        if line.startswith("Crawl-delay: "):
            return float(line.removeprefix("Crawl-delay: "))
    return 0.0
