"""Every Python block of the README and of docs/ runs.

The blocks of a page run in their order and share their names, as a reader would type them. Where
they name example.org the test's own site answers, over plain http; a file goes to the test's own
folder. Pages that show tests are run by pytest, as one file. A block that cannot run anywhere but
at the reader's has ``<!--- skip: next -->`` before it, which no page shows.
"""

import gc
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from sybil import Example, Sybil
from sybil.evaluators.python import PythonEvaluator
from sybil.parsers.markdown import CodeBlockParser, SkipParser
from sybil.region import Lexeme

from polite_transport import install
from polite_transport.testing import Answer, Site

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]

ROBOTS = "User-agent: *\nDisallow: /private/\nCrawl-delay: 0.05\n"
CACHED = Answer(body=b"kept", headers={"Cache-Control": "max-age=600"})

Run = Callable[[str], str]


@pytest.fixture
def run_here(
    polite_site: Callable[..., Site], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Run]:
    """Let the code of a page name what is there: the site, a proxy, a folder."""
    monkeypatch.chdir(tmp_path)
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)
    site, proxy = polite_site(ROBOTS), polite_site(ROBOTS)
    site.serve("/kept", CACHED)
    there = [
        (r"http://proxy\.example\.(?:org|com):\d+", proxy.origin),
        (r"https://(?:[\w-]+\.)*example\.(?:org|com)", site.origin),
        (r"/var/lib/mybot", str(tmp_path)),
    ]

    def here(code: str) -> str:
        for pattern, replacement in there:
            code = re.sub(pattern, replacement, code)
        return code

    yield here
    install(exempt_hosts=["127.0.0.1"]).undo()  # and with it what a page has installed
    gc.collect()  # a page closes nothing: its sockets, while their warnings are turned off


def test_there_are_pages() -> None:
    assert len(PAGES) > 10


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.filterwarnings("ignore::ResourceWarning")
@pytest.mark.parametrize("page", PAGES, ids=[str(each.relative_to(ROOT)) for each in PAGES])
def test_every_block_runs(page: Path, run_here: Run, tmp_path: Path) -> None:
    shows_tests = "def test_" in page.read_text(encoding="utf-8")
    blocks: list[str] = []
    run = PythonEvaluator()

    def evaluate(example: Example) -> None:
        code = example.parsed
        if shows_tests:
            blocks.append(code)
            return
        example.parsed = Lexeme(run_here(code), code.offset, code.line_offset)
        run(example)

    for example in (
        Sybil([CodeBlockParser("python", evaluate), SkipParser()]).parse(page).examples()
    ):
        example.evaluate()
    if shows_tests:
        (tmp_path / "test_page.py").write_text("\n\n".join(blocks), encoding="utf-8")
        ran = subprocess.run(
            [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_page.py"],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        assert ran.returncode == 0, ran.stdout + ran.stderr
