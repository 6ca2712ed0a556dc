"""Who we are to a site: User-Agent, policy and store, and the calls that come of them."""

import logging
import re
from collections.abc import Collection
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any
from urllib.parse import urlsplit

from polite_transport.assumption import ASSUMED_ALLOWED
from polite_transport.decision import Decision, Reason
from polite_transport.errors import InvalidURL
from polite_transport.flow import Call
from polite_transport.options import NAMES, Takes, check_options, is_collection_of_text
from polite_transport.policy import Policy, host_names
from polite_transport.robots import product_token
from polite_transport.stores.base import Store
from polite_transport.stores.chosen import process_store
from polite_transport.url import InvalidURL as UnreadableURL
from polite_transport.url import Target, handshake_url, matches_host, presentable, target

log = logging.getLogger("polite_transport")

# Product tokens, in lower case, of what is sent where a script says nothing of itself.
_LIBRARIES = {
    *("python-requests", "python-httpx", "python-urllib", "python-urllib3", "python", "aiohttp"),
    *("scrapy", "curl", "wget", "java", "java-http-client", "go-http-client", "okhttp"),
}
_BROWSER = "Mozilla"
_CONTACT = re.compile(r"https?://|www\.|[^\s@]@[^\s@]", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Visitor:
    """What every client takes.

    user_agent: sent over whatever header a request carries; None = what it carries.
    policy: how polite to be.
    store: where turns and copies live.
    hosts: only these are checked and paced; None = all.

    Raises ValueError for a User-Agent that no header can carry, or that does not hold the
    policy's product token.
    """

    user_agent: str | None = None
    policy: Policy = field(default_factory=Policy)
    store: Store = field(default_factory=process_store)
    hosts: Collection[str] | None = None

    def __post_init__(self) -> None:
        if self.user_agent is not None:
            if not self.user_agent.strip() or not _is_header_value(self.user_agent):
                raise ValueError(
                    f"ua={self.user_agent!r} cannot be sent: a User-Agent is one line of Latin-1 "
                    "text, such as 'MyBot/1.0 (+https://example.org/bot)'"
                )
            _identify(self.user_agent, self.policy.product_token)

    def _leaves_alone(self, where: Target) -> bool:
        hosts = self.hosts
        if hosts is not None and not any(
            matches_host(name, where.host, where.origin) for name in hosts
        ):
            return True
        return bool(self.policy.exempt_hosts) and self.policy.exempts(where.host, where.origin)

    def instead_of(self, sent: str | None, url: str, *, chosen: bool) -> str | None:
        """Return the User-Agent to send instead of the one that a request carries; None = that one.

        chosen: whether the script has chosen it; if not, it is the library's own. To a host that
            is left alone the script's choice goes as it is. Where it is replaced, that is logged.
        """
        ua = self.user_agent
        if ua is None or sent == ua:
            return None
        if chosen and sent is not None:
            if self.hosts is not None or self.policy.exempt_hosts:
                try:
                    where = target(url) or target(handshake_url(url))
                except UnreadableURL:
                    where = None  # it is refused
                if where is not None and self._leaves_alone(where):
                    return None
            _say_replaced(sent, ua)
        return ua

    def call(
        self,
        method: str,
        url: str,
        user_agent: str | bytes | None,
        host: str | bytes | None = None,
    ) -> Call | Decision:
        """Return the call for one request, which is to be checked.

        user_agent, host: headers of that very request, as they will be sent; without ``host`` it
            is the URL's.

        A Decision comes back where nothing is to be checked: for other schemes than http and
        https (ws and wss open with a GET of theirs), for exempt hosts, and within
        ``testing.assume_allowed``.
        Raises url.InvalidURL, of which ``unreadable`` makes a refusal, and ValueError as above. It
        does so too where the Host header names another host than the URL: what is asked for is a
        page of the one in the header (RFC 9110 section 7.1), and robots.txt would be the other's.
        """
        if isinstance(user_agent, bytes):
            user_agent = user_agent.decode("latin-1")
        sent = user_agent or ""
        where = target(url) or target(handshake_url(url))
        if where is None:
            return _unchecked(method, url, sent, Reason.NOT_HTTP)
        if ASSUMED_ALLOWED:
            return _unchecked(method, where.url, sent, Reason.ASSUMED)
        if self._leaves_alone(where):
            return _unchecked(method, where.url, sent, Reason.EXEMPT)
        if host is not None:
            _refuse_other_host(host, where)
        policy = self.policy
        if policy.overrides:
            policy = policy.for_host(where.host, where.origin)
        token = _identify(sent, policy.product_token)
        return Call(where, method, sent, token, policy)


def visitor(
    ua: str | None,
    policy: Policy | None,
    store: Store | None,
    *,
    hosts: Collection[str] | None = None,
    exempt_hosts: Collection[str] = (),
) -> Visitor:
    """Return the visitor that a client's options make.

    store: None = this process's own, or what the environment's POLITE_STORE names.
    hosts, exempt_hosts: as for ``install``; named as in ``Policy.exempt_hosts``.

    Raises ValueError where one is of the wrong type or makes no sense, naming it.
    """
    given = {
        "ua": ua,
        "policy": policy,
        "store": store,
        "hosts": hosts,
        "exempt_hosts": exempt_hosts,
    }
    check_options(_TAKES, given.__getitem__)
    policy = policy or Policy()
    if exempt_hosts:
        exempt = host_names("exempt_hosts", exempt_hosts)
        policy = replace(policy, exempt_hosts=(*policy.exempt_hosts, *exempt))
    meant = None if hosts is None else host_names("hosts", hosts)
    return Visitor(ua, policy, process_store() if store is None else store, meant)


def _is_store(value: object) -> bool:
    verbs = ("claim", "publish", "acquire", "release")
    return not isinstance(value, type) and all(
        callable(getattr(value, verb, None)) for verb in verbs
    )


def _without_password(value: object) -> str:
    # What is given for a store may be its URL, and a query may hold a password too.
    return repr(presentable(value).partition("?")[0] if isinstance(value, str) else value)


_TAKES: dict[str, Takes] = {
    "ua": Takes(
        "text, such as 'MyBot/1.0 (+https://example.org/bot)'",
        lambda value: isinstance(value, str),
    ).or_none(),
    "policy": Takes(
        "a Policy, such as Policy(min_delay=1)", lambda value: isinstance(value, Policy)
    ).or_none(),
    "store": Takes(
        "a store, such as SQLiteStore(path) or RedisStore(url) (a URL alone goes into the "
        "environment's POLITE_STORE)",
        _is_store,
        _without_password,
    ).or_none(),
    "hosts": Takes(
        "a collection of one host name or more, such as ['example.org']; leave it out where all "
        "hosts are meant",
        lambda value: value is None or (is_collection_of_text(value) and len(value) > 0),
    ),
    "exempt_hosts": NAMES,
}


def way(*, verified: bool, proxy: str | None, stranger: object = None) -> str:
    """Name the way to a site where not everyone should rely on what comes along it.

    verified: whether TLS certificates are checked. proxy: URL of one that is gone through.
    stranger: what opens the connections, where it may do anything with them; its class, or itself
        where it is a class or function, is named too.

    A copy of robots.txt that was read on one way is not handed to those who go another.
    """
    named = [] if verified else ["unverified"]
    if proxy:
        named.append(f"proxy {_place(proxy)}")
    if stranger is not None:
        kind: Any = stranger if hasattr(stranger, "__qualname__") else type(stranger)
        named.append(f"{kind.__module__}.{kind.__qualname__}")
    return " ".join(named)


@lru_cache(maxsize=1024)
def _place(proxy: str) -> str:
    """Return a proxy's host and port, however its URL is spelt: clients that share it share copies.

    Its password stays out of shared stores.
    """
    bare = proxy.rpartition("@")[2]
    try:
        parts = urlsplit(proxy if "://" in proxy else f"http://{proxy}")
        port = parts.port or _PROXY_PORTS.get(parts.scheme, 80)
    except ValueError:
        return bare
    return f"{parts.hostname}:{port}" if parts.hostname else bare


_PROXY_PORTS = {"https": 443, "socks4": 1080, "socks4a": 1080, "socks5": 1080, "socks5h": 1080}


def verifies(context: object) -> bool:
    """Whether a TLS context checks who answers. None = the client's default, which does."""
    # verify_mode alone would let pass a certificate that is good, but another host's.
    return context is None or all(
        getattr(context, each, False) for each in ("verify_mode", "check_hostname")
    )


def unreadable(
    error: UnreadableURL, method: str, url: str, user_agent: str | bytes | None
) -> InvalidURL:
    """Return the refusal of a request whose URL cannot be read; the rest is as for ``call``."""
    if isinstance(user_agent, bytes):
        user_agent = user_agent.decode("latin-1")
    decision = _unchecked(method, url, user_agent or "", Reason.INVALID_URL)
    return InvalidURL(replace(decision, allowed=False), str(error))


def _unchecked(method: str, url: str, user_agent: str, reason: Reason) -> Decision:
    return Decision(
        url=presentable(url),
        method=method,
        allowed=True,
        reason=reason,
        product_token=product_token(user_agent),
        user_agent=user_agent,
    )


def _refuse_other_host(host: str | bytes, where: Target) -> None:
    """Raise url.InvalidURL where a Host header names another host than the URL."""
    name = host.decode("latin-1") if isinstance(host, bytes) else host
    scheme, _, place = where.origin.partition("://")
    if name == place:
        return
    try:
        named = target(f"{scheme}://{name.strip()}")
    except UnreadableURL:
        named = None
    if named is None or named.origin != where.origin:
        raise UnreadableURL(
            f"its Host header {presentable(name)!r} names another host than it goes to, so that "
            f"the robots.txt of {place} does not speak for it: put the name into the URL (an "
            "address of one's choice belongs where connections are opened)"
        )


def _is_header_value(text: str) -> bool:
    return text.isprintable() and all(ord(each) < 256 for each in text)


@lru_cache(maxsize=1024)
def _identify(user_agent: str, named: str | None) -> str:
    """Return the product token of a User-Agent, and say once what a site would miss in it.

    named: Policy.product_token.
    Source: RFC 9309 section 2.2.1.
    """
    if named is not None and named.lower() not in user_agent.lower():
        raise ValueError(
            f"Policy(product_token={named!r}) does not occur in the User-Agent that is sent, "
            f"{user_agent!r}: the site could not tell whom its rules are for "
            "(RFC 9309 section 2.2.1)"
        )
    token = named if named is not None else product_token(user_agent)
    if token.lower() in _LIBRARIES:
        log.warning(
            "the User-Agent %r names a library and not a robot: a site owner cannot tell who you "
            "are. Set ua='YourBot/1.0 (+https://your.site/bot)'.",
            user_agent,
        )
    elif not _CONTACT.search(user_agent):
        log.warning(
            "the User-Agent %r names no contact: add a page or a mail address where a site owner "
            "can reach you, such as 'YourBot/1.0 (+https://your.site/bot)'.",
            user_agent,
        )
    elif token == _BROWSER and named is None:
        log.warning(
            "the User-Agent %r is a robot's, and yet its product token is 'Mozilla', so that rules "
            "for its own name go unseen: write 'Mozilla/5.0 (compatible; YourBot/1.0; "
            "+https://your.site/bot)', or name it with Policy(product_token=...).",
            user_agent,
        )
    return token


@lru_cache(maxsize=256)
def _say_replaced(script_sets: str, ua: str) -> None:
    log.warning("the script sets the User-Agent %r; %r is sent instead (ua=)", script_sets, ua)
