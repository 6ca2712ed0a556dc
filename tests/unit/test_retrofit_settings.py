"""Policy files, and settings on their way into an environment."""

import json
import os
import sys
from pathlib import Path

import pytest

from polite_transport import Policy, SQLiteStore
from polite_transport.retrofit.environment import BOOTSTRAP, polite_environment
from polite_transport.retrofit.run import run_beneath
from polite_transport.retrofit.settings import Settings, load_policy, policy_from
from polite_transport.stores.chosen import open_store

POLICY = Policy(
    min_delay=1.5,
    max_wait=20,
    obey_disallow=False,
    on_html="disallow",
    product_token="MyBot",
    exempt_hosts=[".example.org"],
    overrides={
        "slow.example": Policy(
            min_delay=9,
            max_wait=20,
            obey_disallow=False,
            on_html="disallow",
            product_token="MyBot",
        )
    },
)


def test_a_toml_file_and_a_json_file_say_the_same(tmp_path: Path) -> None:
    toml, other = tmp_path / "policy.toml", tmp_path / "policy.JSON"
    toml.write_text(
        'min_delay = 1.5\nmax_wait = 20\nobey_disallow = false\non_html = "disallow"\n'
        'product_token = "MyBot"\nexempt_hosts = [".example.org"]\n'
        '[overrides."slow.example"]\nmin_delay = 9\n'
    )
    other.write_text(
        json.dumps(
            {
                "min_delay": 1.5,
                "max_wait": 20,
                "obey_disallow": False,
                "on_html": "disallow",
                "product_token": "MyBot",
                "exempt_hosts": [".example.org"],
                "overrides": {"slow.example": {"min_delay": 9}},
            }
        )
    )
    assert load_policy(toml) == load_policy(other) == POLICY


@pytest.mark.parametrize(
    ("toml", "told"),
    [
        ("min_dely = 1", "min_dely.*min_delay"),
        ('min_delay = "1"', "min_delay='1'"),
        ("max_wait = -1", "max_wait=-1"),
        ('obey_disallow = "no"', "obey_disallow='no'.*True or False"),
        ("obey_crawl_delay = 0", "obey_crawl_delay=0"),
        ('on_html = "maybe"', "on_html='maybe'"),
        ("product_token = 1", "product_token=1"),
        ('exempt_hosts = "example.org"', "exempt_hosts='example.org'.*collection"),
        ("exempt_hosts = [1]", r"exempt_hosts=\[1\]"),
        ("overrides = 3", "overrides.*table"),
        ('overrides = {"slow.example" = 3}', "slow.example.*table"),
        ('overrides = {"slow.example" = {min_dely = 1}}', "slow.example.*min_dely"),
        ("min_delay", "'='"),
    ],
)
def test_what_is_wrong_in_a_file_is_named(tmp_path: Path, toml: str, told: str) -> None:
    path = tmp_path / "policy.toml"
    path.write_text(toml)
    with pytest.raises(ValueError, match=f"(?s)policy.toml.*{told}"):
        load_policy(path)


@pytest.mark.parametrize("content", [b"[1]", b"null", b"{", b"\xff"])
def test_what_is_no_table_is_no_policy(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "policy.json"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=r"policy\.json"):
        load_policy(path)


def test_a_file_that_is_not_there_is_an_os_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        load_policy(tmp_path / "policy.toml")


@pytest.mark.parametrize(
    "settings",
    [
        Settings(),
        Settings("MyBot/1.0 (+https://example.org/bot)", POLICY, ("example.org",), ("localhost",)),
        Settings(hosts=()),  # none at all, and not all of them
    ],
)
def test_settings_come_through_an_environment_unchanged(settings: Settings) -> None:
    assert Settings.from_json(settings.to_json()) == settings


def test_every_field_of_a_policy_may_stand_in_a_file() -> None:
    settings = Settings(policy=POLICY)
    assert policy_from(json.loads(settings.to_json())["policy"]) == POLICY


def test_settings_are_checked_as_install_does() -> None:
    with pytest.raises(ValueError, match="cannot be sent"):
        Settings("a\nb").check()
    with pytest.raises(ValueError, match=r"hosts=\(\)"):
        Settings(hosts=()).check()
    with pytest.raises(ValueError, match="product_token"):
        Settings("OtherBot/1.0 (+https://example.org)", POLICY).check()


# --- the environment ------------------------------------------------------------------------


def test_python_finds_ours_first_and_then_what_was_there(tmp_path: Path) -> None:
    store = f"sqlite://{tmp_path}/store.sqlite"
    first = polite_environment(Settings(), store, {"PYTHONPATH": f"a{os.pathsep}b", "HOME": "h"})
    assert first["PYTHONPATH"] == os.pathsep.join([BOOTSTRAP, "a", "b"])
    assert first["HOME"] == "h"
    assert first["POLITE_STORE"] == store
    nested = polite_environment(Settings(), None, first)
    assert nested == first  # the same store, and no second one of ours in the path
    assert polite_environment(Settings(), store, {})["PYTHONPATH"] == BOOTSTRAP
    assert (Path(BOOTSTRAP) / "sitecustomize.py").is_file()


def test_without_a_store_there_is_a_private_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    environment = polite_environment(Settings(), None, {})
    (folder,) = tmp_path.iterdir()
    assert folder.stat().st_mode & 0o777 == 0o700
    store = open_store(environment["POLITE_STORE"])
    assert isinstance(store, SQLiteStore)
    assert Path(store.path).parent == folder
    assert environment["POLITE_RUN_TEMPORARY"] == f"{os.getpid()}:{folder}"


def test_where_no_process_is_replaced_the_folder_goes_when_the_program_has_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    environment = polite_environment(Settings(), None, os.environ)
    script = f"import os, sys; sys.exit(7 if os.listdir({str(tmp_path)!r}) else 1)"
    assert run_beneath([sys.executable, "-c", script], environment) == 7
    assert not list(tmp_path.iterdir())
