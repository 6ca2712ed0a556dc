"""A small crawler of one site, breadth first, that keeps all that the site asks of robots.

    python examples/crawler.py https://example.org/ --ua "MyBot/1.0 (+https://example.org/bot)"

It writes a JSON line a page, and goes on where it stopped when it is started again: each line
holds the page's links, so that the file itself says what is still to do. Needs the extras
``html`` (links) and ``cli`` (the progress line).
"""

import argparse
import contextlib
import json
from collections import deque
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urljoin
from xml.etree import ElementTree as ET

import anyio
import httpx
from rich.console import Console
from rich.progress import MofNCompleteColumn, Progress, TextColumn

from polite_transport import (
    AsyncPoliteTransport,
    DisallowedByRobots,
    PoliteError,
    parse_robots,
)
from polite_transport.page import followable_links, page_directives

SAID = Console(stderr=True)


class Frontier:
    """The pages still to visit, and those that are known; rebuilt from what is written already."""

    def __init__(self, start: str, written: Path) -> None:
        self.origin = urljoin(start, "/")
        self._known: set[str] = set()
        self._todo: deque[str] = deque()
        visited: set[str] = set()
        for page in lines_of(written):
            self.add(page["links"])
            if "for_now" not in page:
                visited.add(page["url"])
        self.add([start])
        self._todo = deque(url for url in self._todo if url not in visited)
        self._known |= visited
        self.visited = len(visited)

    def add(self, urls: list[str]) -> None:
        """Take pages of this site in that are not known yet."""
        for url in urls:
            if url.startswith(self.origin) and url not in self._known:
                self._known.add(url)
                self._todo.append(url)

    def __iter__(self) -> Iterator[str]:
        while self._todo:
            yield self._todo.popleft()

    def __len__(self) -> int:
        return len(self._known)


def lines_of(written: Path) -> Iterator[dict[str, Any]]:
    """Give the pages written so far; a last line that a crash cut off is left out."""
    if written.exists():
        for line in written.read_text(encoding="utf-8").splitlines():
            with contextlib.suppress(json.JSONDecodeError):
                yield json.loads(line)


async def crawl(start: str, ua: str, out: Path) -> None:
    """Visit every page that may be visited."""
    frontier = Frontier(start, out)
    transport = AsyncPoliteTransport(ua=ua)
    columns = (TextColumn("{task.description}"), MofNCompleteColumn())
    async with httpx.AsyncClient(transport=transport, follow_redirects=True) as client:
        frontier.add(await pages_of_sitemaps(client, frontier.origin))
        with out.open("a", encoding="utf-8") as file, Progress(*columns, console=SAID) as progress:
            task = progress.add_task("pages", completed=frontier.visited, total=len(frontier))
            for url in frontier:
                page = await visit(client, url)
                frontier.add(page["links"])
                file.write(json.dumps(page) + "\n")
                file.flush()
                progress.update(task, advance=1, total=len(frontier))


async def visit(client: httpx.AsyncClient, url: str) -> dict[str, Any]:
    """Return what is to be written of one page.

    A refused one has the reason, and no links. What was only refused for now is tried again when
    the crawler is started again.
    """
    page: dict[str, Any] = {"url": url, "links": []}
    try:
        response = await client.get(url)
    except DisallowedByRobots as refusal:
        return {**page, "refused": str(refusal)}
    except (PoliteError, httpx.HTTPError) as problem:
        return {**page, "for_now": str(problem) or repr(problem)}
    page |= {"status": response.status_code, "landed": str(response.url)}
    if response.is_success and "html" in response.headers.get("content-type", ""):
        page["noindex"] = page_directives(response).find("noindex") is not None
        page["links"] = [link.url for link in followable_links(response)]
    return page


async def pages_of_sitemaps(client: httpx.AsyncClient, origin: str) -> list[str]:
    """Return the pages that the sitemaps named in robots.txt list."""
    pages: list[str] = []
    with contextlib.suppress(PoliteError, httpx.HTTPError):
        robots = parse_robots((await client.get(urljoin(origin, "/robots.txt"))).content)
        for sitemap in robots.sitemaps:
            with contextlib.suppress(PoliteError, httpx.HTTPError, ET.ParseError):
                tree = ET.fromstring((await client.get(sitemap)).content)  # noqa: S314 - expat bounds it
                pages += [each.text.strip() for each in tree.iterfind(".//{*}loc") if each.text]
    return pages


def main() -> None:
    """Read the command line and crawl; Ctrl-C stops between two requests and loses nothing."""
    parser = argparse.ArgumentParser(description="Crawl one site, politely.")
    parser.add_argument("url", help="where to begin; only this site is visited")
    parser.add_argument("--ua", required=True, help="who you are, with a page or mail address")
    parser.add_argument("--out", type=Path, default=Path("pages.jsonl"), help="a JSON line a page")
    given = parser.parse_args()
    try:
        anyio.run(crawl, given.url, given.ua, given.out)
    except KeyboardInterrupt:
        SAID.print(f"Stopped. Start it again to go on: {given.out} says what is done.")
        raise SystemExit(130) from None


if __name__ == "__main__":
    main()
