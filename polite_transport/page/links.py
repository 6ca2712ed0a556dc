"""``followable_links``: where a page's links lead, and why some of them are left out."""

from __future__ import annotations

import enum
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from polite_transport.page.addresses import base_of, join, sendable
from polite_transport.page.answer import Answer
from polite_transport.page.summary import PageDirectives, directives_of, token_for
from polite_transport.robots.verdict import printable
from polite_transport.url import InvalidURL, target

if TYPE_CHECKING:
    from polite_transport.page.answer import Plain
    from polite_transport.page.markup import Tag
    from polite_transport.robots import Robots

_LONGEST_SHOWN = 500  # characters of a URL in a sentence


class Checked(Protocol):
    """What a check answers: a Verdict, or a Decision."""

    @property
    def allowed(self) -> bool:
        """Whether the URL may be fetched."""
        ...


class ExcludedBy(enum.Enum):
    """What a link is left out for."""

    NOT_HTTP = "it is neither http nor https"
    INVALID = "it is no URL that can be read"
    PAGE = "the page says"
    REL = "the link says"
    ROBOTS = "robots.txt says"
    NOT_CHECKED = "it could not be checked:"


@dataclass(frozen=True, slots=True)
class Link:
    """One link of a page.

    url: absolute, without userinfo and fragment, non-ASCII text escaped; where it cannot be made,
        ``href`` as written. line: of the page, from 1. rel: its tokens in lower case.
    """

    url: str
    line: int
    rel: tuple[str, ...] = ()

    def __str__(self) -> str:
        return self.url


@dataclass(frozen=True, slots=True)
class Excluded:
    """A link that is left out, what for, and the ground in the site's words.

    ground: str() of the Directive, of the rel token, or of what the check answered or raised; empty
        where the URL itself is the reason.
    """

    link: Link
    by: ExcludedBy
    ground: str = ""

    def __str__(self) -> str:
        """One sentence a person can act on."""
        url = printable(self.link.url, _LONGEST_SHOWN)
        ground = f" {self.ground}" if self.ground else ""
        return f"{url} (line {self.link.line}) is left out: {self.by.value}{ground}"


@dataclass(frozen=True, slots=True)
class FollowableLinks:
    """The links of a page that a robot may use, in order, each URL once; iterates over them.

    excluded: those that it may not, each with its reason. A URL can stand on both sides, since
        ``nofollow`` speaks of one link and not of what it leads to.
    directives: what the page asks for besides.
    """

    links: tuple[Link, ...]
    excluded: tuple[Excluded, ...]
    directives: PageDirectives

    def __iter__(self) -> Iterator[Link]:
        return iter(self.links)

    def __len__(self) -> int:
        return len(self.links)


def followable_links(
    response: object | Plain,
    product_token: str | None = None,
    *,
    nofollow_rel: Collection[str] = ("nofollow",),
    robots: Robots | None = None,
    check: Callable[[str], Checked] | None = None,
) -> FollowableLinks:
    """Return the links of a page without those that it, they themselves or robots.txt forbid.

    response, product_token: as for ``page_directives``.
    nofollow_rel: the ``rel`` tokens that forbid; ``("nofollow", "ugc", "sponsored")`` is stricter.
    robots: the robots.txt of the page's own origin; other origins' links are not asked of it.
    check: asked of every link's URL, such as ``session.check``, which fetches the robots.txt of
        hosts that it does not know yet, or a function that asks copies of one's own. A link for
        which it raises is left out, with what it raised as the ground.

    Links are <a href> and <area href>, whatever they lead to.
    Raises MissingParser without the extra ``html``, and ValueError where ``robots`` is given and
    nobody says for which product token.
    """
    answer = Answer(response)
    token = token_for(answer, product_token)
    if robots is not None and token is None:
        raise ValueError("robots= needs product_token=: the response does not say who we are")
    directives = directives_of(answer, token or "")
    asked = _Asked(
        directives,
        frozenset(each.lower() for each in nofollow_rel),
        _checks(answer.url, robots, token or "", check),
    )
    kept: dict[str, Link] = {}
    excluded: list[Excluded] = []
    markup = answer.markup
    if markup is not None:
        base = base_of(answer.url, markup)
        for tag in markup.tags:
            href = _href(tag)
            if href is not None:
                link, problem = _link(tag, href, base, markup.codec)
                reason = Excluded(link, problem) if problem else asked.reason_against(link)
                if reason is None:
                    kept.setdefault(link.url, link)
                else:
                    excluded.append(reason)
    return FollowableLinks(tuple(kept.values()), tuple(excluded), directives)


@dataclass(slots=True)
class _Asked:
    """Everything that may speak against a link, in the order in which it is asked."""

    directives: PageDirectives
    nofollow_rel: frozenset[str]
    checks: list[Callable[[str], Checked | None]]
    answers: dict[str, tuple[ExcludedBy, str] | None] = field(
        default_factory=dict[str, "tuple[ExcludedBy, str] | None"]
    )
    page_says: str = ""

    def __post_init__(self) -> None:
        nofollow = self.directives.find("nofollow")
        self.page_says = str(nofollow) if nofollow else ""

    def reason_against(self, link: Link) -> Excluded | None:
        if self.page_says:
            return Excluded(link, ExcludedBy.PAGE, self.page_says)
        for token in link.rel:
            if token in self.nofollow_rel:
                return Excluded(link, ExcludedBy.REL, f"rel='{printable(token)}'")
        if link.url not in self.answers:
            self.answers[link.url] = self._refusal(link.url)
        refusal = self.answers[link.url]
        return None if refusal is None else Excluded(link, *refusal)

    def _refusal(self, url: str) -> tuple[ExcludedBy, str] | None:
        for check in self.checks:
            try:
                answer = check(url)
            except Exception as error:  # noqa: BLE001 - a dead link must not cost the page's others
                ground = printable(f"{type(error).__name__}: {error}", _LONGEST_SHOWN)
                return ExcludedBy.NOT_CHECKED, ground
            if answer is not None and not answer.allowed:
                return ExcludedBy.ROBOTS, str(answer)
        return None


def _checks(
    page: str, robots: Robots | None, product_token: str, check: Callable[[str], Checked] | None
) -> list[Callable[[str], Checked | None]]:
    checks: list[Callable[[str], Checked | None]] = []
    if robots is not None:
        here = target(page)

        def own(url: str) -> Checked | None:
            where = target(url)
            if here is None or where is None or where.origin != here.origin:
                return None
            return robots.check(url, product_token)

        checks.append(own)
    if check is not None:
        checks.append(check)
    return checks


def _href(tag: Tag) -> str | None:
    if tag.name not in ("a", "area"):
        return None
    return tag.attributes.get("href", tag.attributes.get("xlink:href"))  # the latter in SVG


def _link(tag: Tag, href: str, base: str, codec: str) -> tuple[Link, ExcludedBy | None]:
    rel = tuple(tag.attributes.get("rel", "").lower().replace(",", " ").split())
    joined = join(base, href)
    try:
        url = None if joined is None else sendable(joined, codec)
    except InvalidURL:
        joined, url = None, None
    if url is not None:
        return Link(url, tag.line, rel), None
    problem = ExcludedBy.INVALID if joined is None else ExcludedBy.NOT_HTTP
    return Link(href.strip(), tag.line, rel), problem
