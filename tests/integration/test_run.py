"""``polite run`` and ``polite survey``: as a user calls them, in processes of their own."""

import json
import os
import signal
import subprocess
import sys
import venv
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


TWICE = """
import sys, requests
for number in range(2):
    requests.get(f"{sys.argv[1]}/{sys.argv[2]}/{number}")
"""

AT_ONCE = """
import multiprocessing, os, subprocess, sys
import requests

def visit(url):
    requests.get(url)

if __name__ == "__main__":
    base = sys.argv[1]
    children = [
        multiprocessing.get_context(method).Process(target=visit, args=(f"{base}/{method}/{n}",))
        for method in multiprocessing.get_all_start_methods()
        for n in range(2)
    ]
    for child in children:
        child.start()
    script = f"from urllib.request import urlopen; urlopen('{base}/subprocess').close()"
    started = subprocess.Popen([sys.executable, "-c", script])
    forked = os.fork()
    if not forked:
        visit(base + "/forked")
        sys.exit()
    visit(base + "/parent")
    os.waitpid(forked, 0)
    assert started.wait() == 0
    for child in children:
        child.join()
        assert child.exitcode == 0
    visit(base + "/last")
"""

AS_PYTHON_DOES = """
import atexit, pathlib, sys, threading, time
LATER = "still there"

def say(who):
    import __main__
    print(who, getattr(__main__, "LATER", "gone"))

def wait_and_say():
    threading.main_thread().join()
    say("thread")

threading.Thread(target=wait_and_say).start()
atexit.register(say, "exit")
print(sys.argv, sys.path[0], __name__, __file__, __package__, type(__loader__))
print(__spec__ and __spec__.name)
print(sys.modules["__main__"].__dict__ is globals(), sys.stdin.read())
"""


def polite(
    *arguments: str, cwd: Path | None = None, given: str = "", **environment: str
) -> subprocess.CompletedProcess[str]:
    return python(*POLITE[1:], *arguments, cwd=cwd, given=given, **environment)


def python(
    *arguments: str, cwd: Path | None = None, given: str = "", **environment: str
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *arguments],
        capture_output=True,
        text=True,
        timeout=120,
        cwd=cwd,
        input=given,
        env={**os.environ, **environment},
        check=False,
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


def test_children_at_once_and_of_every_kind_keep_one_pace(
    site: Callable[..., Site], tmp_path: Path
) -> None:
    place = site(ROBOTS, accept_jitter=(0.0, 0.03))
    (tmp_path / "at_once.py").write_text(AT_ONCE)
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    script = str(tmp_path / "at_once.py")
    done = polite("run", "--ua", UA, script, place.origin, TMPDIR=str(temporary))
    assert done.returncode == 0, done.stderr
    targets = place.targets()
    assert targets[0] == "/robots.txt"
    assert targets[-1] == "/last"
    assert len(targets) == len(set(targets)) >= 1 + 4 + 2 * 2  # one robots.txt, each page once
    assert {"/fork/0", "/spawn/0", "/subprocess", "/forked", "/parent"} <= set(targets)
    assert min(place.gaps()) >= 0.2
    assert not list(temporary.glob("polite-*"))


def test_a_store_is_shared_with_the_next_run(site: Callable[..., Site], tmp_path: Path) -> None:
    place = site(ROBOTS)
    (tmp_path / "twice.py").write_text(TWICE)
    for number in range(2):
        done = polite(
            "run", "--ua", UA, "--store", f"sqlite://{tmp_path}/turns.sqlite",
            "twice.py", place.origin, str(number), cwd=tmp_path,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
    assert place.targets() == ["/robots.txt", "/0/0", "/0/1", "/1/0", "/1/1"]
    assert min(place.gaps()) >= 0.2


def test_a_module_and_its_options(site: Callable[..., Site], tmp_path: Path) -> None:
    place = site("")
    (tmp_path / "legacy_module.py").write_text(
        "import sys, requests\nfor n in range(2): requests.get(sys.argv[2] + f'/{n}')\n"
    )
    (tmp_path / "policy.toml").write_text(
        'min_delay = 9\non_forbidden = "disallow"\n[overrides."127.0.0.1"]\nmax_delay = 60\n'
    )
    done = polite(
        "run", "--ua", UA, "--min-delay", "0.3", "--policy", "policy.toml",
        "-m", "legacy_module", "--min-delay", place.origin, cwd=tmp_path,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert place.targets() == ["/robots.txt", "/0", "/1"]
    assert min(place.gaps()) >= 0.3
    assert max(place.gaps()) < 9


def test_a_policy_file_and_a_scope(site: Callable[..., Site], tmp_path: Path) -> None:
    place = site(ROBOTS, addresses=("127.0.0.1", "127.0.0.2", "127.0.0.3"))
    (tmp_path / "policy.json").write_text(
        json.dumps({"overrides": {"127.0.0.1": {"obey_disallow": False}}})
    )
    (tmp_path / "private.py").write_text(
        "import sys, requests\n"
        "for url in sys.argv[1:]:\n"
        "    try: print(requests.get(url).status_code)\n"
        "    except requests.RequestException as error: print(type(error).__name__)\n"
    )
    urls = [place.url("/private", host) for host in place.addresses]
    for scope, told in (
        (["--policy", "policy.json"], ["200", "DisallowedByRobots", "DisallowedByRobots"]),
        (["--hosts", "127.0.0.1,127.0.0.2"], ["DisallowedByRobots", "DisallowedByRobots", "200"]),
        (["--hosts", "127.0.0.2", "--hosts", "127.0.0.3"], ["200", *["DisallowedByRobots"] * 2]),
        (["--exempt-hosts", "127.0.0.3"], ["DisallowedByRobots", "DisallowedByRobots", "200"]),
    ):
        done = polite("run", "--ua", UA, *scope, "private.py", *urls, cwd=tmp_path)
        assert done.stdout.split() == told, done.stderr


# --- as if Python had run it ----------------------------------------------------------------


def test_a_program_finds_all_as_python_has_it(tmp_path: Path) -> None:
    (tmp_path / "package").mkdir()
    (tmp_path / "package" / "__main__.py").write_text(AS_PYTHON_DOES)
    (tmp_path / "script.py").write_text(AS_PYTHON_DOES)
    for program in (["script.py", "-m", "--ua"], ["-m", "package", "-m"], ["package", "--", "-x"]):
        bare = python(*program, cwd=tmp_path, given="told")
        assert bare.stdout.endswith("told\nthread still there\nexit still there\n"), bare.stderr
        done = polite("run", "--ua", UA, *program, cwd=tmp_path, given="told")
        assert (done.stdout, done.stderr) == (bare.stdout, "")


@pytest.mark.parametrize(
    "program",
    [
        ["-m", "no_such_module"],
        ["no_such_script.py"],
        ["syntax.py"],
        ["fails.py"],
        ["code.py"],
        ["interrupted.py"],
        ["terminated.py"],
    ],
)
def test_a_program_ends_as_under_python(tmp_path: Path, program: list[str]) -> None:
    (tmp_path / "syntax.py").write_text("x = (\n")
    (tmp_path / "fails.py").write_text("def f(): raise ValueError('its own')\nf()\n")
    (tmp_path / "code.py").write_text("raise SystemExit('a message')\n")
    for name, number in (("interrupted", signal.SIGINT), ("terminated", signal.SIGTERM)):
        script = f"import os\nos.kill(os.getpid(), {int(number)})\n"
        (tmp_path / f"{name}.py").write_text(script)
    bare = python(*program, cwd=tmp_path)
    done = polite("run", "--ua", UA, *program, cwd=tmp_path, TMPDIR=str(tmp_path))
    assert bare.returncode != 0
    assert (done.returncode, done.stderr) == (bare.returncode, bare.stderr)


@pytest.mark.skipif(sys.platform == "win32", reason="nothing is asked there before the end")
@pytest.mark.parametrize(
    ("end", "code"),
    [
        ("", 0),
        ("sys.exit(3)", 3),
        ("raise ValueError", 1),
        ("os.kill(os.getpid(), signal.SIGINT)", -signal.SIGINT),
        ("os.kill(os.getpid(), signal.SIGTERM)", -signal.SIGTERM),
        ("signal.signal(signal.SIGTERM, lambda *_: sys.exit(4)); signal.raise_signal(15)", 4),
    ],
)
def test_the_temporary_store_goes_however_the_program_ends(
    site: Callable[..., Site], tmp_path: Path, end: str, code: int
) -> None:
    place = site("")
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    (tmp_path / "script.py").write_text(
        "import os, signal, sys, requests\n"
        f"requests.get({place.url('/page')!r})\n"
        "child = os.fork()\n"  # it ends in the same way, and that is not the end
        f"if not child:\n    {end or 'pass'}\n    sys.exit()\n"
        "os.waitpid(child, 0)\n"
        "print(*os.listdir(os.environ['TMPDIR']), flush=True)\n"
        f"{end}\n"
    )
    done = polite("run", "--ua", UA, "script.py", cwd=tmp_path, TMPDIR=str(temporary))
    assert done.returncode == code, done.stderr
    assert done.stdout.startswith("polite-")
    assert not list(temporary.iterdir())


@pytest.mark.skipif(sys.platform == "win32", reason="nothing is asked there before the end")
def test_children_and_those_who_ignore_the_signal_have_it_as_it_was(tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text(
        "import os, signal, subprocess, sys\n"
        "ask = 'import signal; print(signal.getsignal(signal.SIGTERM).name)'\n"
        "subprocess.run([sys.executable, '-c', ask], check=True)\n"
        "if not os.fork():\n"
        "    print(signal.getsignal(signal.SIGTERM).name, flush=True)\n"
        "    os._exit(0)\n"
        "os.wait()\n"
    )
    done = polite("run", "--ua", UA, "script.py", cwd=tmp_path, TMPDIR=str(tmp_path))
    assert done.stdout.split() == ["SIG_DFL"] * 2, done.stderr
    (tmp_path / "ask.py").write_text(
        "import signal\nprint(signal.getsignal(signal.SIGTERM).name)\n"
    )
    ignoring = subprocess.run(
        ["/bin/sh", "-c", 'trap "" TERM; exec "$@"', "sh", *POLITE, "run", "--ua", UA, "ask.py"],
        capture_output=True,
        text=True,
        timeout=60,
        cwd=tmp_path,
        env={**os.environ, "TMPDIR": str(tmp_path)},
        check=True,
    )
    assert ignoring.stdout == "SIG_IGN\n", ignoring.stderr


def test_a_program_without_clients_imports_nothing_of_ours(tmp_path: Path) -> None:
    (tmp_path / "none.py").write_text("import sys\nprint(*sys.modules)\n")
    (tmp_path / "one.py").write_text("import sys, urllib.request\nprint(*sys.modules)\n")
    done = polite("run", "--ua", UA, "none.py", cwd=tmp_path)
    assert not {"polite_transport", "logging", "typing"} & set(done.stdout.split())
    done = polite("run", "--ua", UA, "one.py", cwd=tmp_path)
    there = set(done.stdout.split())
    assert "polite_transport.retrofit.process" in there
    assert not {"requests", "httpx", "urllib3", "aiohttp", "typer"} & there


def test_the_users_own_sitecustomize_has_its_way(site: Callable[..., Site], tmp_path: Path) -> None:
    place = site(ROBOTS)
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "sitecustomize.py").write_text(
        "import requests, sys\nprint('own', __name__, requests.__name__)\n"
    )
    (tmp_path / "script.py").write_text(
        "import requests, sys, sitecustomize\n"
        "print(sitecustomize.__file__, [each for each in sys.path if 'bootstrap' in each])\n"
        f"requests.get({place.url('/private')!r})\n"
    )
    own = tmp_path / "own"
    done = polite("run", "--ua", UA, "script.py", cwd=tmp_path, PYTHONPATH=str(own))
    assert done.stdout.splitlines()[-2:] == [
        "own sitecustomize requests",
        f"{own / 'sitecustomize.py'} []",
    ]
    assert "DisallowedByRobots" in done.stderr
    assert place.targets() == ["/robots.txt"]


def test_a_python_without_polite_transport_says_that_it_is_not_polite(tmp_path: Path) -> None:
    venv.create(tmp_path / "other", symlinks=True)
    (tmp_path / "script.py").write_text(
        "import subprocess, sys\n"
        "for what in ('print(1)', 'import urllib.request'):\n"
        "    subprocess.run([sys.argv[1], '-c', what], check=True)\n"
    )
    other = str(tmp_path / "other" / "bin" / "python")
    done = polite("run", "--ua", UA, "script.py", other, cwd=tmp_path)
    assert done.returncode == 0
    assert done.stdout == "1\n"
    (line,) = done.stderr.splitlines()
    assert other in line
    assert "polite_transport" in line


def test_where_it_cannot_begin_no_client_can_be_imported(tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text(
        "import os, subprocess, sys\n"
        "os.environ['POLITE_RUN'] = 'broken'\n"
        "try_twice = 'for _ in range(2):\\n try: import requests\\n except ValueError: print(1)'\n"
        "subprocess.run([sys.executable, '-c', try_twice], check=True)\n"
    )
    done = polite("run", "--ua", UA, str(tmp_path / "script.py"))
    assert done.stdout == "1\n1\n", done.stderr


# --- what is said ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["run"], "PROGRAM"),
        (["run", "--ua", "a\nb", "x.py"], "cannot be sent"),
        (["run", "--min-delay", "-1", "x.py"], "min_delay"),
        (["run", "--store", "mysql://x", "x.py"], "sqlite"),
        (["run", "--hosts", "", "x.py"], "leave it out"),
        (["run", "--hosts", " , ", "--hosts", "", "x.py"], "leave it out"),
        (["run", "--exempt-hosts", "a b", "x.py"], "no name of a host"),
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


def test_a_survey_by_a_file_of_ones_own(tmp_path: Path) -> None:
    (tmp_path / "open.txt").write_text("User-agent: *\nAllow: /\n")
    (tmp_path / "closed.txt").write_text("User-agent: *\nDisallow: /page2\n")
    perfect = [sys.executable, str(CRAWLERS / "perfect.py"), "{url}"]
    two_pages = (
        "import sys, urllib.request as u\n"
        "u.urlopen(sys.argv[1] + 'robots.txt')\n"
        "for page in ('', 'page2.html'): u.urlopen(sys.argv[1] + page)"
    )
    for file, code, verdict in (("open.txt", 0, "not asked"), ("closed.txt", 1, "not kept")):
        crawler = perfect if code == 0 else [sys.executable, "-c", two_pages, "{url}"]
        robots = ["--robots", str(tmp_path / file)]
        done = polite("survey", "--delay", "0.2", *robots, "--json", "--", *crawler)
        assert done.returncode == code, done.stdout
        rows = {row["question"]: row["verdict"] for row in json.loads(done.stdout)["rows"]}
        assert rows["Disallow, in the robots.txt given"] == verdict
        assert rows["Crawl-delay"] == "not asked"
