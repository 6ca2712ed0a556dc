"""One request after the other on a virtual clock, over a network that answers by script.

No socket, no thread, no real time: a sleep of thirty days is an addition.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from polite_transport import Decision, MemoryStore, Policy
from polite_transport.flow import Attempt, Call, check, enter, leave
from polite_transport.robots.access import Reply
from polite_transport.steps import Fetch, Flow, Sleep, StoreStep
from polite_transport.stores.base import Store
from polite_transport.visitor import Visitor

UA = "MyBot/1.0 (+https://example.org/bot)"
ORIGIN = "http://example.org"
ROBOTS = f"{ORIGIN}/robots.txt"
PAGE = f"{ORIGIN}/page"
START = 1_700_000_000.0  # a wall clock like any; 2023-11-14 22:13:20 UTC
ANSWERED = Attempt(200)
NO_ANSWER = Reply(None, error=ConnectionRefusedError("nobody listens"))


def file(text: str, **headers: str) -> Reply:
    return Reply(
        200, {name.lower().replace("_", "-"): v for name, v in headers.items()}, text.encode()
    )


def moved(location: str | None, status: int = 302) -> Reply:
    return Reply(status, {} if location is None else {"location": location})


def closed(status: int = 503, **headers: str) -> Reply:
    return Reply(status, {name.lower().replace("_", "-"): v for name, v in headers.items()})


FORBIDS = file("User-agent: *\nDisallow: /private\n")
ALLOWS = file("User-agent: *\nDisallow:\n")


class Fetched(NamedTuple):
    """A request for robots.txt that was made. at: seconds since the start."""

    at: float
    url: str
    step: Fetch


class Clockwork:
    """The virtual clock, the script of the network, and a store.

    script: by URL, one answer for always, or one after the other, the last one for always.
    """

    def __init__(
        self, script: Mapping[str, Reply | Sequence[Reply]] | Reply | Sequence[Reply] = FORBIDS
    ) -> None:
        by_url = script if isinstance(script, Mapping) else {ROBOTS: script}
        self.script = {
            url: [answers] if isinstance(answers, Reply) else list(answers)
            for url, answers in by_url.items()
        }
        self.passed = 0.0
        self.fetches: list[Fetched] = []
        self.steps: list[Any] = []
        self.store: Store = MemoryStore(clock=lambda: self.passed, wall=lambda: START + self.passed)

    def run(self, flow: Flow[Any]) -> Any:
        """Go through a flow; a wait for another would be for ever here, and is an error."""
        answer: Any = None
        try:
            step = next(flow)
            while True:
                self.steps.append(step)
                try:
                    answer = self._perform(step)
                except Exception as error:  # noqa: BLE001 - as a driver does
                    step = flow.throw(error)
                else:
                    step = flow.send(answer)
        except StopIteration as end:
            return end.value

    def _perform(self, step: Any) -> Any:
        if isinstance(step, StoreStep):
            return step.perform(self.store)
        if isinstance(step, Sleep):
            self.passed += step.seconds
            return step.seconds
        if isinstance(step, Fetch):
            self.fetches.append(Fetched(self.passed, step.target.url, step))
            answers = self.script[step.target.url]
            reply = answers.pop(0) if len(answers) > 1 else answers[0]
            self.passed += reply.elapsed
            return reply
        raise TypeError(f"{type(step).__name__} has no end here")

    def call(self, url: str = PAGE, policy: Policy | None = None, ua: str = UA) -> Call:
        call = Visitor(None, policy or Policy(), self.store).call("GET", url, ua)
        assert isinstance(call, Call)
        return call

    def check(self, url: str = PAGE, policy: Policy | None = None, ua: str = UA) -> Decision:
        """Return the decision about a request, or raise the refusal."""
        call = self.call(url, policy, ua)
        self.run(check(call))
        return call.decision

    def send(
        self, url: str = PAGE, policy: Policy | None = None, ends: Attempt = ANSWERED
    ) -> float:
        """Check a request and send it; return when it was sent, in seconds since the start."""
        call = self.call(url, policy)
        self.run(check(call))
        self.run(enter(call))
        sent = self.passed
        self.run(leave(call, ends))
        return sent

    @property
    def asked(self) -> list[str]:
        """The URLs of robots.txt that were asked for."""
        return [each.url for each in self.fetches]
