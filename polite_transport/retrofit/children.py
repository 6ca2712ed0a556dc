"""Child processes of a polite program: the Python ones are polite too.

They get what they need in their environment: the settings, the store they share, and in front of
PYTHONPATH a folder with a ``sitecustomize``, which Python imports before anything else.
"""

import atexit
import os
import shutil
import sys
import tempfile
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

from polite_transport.retrofit.process import install
from polite_transport.retrofit.settings import Settings
from polite_transport.stores.chosen import VARIABLE as STORE_VARIABLE

SETTINGS_VARIABLE = "POLITE_RUN"
_FOLDER_VARIABLE = "POLITE_RUN_FOLDER"

_SITECUSTOMIZE = """\
try:
    from polite_transport.retrofit.children import begin_child
except ImportError as error:
    import sys
    print(
        f"polite_transport is not installed for {sys.executable}, so that nothing of what this "
        f"process requests is checked or paced: {error}",
        file=sys.stderr,
    )
else:
    begin_child()
"""


def take_children_in(settings: Settings, store: str | None, folder: Path) -> None:
    """Set this process's environment so that its Python children are as polite as itself.

    store: URL of a store; None = an SQLite file in the folder, which all of them share.
    folder: private, and there as long as any of them.
    """
    (folder / "sitecustomize.py").write_text(_SITECUSTOMIZE)
    environment = os.environ
    path = environment.get("PYTHONPATH")
    environment["PYTHONPATH"] = os.pathsep.join([str(folder), path] if path else [str(folder)])
    environment[_FOLDER_VARIABLE] = str(folder)
    environment[SETTINGS_VARIABLE] = settings.to_json()
    if store is not None:
        environment[STORE_VARIABLE] = store
    else:
        environment.setdefault(STORE_VARIABLE, f"sqlite:///{folder / 'turns.sqlite'}")


def private_folder() -> Path:
    """Return a new folder that only this user can read, removed at the end of this process."""
    folder = tempfile.mkdtemp(prefix="polite-")
    atexit.register(_remove, folder, os.getpid())
    return Path(folder)


def _remove(folder: str, made_by: int) -> None:
    if os.getpid() == made_by:  # a forked child runs this too, and the parent still needs it
        shutil.rmtree(folder, ignore_errors=True)


def begin() -> None:
    """Make this process polite by the settings in its environment."""
    settings = Settings.from_json(os.environ[SETTINGS_VARIABLE])
    install(
        ua=settings.ua,
        policy=settings.policy,
        hosts=settings.hosts,
        exempt_hosts=settings.exempt_hosts,
    )


def begin_child() -> None:
    """Do what a child's ``sitecustomize`` is for, then let the program's own one have its way."""
    begin()
    folder = os.environ.get(_FOLDER_VARIABLE, "")
    sys.path[:] = [each for each in sys.path if each != folder]
    ours = sys.modules.pop("sitecustomize", None)
    if find_spec("sitecustomize") is not None:
        import_module("sitecustomize")
    elif ours is not None:
        sys.modules["sitecustomize"] = ours
