"""A folder that is there for one run of a program."""

import atexit
import os
import shutil
import sys
from collections.abc import Callable


def remove_at_exit(folder: str, close: Callable[[], object]) -> None:
    """Remove a folder when this process ends, after the children that multiprocessing waits for.

    close: called before, so that none of its files is open here any more.
    """
    atexit.register(_remove, folder, close, os.getpid())


def _remove(folder: str, close: Callable[[], object], maker: int) -> None:
    if os.getpid() != maker:  # a forked child may come here too
        return
    process = sys.modules.get("multiprocessing.process")
    for child in process.active_children() if process is not None else ():
        if not child.daemon:
            child.join()
    close()
    shutil.rmtree(folder, ignore_errors=True)
