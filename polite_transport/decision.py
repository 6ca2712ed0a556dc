"""The verdict on one request, and everything one needs to know to prove it; pure."""

import enum
from dataclasses import dataclass
from datetime import UTC, datetime

from polite_transport.policy import Policy
from polite_transport.robots import Group, Record, Rule
from polite_transport.robots.access import Access, Copy
from polite_transport.robots.verdict import printable, shown
from polite_transport.url import Target

LONGEST_SHOWN = 500  # characters of a URL in a sentence


class Reason(enum.Enum):
    """Why a request may be sent, or may not."""

    RULE = "a rule matches"
    NO_RULE = "no rule matches"
    NO_GROUP = "no group is meant for us"
    ROBOTS_TXT = "robots.txt itself is always allowed"
    UNAVAILABLE = "there is no robots.txt"
    FORBIDDEN = "robots.txt is forbidden to us"
    HTML = "robots.txt is a web page"
    UNREACHABLE = "robots.txt is unreachable"
    NO_ANSWER = "robots.txt gave no answer, and the policy takes that for no rules"
    EXEMPT = "its host is one that is left alone (exempt_hosts=, hosts=)"
    NOT_ASKED = "the policy does not ask for robots.txt"
    NOT_YET = "robots.txt has not been read yet"
    NOT_HTTP = "robots.txt speaks of http and https only"
    INVALID_URL = "its URL names no host that could be asked for robots.txt"
    ASSUMED = "a test assumes that everything is allowed"


@dataclass(slots=True, kw_only=True)
class Decision:
    """What was decided about one request, and on what grounds.

    url: without userinfo and fragment.
    method: of the request; all are treated alike.
    allowed: what robots.txt says. With ``Policy(obey_disallow=False)`` a request is sent even so.
    reason: why.
    rule, group: what decided, in the site's words; None where nothing matched.
    product_token, user_agent: who we said we are; both empty where no User-Agent is sent.
    robots_url, robots_status: what was asked, and the HTTP status of its answer.
    robots_fetched_at: wall clock, seconds since the epoch, of the copy that was obeyed.
    robots_digest: SHA-256 of the file obeyed, hexadecimal; None where there is no file.
    robots_redirected_to: the URL that the answer came from, and the line of a rule stands in, where
        robots_url redirects.
    robots_note: where no rule counts, what is odd about the answer or the file, for people.
    delay: seconds in force between our requests to this host, as far as this request binds them.
    delay_record: the Crawl-delay or Request-rate that they come from, value as written; None where
        they are the policy's min_delay.
    waited: seconds that the request waited for its turn; filled in when it is sent.
    """

    url: str
    method: str
    allowed: bool
    reason: Reason
    product_token: str
    user_agent: str
    rule: Rule | None = None
    group: Group | None = None
    robots_url: str | None = None
    robots_status: int | None = None
    robots_fetched_at: float | None = None
    robots_digest: str | None = None
    robots_redirected_to: str | None = None
    robots_note: str | None = None
    delay: float = 0.0
    delay_record: Record | None = None
    waited: float = 0.0

    def __str__(self) -> str:
        """One sentence a person can act on."""
        verdict = "allowed" if self.allowed else "disallowed"
        who = printable(self.product_token) or "a client that names no product token"
        return f"{printable(self.url, LONGEST_SHOWN)} is {verdict} for {who}: {self._grounds()}"

    def _grounds(self) -> str:
        file = self.robots_file
        if self.reason is Reason.RULE and self.rule is not None:
            return f"line {self.rule.line} of {file} says '{self.rule}', in {self.group}"
        if self.reason is Reason.NO_RULE:
            return f"no rule of {file} matches in {self.group}"
        odd = f" ({printable(self.robots_note)})" if self.robots_note else ""
        if self.reason is Reason.NO_GROUP:
            return f"{file} has no group for it{odd}"
        if self.reason is Reason.UNREACHABLE and self.allowed:
            return (
                f"{file} answered {self.robots_status}{odd}, and the policy takes that for no rules"
            )
        if self.reason in _STATUS_REASONS:
            return f"{file} answered {self.robots_status}{odd}{_STATUS_REASONS[self.reason]}"
        return str(self.reason.value)

    @property
    def robots_file(self) -> str:
        """The file that lines stand in, by URL, for a sentence."""
        return cited(self.robots_url or "robots.txt", self.robots_redirected_to)

    @property
    def delay_grounds(self) -> str:
        """Who asks for the delay, for a sentence: the line of robots.txt, or the policy."""
        record = self.delay_record
        if record is None:
            return f"Policy(min_delay={self.delay:g}) keeps requests to its host apart"
        of_group = self.group is not None and record.line > min(self.group.lines)
        where = f"in {self.group}" if of_group else "above all groups"
        return f"line {record.line} of {self.robots_file} says '{shown(record)}', {where}"

    @property
    def fetched(self) -> datetime | None:
        """``robots_fetched_at`` as an aware datetime."""
        if self.robots_fetched_at is None:
            return None
        return datetime.fromtimestamp(self.robots_fetched_at, UTC)


def cited(robots_url: str, redirected_to: str | None) -> str:
    """Return the URL of a robots.txt for a sentence: the one that the lines stand in."""
    asked = printable(robots_url, LONGEST_SHOWN)
    if redirected_to is None:
        return asked
    return f"{printable(redirected_to, LONGEST_SHOWN)} (to which {asked} redirects)"


_STATUS_REASONS = {
    Reason.UNAVAILABLE: ", so that there are no rules (RFC 9309 section 2.3.1.3)",
    Reason.FORBIDDEN: ", and the policy takes that for a no",
    Reason.HTML: " with a web page instead of rules",
    Reason.UNREACHABLE: ", and until it is readable again everything counts as disallowed "
    "(RFC 9309 section 2.3.1.4)",
}


def decide(
    copy: Copy | None,
    target: Target,
    *,
    method: str,
    user_agent: str,
    product_token: str,
    policy: Policy,
) -> Decision:
    """Return the decision about one request: a pure function of copy, request and policy.

    copy: None where the policy does not ask for robots.txt.
    """
    decision = Decision(
        url=target.url,
        method=method,
        allowed=True,
        reason=Reason.NOT_ASKED,
        product_token=product_token,
        user_agent=user_agent,
        delay=policy.min_delay,
    )
    if copy is None:
        return decision
    decision.robots_url = copy.robots_url
    decision.robots_status = copy.status
    decision.robots_fetched_at = copy.fetched_at
    decision.robots_digest = copy.digest
    decision.robots_redirected_to = copy.redirected_to
    if policy.obey_crawl_delay and copy.asked_delay > policy.min_delay:
        decision.delay = copy.asked_delay
        decision.delay_record = copy.delay_record
    if copy.access is Access.FILE and not copy.is_html:
        verdict = copy.robots.check(target.url, product_token)
        decision.allowed = verdict.allowed
        decision.rule = verdict.rule
        decision.group = verdict.group
        if verdict.rule is not None:
            decision.reason = Reason.RULE
        elif verdict.group is not None:
            decision.reason = Reason.NO_RULE
        else:
            decision.reason = Reason.NO_GROUP
            decision.robots_note = copy.oddity
    else:
        decision.reason, decision.allowed = _without_rules(copy, policy)
        decision.robots_note = copy.note
    if target.path == "/robots.txt":
        decision.allowed, decision.reason = True, Reason.ROBOTS_TXT
    return decision


def _without_rules(copy: Copy, policy: Policy) -> tuple[Reason, bool]:
    """Return what holds where the site gave no rules: the rows of the policy."""
    if copy.access is Access.FILE:
        return Reason.HTML, policy.on_html == "allow"
    if copy.access is Access.UNREACHABLE:
        option = policy.on_too_many_requests if copy.status == 429 else policy.on_unreachable
        return Reason.UNREACHABLE, option == "allow"
    if copy.status in (401, 403) and policy.on_forbidden == "disallow":
        return Reason.FORBIDDEN, False
    return Reason.UNAVAILABLE, True
