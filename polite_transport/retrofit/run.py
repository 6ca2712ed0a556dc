"""Starting a program that is polite without knowing it."""

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from typing import NoReturn

from polite_transport.retrofit.environment import TEMPORARY, polite_environment
from polite_transport.retrofit.settings import Settings


def run_python(arguments: Sequence[str], settings: Settings, store: str | None) -> NoReturn:
    """Let Python run a program in the place of this process.

    arguments: of ``python``: a script or ``-m`` and a module, and the program's own.
    store: as for ``polite_environment``.

    Python itself runs it, and not we in this process: ``__main__``, tracebacks, signals, exit
    codes and what happens at the exit are its own.
    """
    command = [sys.executable, *arguments]
    environment = polite_environment(settings, store, os.environ)
    if sys.platform != "win32":
        os.execve(sys.executable, command, environment)  # noqa: S606 - what the user named
    raise SystemExit(run_beneath(command, environment))


def run_beneath(command: Sequence[str], environment: dict[str, str]) -> int:
    """Run a program and return its exit code: Windows can put nothing in a process's place."""
    program = subprocess.Popen(command, env=environment)  # noqa: S603 - what the user named
    try:
        while True:
            try:
                return program.wait()
            except KeyboardInterrupt:  # the program was interrupted too, and decides
                continue
    finally:
        _, _, folder = environment.get(TEMPORARY, "").partition(":")
        if folder:
            shutil.rmtree(folder, ignore_errors=True)
