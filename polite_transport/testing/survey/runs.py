"""Running a crawler against the survey's site."""

import shlex
import subprocess
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from polite_transport.testing.site import Site
from polite_transport.testing.survey import pages
from polite_transport.testing.survey.judge import Row, Run, Verdict, judge
from polite_transport.testing.values import Answer

Say = Callable[[str, int, float], None]  # the run's name, arrivals so far, seconds so far


@dataclass(frozen=True, slots=True)
class Survey:
    """What a survey came to.

    command: as it was given. delay: the Crawl-delay asked for, in seconds.
    """

    command: str
    delay: float
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
    robots: what to serve in the first run instead of the survey's own robots.txt.
    limit: seconds that one run may take; what arrived until then counts.
    say: told how a run goes on, some times a second.

    Raises OSError where the command cannot be started.
    """
    for_all = _run(
        "group for *", robots or pages.robots_for_all(delay), None, command, delay, limit, say
    )
    for_one = None
    if token is not None:
        own = pages.robots_for_one(token, delay)
        for_one = _run(f"group for {token}", own, None, command, delay, limit, say)
    down = Answer(status=503, body=b"down", headers={"Content-Type": "text/plain"})
    unreachable = _run("robots.txt answers 503", "", down, command, delay, limit, say)
    runs = tuple(run for run in (for_all, for_one, unreachable) if run is not None)
    return Survey(shlex.join(command), delay, runs, judge(for_all, for_one, unreachable, delay))


def _run(
    name: str,
    robots: str,
    answer: Answer | None,
    command: Sequence[str],
    delay: float,
    limit: float,
    say: Say | None,
) -> Run:
    with Site(robots if answer is None else answer) as site:
        pages.fill(site, delay)
        arguments = [part.replace("{url}", site.url("/")) for part in command]
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
                    if say is not None:
                        say(name, len(site.log), took)
                    if took > limit:
                        timed_out = True
                        crawler.kill()
        return Run(name, robots, site.log, crawler.returncode, timed_out)
