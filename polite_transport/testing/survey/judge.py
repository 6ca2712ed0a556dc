"""From the site's log to the table of the survey; pure."""

import enum
from dataclasses import dataclass
from itertools import pairwise

from polite_transport.testing.survey import pages
from polite_transport.testing.survey.asked import Asked
from polite_transport.testing.values import Arrival


class Verdict(enum.Enum):
    """What the log shows of one question."""

    KEPT = "kept"
    NOT_KEPT = "not kept"
    NOT_EXERCISED = "not exercised"
    NOT_ASKED = "not asked"  # by the robots.txt of the run


@dataclass(frozen=True, slots=True)
class Row:
    """One question, its answer, and the arrivals that show it."""

    question: str
    verdict: Verdict
    shown: str
    arrivals: tuple[Arrival, ...] = ()


@dataclass(frozen=True, slots=True)
class Run:
    """One run of the crawler: which robots.txt the site had, what it asks, and what arrived."""

    name: str
    robots: str
    asked: Asked
    log: tuple[Arrival, ...]
    exit_code: int | None = None
    timed_out: bool = False

    def paths(self) -> list[str]:
        """Return the paths asked for, in order, without robots.txt."""
        return [each.target.partition("?")[0] for each in self.visits()]

    def visits(self) -> tuple[Arrival, ...]:
        """Return the arrivals that are not for robots.txt."""
        return tuple(each for each in self.log if each.target != "/robots.txt")

    def at(self, path: str) -> tuple[Arrival, ...]:
        """Return the arrivals at one path, or below it where it ends in a slash."""
        return tuple(
            each
            for each in self.visits()
            if each.target == path or (path.endswith("/") and each.target.startswith(path))
        )


def judge(for_all: Run, for_one: Run | None, unreachable: Run, pause: int) -> tuple[Row, ...]:
    """Return the table.

    for_all: the run with a group for ``*``, or with a robots.txt of somebody's own. for_one: with a
        group for the crawler's own name; None where no name was given. unreachable: with a
        robots.txt that answers 503.
    pause: the Retry-After of the busy page, in seconds.
    """
    return (
        _robots_first(for_all),
        _disallow(for_all, f"Disallow, in the {for_all.name}"),
        _own_group(for_one),
        _allow_and_wildcards(for_all),
        _crawl_delay(for_all),
        _redirect(for_all),
        _never(
            for_all,
            "nofollow in the page's head",
            pages.META,
            pages.META_ONLY,
            "followed its links",
            "followed no link of it",
        ),
        _never(
            for_all,
            'rel="nofollow" on a link',
            pages.REL,
            pages.REL_ONLY,
            "followed the link",
            "did not follow the link",
        ),
        _never(
            for_all,
            "X-Robots-Tag: nofollow",
            pages.HEADER,
            pages.HEADER_ONLY,
            "followed its links",
            "followed no link of it",
        ),
        _retry_after(for_all, pause),
        _unreachable(unreachable),
    )


def _robots_first(run: Run) -> Row:
    question = "robots.txt before the first page"
    if not run.log:
        return Row(question, Verdict.NOT_EXERCISED, "nothing was asked for")
    first = run.log[0]
    robots = [each for each in run.log if each.target == "/robots.txt"]
    if first.target == "/robots.txt":
        return Row(question, Verdict.KEPT, "asked for first", (first,))
    if not robots:
        return Row(question, Verdict.NOT_KEPT, "never asked for", (first,))
    return Row(question, Verdict.NOT_KEPT, f"{first.target} came before it", (first, robots[0]))


def _followed_links(run: Run) -> bool:
    """Whether the crawler went from the start page to any other: else it shows nothing."""
    return any(path not in ("/", "") for path in run.paths())


def _disallow(run: Run, question: str) -> Row:
    # What only the redirect or a pattern's $ tells from its neighbour is asked elsewhere.
    elsewhere = {pages.MOVED_TO, *((pages.HIDDEN,) if _has_wildcard(run) else ())}
    closed = [page for page in ("/", *pages.LINKED) if run.asked.forbids(page)]
    left = [page for page in closed if page not in elsewhere]
    if not left:
        return Row(question, Verdict.NOT_ASKED, "no page that links lead to is disallowed")
    wrong = tuple(
        each
        for each in run.visits()
        if run.asked.forbids(each.target) and each.target not in elsewhere
    )
    if wrong:
        return Row(question, Verdict.NOT_KEPT, f"went to {wrong[0].target}", wrong)
    if left[0] == "/" and run.log:
        return Row(question, Verdict.KEPT, "stayed out", run.log)
    if not _followed_links(run):
        return Row(question, Verdict.NOT_EXERCISED, "no link was followed", run.visits())
    return Row(question, Verdict.KEPT, f"{', '.join(left)}: left alone")


def _has_allow(run: Run) -> bool:
    """Whether a folder is allowed within one that is not."""
    opened, beside = f"{pages.OPENED}index.html", f"{pages.PRIVATE}index.html"
    return run.asked.forbids(beside) and not run.asked.forbids(opened)


def _has_wildcard(run: Run) -> bool:
    """Whether a page is forbidden, and another is not whose name only goes on further."""
    return run.asked.forbids(pages.HIDDEN) and not run.asked.forbids(pages.NOT_HIDDEN)


def _own_group(run: Run | None) -> Row:
    question = "the group for its own name"
    if run is None:
        return Row(question, Verdict.NOT_EXERCISED, "no --token was given")
    row = _disallow(run, question)
    if row.verdict is Verdict.NOT_EXERCISED and run.log:
        return Row(question, Verdict.NOT_KEPT, "kept the group for * instead of its own", run.log)
    return row


def _allow_and_wildcards(run: Run) -> Row:
    question = "Allow and wildcards"
    wildcard = _has_wildcard(run)
    wanted = [*([pages.OPENED] if _has_allow(run) else []), *([pages.NOT_HIDDEN] * wildcard)]
    if not wanted:
        return Row(question, Verdict.NOT_ASKED, "nothing is allowed beside what is disallowed")
    wrong = run.at(pages.HIDDEN) if wildcard else ()
    if wrong:
        return Row(question, Verdict.NOT_KEPT, f"went to {pages.HIDDEN}", wrong)
    if not _followed_links(run):
        return Row(question, Verdict.NOT_EXERCISED, "no link was followed")
    missed = [path for path in wanted if not run.at(path)]
    if missed:
        return Row(question, Verdict.NOT_KEPT, f"did not go to {missed[0]}, which is allowed")
    right = tuple(each for path in wanted for each in run.at(path))
    return Row(question, Verdict.KEPT, "went where Allow and $ let it, and nowhere else", right)


def _crawl_delay(run: Run) -> Row:
    delay = run.asked.delay
    if not delay:
        return Row("Crawl-delay", Verdict.NOT_ASKED, "no delay is asked for")
    question = f"Crawl-delay: {delay:g}"
    pairs = [(later.time - earlier.time, earlier, later) for earlier, later in pairwise(run.log)]
    if not pairs:
        return Row(question, Verdict.NOT_EXERCISED, "fewer than two requests")
    smallest, earlier, later = min(pairs, key=lambda pair: pair[0])
    mean = sum(pair[0] for pair in pairs) / len(pairs)
    verdict = Verdict.KEPT if smallest >= delay else Verdict.NOT_KEPT
    shown = f"smallest gap {smallest:.3f} s, mean {mean:.3f} s, {delay:g} s asked for"
    return Row(question, verdict, shown, (earlier, later))


def _redirect(run: Run) -> Row:
    question = "redirect into a disallowed path"
    if not run.asked.forbids(pages.MOVED_TO):
        return Row(question, Verdict.NOT_ASKED, f"{pages.MOVED_TO} is allowed")
    return _never(run, question, pages.MOVED, pages.MOVED_TO, "followed it", "stopped there")


def _never(run: Run, question: str, page: str, target: str, wrong: str, right: str) -> Row:
    """Judge a page that was seen, and whose one link or target must not be."""
    seen, followed = run.at(page), run.at(target)
    if followed:
        return Row(question, Verdict.NOT_KEPT, wrong, seen + followed)
    if not seen:
        return Row(question, Verdict.NOT_EXERCISED, f"did not come to {page}")
    return Row(question, Verdict.KEPT, right, seen)


def _retry_after(run: Run, pause: int) -> Row:
    question = f"Retry-After: {pause}"
    busy = run.at(pages.BUSY)
    if not busy:
        return Row(question, Verdict.NOT_EXERCISED, f"did not come to {pages.BUSY}")
    after = [each for each in run.log if each.time > busy[0].time]
    if not after:
        return Row(question, Verdict.NOT_EXERCISED, "no request came after it", busy)
    gap = after[0].time - busy[0].time
    if gap >= pause and run.asked.delay >= pause:
        return Row(question, Verdict.NOT_EXERCISED, "the Crawl-delay alone keeps it", busy)
    verdict = Verdict.KEPT if gap >= pause else Verdict.NOT_KEPT
    return Row(question, verdict, f"the next request came {gap:.3f} s later", (busy[0], after[0]))


def _unreachable(run: Run) -> Row:
    question = "robots.txt answers 503"
    if not run.log:
        return Row(question, Verdict.NOT_EXERCISED, "nothing was asked for")
    visits = run.visits()
    if visits:
        return Row(question, Verdict.NOT_KEPT, f"went to {visits[0].target} all the same", visits)
    return Row(question, Verdict.KEPT, "stayed out", run.log)
