"""A crawler that keeps everything: robots.txt by PoliteSession, nofollow by its own few lines."""

import sys
from html.parser import HTMLParser
from urllib.parse import urljoin

from polite_transport import PoliteError, PoliteSession


class Links(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.links: list[str] = []
        self.nofollow = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = dict(attrs)
        if tag == "meta" and values.get("name") == "robots":
            self.nofollow |= "nofollow" in (values.get("content") or "")
        if tag == "a" and "nofollow" not in (values.get("rel") or ""):
            self.links.append(values.get("href") or "")


session = PoliteSession(ua="PerfectBot/1.0 (+https://example.org/bot)")
todo, seen = [sys.argv[1]], set()
while todo:
    url = todo.pop(0)
    if url in seen:
        continue
    seen.add(url)
    try:
        response = session.get(url)
    except PoliteError:
        continue
    if response.status_code == 503:
        seen.discard(url)
        todo.append(url)
        continue
    page = Links()
    page.feed(response.text)
    if not page.nofollow and "nofollow" not in response.headers.get("X-Robots-Tag", ""):
        todo += [urljoin(response.url, link) for link in page.links]
