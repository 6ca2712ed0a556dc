"""What the survey's site shows a crawler, and what its robots.txt asks, run by run."""

import math

from polite_transport.testing.site import Site
from polite_transport.testing.survey.asked import Asked
from polite_transport.testing.values import Answer

PRIVATE = "/testdir2/"
OPENED = "/testdir2/open/"
HIDDEN = "/files/notes.secret"  # disallowed by a wildcard pattern
NOT_HIDDEN = "/files/notes.secret.html"  # and this by none, because of its $
MOVED = "/moved.html"
MOVED_TO = "/testdir2/moved.html"
META = "/meta.html"
META_ONLY = "/only-from-meta.html"
REL = "/rel.html"
REL_ONLY = "/only-from-rel.html"
HEADER = "/header.html"
HEADER_ONLY = "/only-from-header.html"
BUSY = "/busy.html"
LINKED = (  # from the start page, in this order
    "/page1.html",
    f"{PRIVATE}index.html",
    f"{OPENED}index.html",
    HIDDEN,
    NOT_HIDDEN,
    MOVED,
    META,
    REL,
    HEADER,
    BUSY,
    "/page2.html",
)


def robots_for_all(delay: float) -> str:
    """Return the robots.txt of the first run: every robot is meant."""
    return (
        "User-agent: *\n"
        f"Disallow: {PRIVATE}\n"
        f"Allow: {OPENED}\n"
        "Disallow: /*.secret$\n"
        f"Crawl-delay: {delay:g}\n"
    )


def robots_for_one(token: str, delay: float) -> str:
    """Return the robots.txt of the second run: its own group lets this robot in, ``*`` nobody."""
    return (
        "User-agent: *\n"
        "Disallow: /\n"
        "\n"
        f"User-agent: {token}\n"
        f"Disallow: {PRIVATE}\n"
        f"Crawl-delay: {delay:g}\n"
    )


def asked_of_all(delay: float) -> Asked:
    """Return what ``robots_for_all`` asks."""

    def forbids(target: str) -> bool:
        closed = target.startswith(PRIVATE) or target.endswith(".secret")
        return closed and not target.startswith(OPENED)  # the longest pattern decides

    return Asked(forbids, delay)


def asked_of_one(delay: float) -> Asked:
    """Return what ``robots_for_one`` asks of the one that it names."""
    return Asked(lambda target: target.startswith(PRIVATE), delay)


def busy_pause(delay: float) -> int:
    """Return the seconds that the busy page asks for: more than the Crawl-delay, to show."""
    return math.ceil(delay) + 2


def fill(site: Site, pause: int) -> None:
    """Put the survey's pages on a site. pause: what the busy page asks for, in seconds."""
    site.serve("/", _page("Start", *LINKED))
    for path in (
        "/page1.html",
        "/page2.html",
        f"{PRIVATE}index.html",
        f"{OPENED}index.html",
        HIDDEN,
        NOT_HIDDEN,
        MOVED_TO,
        META_ONLY,
        REL_ONLY,
        HEADER_ONLY,
    ):
        site.serve(path, _page(path, "/"))
    site.serve(MOVED, Answer(status=302, headers={"Location": MOVED_TO}))
    site.serve(META, _page("Meta", META_ONLY, head='<meta name="robots" content="nofollow">'))
    site.serve(REL, _page("Rel", f'{REL_ONLY}" rel="nofollow', "/page1.html"))
    site.serve(HEADER, _page("Header", HEADER_ONLY, headers={"X-Robots-Tag": "nofollow"}))
    site.serve(
        BUSY,
        [
            Answer(status=503, headers={"Retry-After": str(pause)}, body=b"busy"),
            _page("No longer busy", "/"),
        ],
    )


def _page(title: str, *links: str, head: str = "", headers: dict[str, str] | None = None) -> Answer:
    listed = "\n".join(
        f'<li><a href="{link}">{link.partition(chr(34))[0]}</a></li>' for link in links
    )
    body = (
        f"<!doctype html>\n<html><head><title>{title}</title>{head}</head>\n"
        f"<body><h1>{title}</h1><ul>\n{listed}\n</ul></body></html>\n"
    )
    return Answer(
        body=body.encode(), headers={"Content-Type": "text/html; charset=utf-8", **(headers or {})}
    )
