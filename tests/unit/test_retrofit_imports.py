"""What is patched once it is imported, and not imported for the sake of it."""

import subprocess
import sys
from pathlib import Path

import pytest

CLIENTS = "'requests', 'httpx', 'urllib3', 'urllib.request', 'aiohttp'"


def python(script: str) -> str:
    """Run a script in a process of its own, where no client is imported yet."""
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False, timeout=60
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_install_imports_no_client() -> None:
    script = (
        "import sys\n"
        "from polite_transport import install\n"
        "with install(): print([each for each in sys.modules if each in (" + CLIENTS + ")])\n"
    )
    assert python(script) == "[]\n"


@pytest.mark.parametrize(
    ("statement", "owner", "name"),
    [
        ("import requests", "requests.adapters.HTTPAdapter", "send"),
        ("from requests.adapters import HTTPAdapter", "HTTPAdapter", "send"),
        ("import requests", "requests.packages.urllib3.HTTPConnectionPool", "urlopen"),
        ("import urllib3.poolmanager", "urllib3.HTTPConnectionPool", "_make_request"),
        ("import httpx", "httpx.AsyncHTTPTransport", "handle_async_request"),
        ("from urllib import request", "request.AbstractHTTPHandler", "do_open"),
        ("import aiohttp.client", "aiohttp.ClientSession", "_request"),
    ],
)
def test_what_is_imported_later_is_patched_and_put_back(
    statement: str, owner: str, name: str
) -> None:
    script = (
        "from polite_transport import install\n"
        "installed = install()\n"
        f"{statement}\n"
        f"print({owner}.{name}.__code__.co_name)\n"
        "installed.undo()\n"
        f"print({owner}.{name}.__code__.co_name)\n"
    )
    assert python(script).split() == ["patched", name]


def test_what_is_imported_after_it_was_undone_is_left_alone() -> None:
    script = (
        "from polite_transport import install\n"
        "install().undo()\n"
        "import requests\n"
        "print(requests.adapters.HTTPAdapter.send.__code__.co_name)\n"
    )
    assert python(script) == "send\n"


def test_a_module_is_as_it_always_is() -> None:
    script = (
        "import importlib.util, sys\n"
        "from polite_transport import install\n"
        "install()\n"
        "spec = importlib.util.find_spec('requests')\n"
        "print(spec.loader.is_package('requests'), 'requests' in sys.modules)\n"
        "import requests\n"
        "print(type(requests.__loader__).__name__, type(requests.__spec__.loader).__name__)\n"
        "try: import requests.no_such_part\n"
        "except ModuleNotFoundError as error: print(error.name)\n"
    )
    assert python(script).splitlines() == [
        "True False",
        "SourceFileLoader SourceFileLoader",
        "requests.no_such_part",
    ]


def test_an_import_that_fails_is_patched_the_next_time(tmp_path: Path) -> None:
    (tmp_path / "requests.py").write_text("raise ImportError('not yet')\n")
    script = (
        "import sys\n"
        "from polite_transport import install\n"
        "install()\n"
        f"sys.path.insert(0, {str(tmp_path)!r})\n"
        "try: import requests\n"
        "except ImportError as error: print(error)\n"
        "del sys.path[0]\n"
        "import requests\n"
        "print(requests.adapters.HTTPAdapter.send.__code__.co_name)\n"
    )
    assert python(script).splitlines() == ["not yet", "patched"]
