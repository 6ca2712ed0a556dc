"""Running a crawler against the survey's site."""

import shlex
import subprocess
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from polite_transport.testing.site import Site
from polite_transport.testing.survey import pages
from polite_transport.testing.survey.asked import Asked, asked_by
from polite_transport.testing.survey.judge import Row, Run, Verdict, judge
from polite_transport.testing.values import Answer, Arrival

Say = Callable[[str, int, float], None]  # the run's name, arrivals so far, seconds so far


@dataclass(frozen=True, slots=True)
class Survey:
    """What a survey came to.

    command: as it was given.
    """

    command: str
    runs: tuple[Run, ...]
    rows: tuple[Row, ...]

    @property
    def all_kept(self) -> bool:
        """Whether nothing was seen that was not kept."""
        return all(row.verdict is not Verdict.NOT_KEPT for row in self.rows)


def hold(
    command: Sequence[str],
    *,
    token: str | None = None,
    delay: float = 3.0,
    robots: str | None = None,
    limit: float = 300.0,
    say: Say | None = None,
) -> Survey:
    """Run a crawler two or three times against a site of its own, and judge the log.

    command: the crawler and its arguments; ``{url}`` in them is the site's start page.
    token: its product token, for a run with a group for its own name.
    delay: the Crawl-delay to ask for, seconds.
    robots: what to serve in the first run instead of the survey's own robots.txt, which is judged
        by what polite_transport's own engine reads in it.
    limit: seconds that one run may take; what arrived until then counts.
    say: told how a run goes on, some times a second.

    Raises OSError where the command cannot be started.
    """
    watch = _Watch(command, pages.busy_pause(delay), limit, say)
    if robots is None:
        asked = pages.asked_of_all(delay)
        for_all = watch.run("group for *", pages.robots_for_all(delay), lambda _: asked)
    else:
        for_all = watch.run("robots.txt given", robots, partial(asked_by, robots, token))
    for_one = None
    if token is not None:
        of_one = pages.asked_of_one(delay)
        served = pages.robots_for_one(token, delay)
        for_one = watch.run(f"group for {token}", served, lambda _: of_one)
    down = Answer(status=503, body=b"down", headers={"Content-Type": "text/plain"})
    unreachable = watch.run("robots.txt answers 503", down, lambda _: _NOTHING)
    runs = tuple(run for run in (for_all, for_one, unreachable) if run is not None)
    return Survey(shlex.join(command), runs, judge(for_all, for_one, unreachable, watch.pause))


_NOTHING = Asked(lambda _: True, 0.0)  # is allowed while robots.txt is unreachable


@dataclass(frozen=True, slots=True)
class _Watch:
    """How every run is made. pause, limit, say: as for ``pages.fill`` and ``hold``."""

    command: Sequence[str]
    pause: int
    limit: float
    say: Say | None

    def run(
        self, name: str, robots: str | Answer, asked: Callable[[Sequence[Arrival]], Asked]
    ) -> Run:
        """Run the crawler once.

        asked: what robots.txt asks of it, as far as the site's log is needed to know.
        """
        with Site(robots) as site:
            pages.fill(site, self.pause)
            arguments = [part.replace("{url}", site.url("/")) for part in self.command]
            started = time.monotonic()
            timed_out = False
            with subprocess.Popen(  # noqa: S603 - the user's own command
                arguments,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            ) as crawler:
                while True:
                    try:
                        crawler.wait(0.25)
                        break
                    except subprocess.TimeoutExpired:
                        took = time.monotonic() - started
                        if self.say is not None:
                            self.say(name, len(site.log), took)
                        if took > self.limit:
                            timed_out = True
                            crawler.kill()
            log = site.log
        text = robots if isinstance(robots, str) else ""
        return Run(name, text, asked(log), log, crawler.returncode, timed_out)
