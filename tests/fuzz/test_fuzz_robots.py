"""A short run of the fuzzer with a fixed budget; atheris has no wheel for every Python."""

import importlib.util
import pathlib
import subprocess
import sys

import pytest


@pytest.mark.skipif(
    importlib.util.find_spec("atheris") is None,
    reason="atheris is not installed: it has no wheel for this Python or system",
)
def test_fuzz_robots(tmp_path: pathlib.Path) -> None:
    script = pathlib.Path(__file__).with_name("fuzz_robots.py")
    corpus = tmp_path / "corpus"
    corpus.mkdir()
    run = subprocess.run(
        [sys.executable, script, corpus, "-runs=15000", "-seed=9309", "-max_len=800", "-timeout=5"],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        timeout=120,
        check=False,
    )
    assert run.returncode == 0, (run.stdout + run.stderr)[-4_000:]
    assert "Done 15000 runs" in run.stderr
