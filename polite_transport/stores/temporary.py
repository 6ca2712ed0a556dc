"""A folder that is there for one run of a program."""

import shutil
from collections.abc import Callable
from multiprocessing.util import Finalize


def remove_at_exit(folder: str, close: Callable[[], object]) -> None:
    """Remove a folder when this process ends, after the children that multiprocessing waits for.

    close: called before, so that none of its files is open here any more.
    """
    # As multiprocessing does with its own temporary folder: below 0 is after the children, and a
    # forked child does not do it.
    Finalize(None, _remove, (folder, close), exitpriority=-1)


def _remove(folder: str, close: Callable[[], object]) -> None:
    close()
    shutil.rmtree(folder, ignore_errors=True)
