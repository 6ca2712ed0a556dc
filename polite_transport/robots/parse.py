"""A robots.txt and the questions it answers; ``parse_robots`` takes bytes to it."""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING

from polite_transport.robots.answers import Answers, Rules
from polite_transport.robots.octets import (
    all_canonical,
    canonical_path,
    path_start,
    resolved,
    written,
)
from polite_transport.robots.pace import counts, slowest, unreadable
from polite_transport.robots.records import (
    MAX_BYTES,
    Parsed,
    Record,
    parse_lines,
    token_of,
    whole_lines,
)

if TYPE_CHECKING:
    from polite_transport.robots.pace import VisitTime
    from polite_transport.robots.signals import CleanParam, License, Signal
    from polite_transport.robots.verdict import Verdict

_NO_ORIGIN = ("none", 0)  # no URL has it: its first no letters are not "none"
_REMEMBERED = 256  # product tokens whose answers are kept; a script has one or a few


class Robots:
    """A parsed robots.txt. What it says never changes, and threads may share it.

    sitemaps: the values of its Sitemap records. cut: the body was longer than was read.
    names_nobody: it has no User-agent line, so that no rule of it counts.
    """

    # The answers are filled in as they are asked for. Two threads may work one out: no harm.
    __slots__ = (
        "_answers",
        "_origin",
        "_parsed",
        "_rules",
        "cut",
        "names_nobody",
        "sitemaps",
    )

    def __init__(self, parsed: Parsed, *, cut: bool) -> None:
        self._parsed = parsed
        self._answers: dict[str, Answers] = {}
        self._rules: dict[str, Rules] = {}
        self._origin = _NO_ORIGIN
        self.cut = cut
        self.sitemaps: tuple[str, ...] = ()
        if parsed.of_file:
            self.sitemaps = tuple(
                written(record.value) for record in parsed.of_file if record.kind == "sitemap"
            )
        self.names_nobody = not parsed.agents

    @property
    def has_rules(self) -> bool:
        """Whether one rule in it is for anyone; a page of HTML has none."""
        namings = chain.from_iterable(self._parsed.agents.values())
        return any(section.lines for _, _, section in namings)

    def check(self, url: str, product_token: str) -> Verdict:
        """Return whether ``product_token`` may fetch ``url``, and why.

        url: absolute, or path and query.
        product_token: empty where the client names none; then only the group for ``*`` can apply.
        Source: RFC 9309 section 2.2.2.
        """
        # This runs before every request. Most URLs are of one origin and have nothing to normalise.
        answers = self._answers.get(product_token)
        if answers is None:
            answers = self._answers_for(product_token)
        origin, length = self._origin
        path = url[length - 1 :] if url[:length] == origin else self._path(url)
        matcher = answers.matcher
        if (
            "%" in path
            or "#" in path
            or "/." in path
            or (matcher.tells_escapes and not all_canonical(path))
        ):
            return _check_carefully(path, answers)
        if path == "/robots.txt":
            return answers.robots_txt()
        return answers[matcher.rank(path)]

    def crawl_delay(self, product_token: str) -> float | None:
        """Return the Crawl-delay in seconds that the file asks of ``product_token``, or None."""
        return self._of(product_token).delay

    def request_rate(self, product_token: str) -> float | None:
        """Return the Request-rate for ``product_token`` in seconds per request, or None."""
        return self._of(product_token).rate

    def visit_time(self, product_token: str) -> VisitTime | None:
        """Return the part of the day in which ``product_token`` is asked to come, or None."""
        return self._of(product_token).visit

    def delay_record(self, product_token: str) -> Record | None:
        """Return the Crawl-delay or Request-rate that asks the most of ``product_token``, or None.

        Its value is as written.
        """
        found = slowest(self._of(product_token).records)
        return None if found is None else _readable([found])[0]

    def unreadable(self, product_token: str) -> tuple[Record, ...]:
        """Return the delays, rates and hours for ``product_token`` that are ignored as garbled."""
        return _readable(list(unreadable(self._of(product_token).records)))

    def signals(self, url: str, product_token: str) -> tuple[Signal, ...]:
        """Return what the file says of the use of ``url``; it never decides about access."""
        from polite_transport.robots.signals import signals_for

        path = canonical_path(url[path_start(url) :])
        return signals_for(self._of(product_token).records, path)

    def records(self, product_token: str) -> tuple[Record, ...]:
        """Return the records beyond rules that hold for ``product_token``, values as written."""
        return _readable(self._of(product_token).records)

    @property
    def file_records(self) -> tuple[Record, ...]:
        """The records that belong to no agent: Sitemap, Host, Clean-param, License."""
        return _readable(self._parsed.of_file)

    @property
    def licenses(self) -> tuple[License, ...]:
        """The licences that the file names (RSL)."""
        from polite_transport.robots.signals import licenses

        return licenses(self._parsed.of_file)

    @property
    def host(self) -> str | None:
        """The mirror that the file calls the main one, or None (Yandex, obsolete)."""
        from polite_transport.robots.signals import host

        return host(self._parsed.of_file)

    @property
    def clean_params(self) -> tuple[CleanParam, ...]:
        """The query keys that do not change a page (Yandex)."""
        from polite_transport.robots.signals import clean_params

        return clean_params(self._parsed.of_file)

    def _path(self, url: str) -> str:
        start = path_start(url)
        path = url[start:]
        if not path.startswith("/"):
            return "/" + path
        if start:
            self._origin = url[: start + 1], start + 1
        return path

    def _of(self, product_token: str) -> Answers:
        answers = self._answers.get(product_token)
        return self._answers_for(product_token) if answers is None else answers

    def _answers_for(self, product_token: str) -> Answers:
        parsed = self._parsed
        # A specific group hides the one for everyone, even where it is empty (section 2.2.1).
        asked = token_of(product_token)
        token = asked if asked and asked in parsed.agents else "*"
        records = [record for run in parsed.records.get(token, ()) for record in run]
        if parsed.leading:
            stated = {record.kind for record in records if counts(record)}
            records += [record for record in parsed.leading if record.kind not in stated]
        if len(self._answers) >= _REMEMBERED:
            self._answers.clear()
            self._rules.clear()
        rules = self._rules.get(token)
        if rules is None:
            rules = self._rules[token] = Rules(parsed.agents.get(token, ()))
        answers = self._answers[product_token] = Answers(
            rules, records, product_token, cut=self.cut
        )
        return answers


def parse_robots(body: bytes, *, max_bytes: int = MAX_BYTES) -> Robots:
    """Return what ``body``, a robots.txt, asks for. Whatever the bytes, it never raises.

    max_bytes: the rest of a longer body is not read, nor its last line where that is cut.
    Source: RFC 9309 sections 2.2 and 2.5.
    """
    kept, cut = whole_lines(body, max_bytes)
    return Robots(parse_lines(kept), cut=cut)


def _check_carefully(path: str, answers: Answers) -> Verdict:
    path = canonical_path(path)
    if path == "/robots.txt":
        return answers.robots_txt()
    rank = answers.matcher.rank
    verdict = answers[rank(path)]
    if "/." in path and verdict.allowed:
        # A server may well resolve dot segments, so what they lead to has to be open too.
        other = answers[rank(resolved(path))]
        return verdict if other.allowed else other
    return verdict


def _readable(records: list[Record]) -> tuple[Record, ...]:
    return tuple(record._replace(value=written(record.value)) for record in records)
