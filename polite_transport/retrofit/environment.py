"""What a program under ``polite run`` and its Python children find in their environment.

POLITE_RUN: the settings, as JSON.
POLITE_STORE: the URL of the store that they share.
POLITE_RUN_TEMPORARY: the folder of that store, and which process removes it in the end.
PYTHONPATH: first the folder whose ``sitecustomize`` makes each of them polite.
"""

import os
import tempfile
from collections.abc import Mapping
from pathlib import Path

from polite_transport.retrofit.process import install
from polite_transport.retrofit.settings import Settings
from polite_transport.stores.chosen import VARIABLE as STORE

SETTINGS = "POLITE_RUN"
TEMPORARY = "POLITE_RUN_TEMPORARY"
BOOTSTRAP = str(Path(__file__).with_name("bootstrap"))


def polite_environment(
    settings: Settings, store: str | None, inherited: Mapping[str, str]
) -> dict[str, str]:
    """Return the environment in which Python is polite from its start.

    store: URL of a store; None = the one that the environment names already, else a temporary
        one, which this process or what it executes in its own place removes at its exit.
    """
    environment = {**inherited, SETTINGS: settings.to_json()}
    path = inherited.get("PYTHONPATH")
    others = [each for each in path.split(os.pathsep) if each != BOOTSTRAP] if path else []
    environment["PYTHONPATH"] = os.pathsep.join([BOOTSTRAP, *others])
    if store is not None:
        environment[STORE] = store
    elif not inherited.get(STORE):
        folder = Path(tempfile.mkdtemp(prefix="polite-"))  # only this user can read it
        environment[STORE] = f"sqlite:///{folder.as_posix().lstrip('/')}/turns.sqlite"
        environment[TEMPORARY] = f"{os.getpid()}:{folder}"
    return environment


def begin_here() -> None:
    """Make this process polite by the settings in its environment."""
    settings = Settings.from_json(os.environ[SETTINGS])
    install(
        ua=settings.ua,
        policy=settings.policy,
        hosts=settings.hosts,
        exempt_hosts=settings.exempt_hosts,
    )
