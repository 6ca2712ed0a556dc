"""``polite run`` and ``polite survey``: as a user calls them, in processes of their own."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from polite_transport.testing import Site

POLITE = [sys.executable, "-c", "from polite_transport.cli import main; main()"]
UA = "MyBot/1.0 (+https://example.org/bot)"
ROBOTS = "User-agent: *\nDisallow: /private\nCrawl-delay: 0.2\n"
CRAWLERS = Path(__file__).parent / "crawlers"

LEGACY = """
import sys, sibling
from requests import get
import requests, httpx, urllib3
from urllib.request import urlopen

session, base = requests.Session(), sys.argv[1]
get(base + "/get"), session.get(base + "/session"), httpx.get(base + "/httpx")
urllib3.request("GET", base + "/urllib3"), urlopen(base + "/urlopen").close()

import urllib.error
for call, native in [
    (lambda url: get(url), requests.RequestException),
    (lambda url: httpx.get(url), httpx.HTTPError),
    (lambda url: urllib3.request("GET", url), urllib3.exceptions.HTTPError),
    (lambda url: urlopen(url), urllib.error.URLError),
]:
    try:
        call(base + "/private/page")
    except native as error:
        print("refused", type(error).__name__)

print(__name__, sibling.NAME, sys.argv[2:])
sys.exit(7)
"""

CHILDREN = """
import multiprocessing, subprocess, sys
import requests

def visit(url):
    requests.get(url)

if __name__ == "__main__":
    base = sys.argv[1]
    visit(base + "/parent")
    subprocess.run([sys.executable, "-c", f"import requests; requests.get('{base}/subprocess')"])
    for method in multiprocessing.get_all_start_methods():
        context = multiprocessing.get_context(method)
        child = context.Process(target=visit, args=(f"{base}/{method}",))
        child.start()
        child.join()
        assert child.exitcode == 0
"""


def polite(*arguments: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*POLITE, *arguments], capture_output=True, text=True, timeout=120, cwd=cwd, check=False
    )


def test_a_script_with_five_clients_untouched(site: Callable[..., Site], tmp_path: Path) -> None:
    place = site(ROBOTS)
    (tmp_path / "legacy.py").write_text(LEGACY)
    (tmp_path / "sibling.py").write_text("NAME = 'sibling'")
    done = polite("run", "--ua", UA, str(tmp_path / "legacy.py"), place.origin, "--ua", "its own")
    assert done.returncode == 7, done.stderr
    assert done.stdout.splitlines() == [
        *["refused DisallowedByRobots"] * 4,
        "__main__ sibling ['--ua', 'its own']",
    ]
    pages = ["/get", "/session", "/httpx", "/urllib3", "/urlopen"]
    assert place.targets() == ["/robots.txt", *pages]
    assert {each.headers["user-agent"] for each in place.log} == {UA}
    assert min(place.gaps()) >= 0.2


def test_its_python_children_are_the_same_robot(site: Callable[..., Site], tmp_path: Path) -> None:
    place = site(ROBOTS)
    (tmp_path / "children.py").write_text(CHILDREN)
    done = polite("run", "--ua", UA, str(tmp_path / "children.py"), place.origin)
    assert done.returncode == 0, done.stderr
    targets = place.targets()
    assert targets[:3] == ["/robots.txt", "/parent", "/subprocess"]
    assert targets.count("/robots.txt") == 1
    assert "/spawn" in targets
    assert min(place.gaps()) >= 0.2


def test_a_module_and_its_options(site: Callable[..., Site], tmp_path: Path) -> None:
    place = site("")
    (tmp_path / "legacy_module.py").write_text(
        "import sys, requests\nfor n in range(2): requests.get(sys.argv[1] + f'/{n}')\n"
    )
    (tmp_path / "policy.toml").write_text('on_forbidden = "disallow"\n')
    done = polite(
        "run", "--ua", UA, "--min-delay", "0.3", "--policy", "policy.toml",
        "-m", "legacy_module", place.origin, cwd=tmp_path,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert min(place.gaps()) >= 0.3


def test_a_traceback_begins_in_the_program(tmp_path: Path) -> None:
    (tmp_path / "fails.py").write_text("raise ValueError('its own')\n")
    done = polite("run", "--ua", UA, str(tmp_path / "fails.py"))
    assert done.returncode == 1
    assert "ValueError: its own" in done.stderr
    assert "runpy" not in done.stderr
    assert "polite_transport" not in done.stderr


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["run"], "script"),
        (["run", "--ua", "a\nb", "x.py"], "cannot be sent"),
        (["run", "--min-delay", "-1", "x.py"], "min_delay"),
        (["run", "--store", "mysql://x", "x.py"], "sqlite"),
        (["run", "--policy", "policy.toml", "x.py"], "max_dely"),
        (["survey", "--", "echo"], "{url}"),
        (["survey", "--", "no-such-crawler", "{url}"], "no-such-crawler"),
    ],
)
def test_what_is_wrong_with_a_call_is_told(tmp_path: Path, arguments: list[str], told: str) -> None:
    (tmp_path / "policy.toml").write_text("max_dely = 3\n")
    done = polite(*arguments, cwd=tmp_path)
    assert done.returncode == 2
    assert told in done.stderr
    assert "Traceback" not in done.stderr


def test_without_the_extra_one_line_says_what_to_install() -> None:
    script = (
        "import sys; sys.modules['typer'] = None\nfrom polite_transport.cli import main; main()"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert done.stderr == "polite needs typer: pip install 'polite-transport[cli]'\n"


def test_the_survey_command(tmp_path: Path) -> None:
    rude = [sys.executable, str(CRAWLERS / "rude.py"), "{url}"]
    report = tmp_path / "report.html"
    done = polite("survey", "--delay", "0.2", "--json", "--html", str(report), "--", *rude)
    assert done.returncode == 1, done.stderr
    rows = json.loads(done.stdout)["rows"]
    assert {row["verdict"] for row in rows} == {"not kept", "not exercised"}  # no token was given
    assert "</html>" in report.read_text()
