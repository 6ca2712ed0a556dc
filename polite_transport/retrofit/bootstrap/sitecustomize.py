"""What Python imports before a program that ``polite run`` starts, and before its Python children.

It imports next to nothing itself, since it comes before every Python process that the program
starts. The rest is done before the first import of an HTTP client.
"""

import _thread
import atexit
import os
import sys

TYPE_CHECKING = False  # type checkers know the name; importing it would cost 10 ms
if TYPE_CHECKING:
    import signal
    from collections.abc import Sequence
    from importlib.machinery import ModuleSpec
    from types import FrameType, ModuleType
else:
    import _signal as signal  # what stands behind it, without the import of enum

CLIENTS = ("urllib.request", "urllib3", "requests", "httpx", "aiohttp")


class BeforeTheFirstClient:
    """Stands in ``sys.meta_path`` until a client is imported, and has ``install`` done first."""

    def __init__(self) -> None:
        self._lock = _thread.RLock()
        self._is_beginning = False

    def find_spec(
        self,
        fullname: str,
        path: "Sequence[str] | None" = None,  # noqa: ARG002 - as every finder is called
        target: "ModuleType | None" = None,  # noqa: ARG002
    ) -> "ModuleSpec | None":
        """See ``importlib.abc.MetaPathFinder``."""
        if fullname not in CLIENTS:
            return None
        with self._lock:
            if self._is_beginning:  # what ``begin`` imports itself; patched once it has
                return None
            if self in sys.meta_path:
                self._is_beginning = True
                try:
                    begin()  # what it raises, the import does: no client without politeness
                finally:
                    self._is_beginning = False
                sys.meta_path.remove(self)
        from importlib.util import find_spec

        return find_spec(fullname)  # anew, by the finder too that is there since


def begin() -> None:
    """Make this process polite; where this Python has no polite_transport, say so."""
    try:
        from polite_transport.retrofit.environment import begin_here
    except ModuleNotFoundError as error:
        print(  # noqa: T201
            f"polite run: {sys.executable} does not find {error.name}, so that nothing of what "
            "this process requests is checked or paced",
            file=sys.stderr,
        )
    else:
        begin_here()


def remove_at_exit() -> None:
    """Let the program's own process, and no child of it, remove the temporary folder in the end."""
    owner, _, folder = os.environ.get("POLITE_RUN_TEMPORARY", "").partition(":")
    if owner != str(os.getpid()):
        return
    atexit.register(_remove, owner, folder)
    if signal.getsignal(signal.SIGTERM) != signal.SIG_DFL:
        return

    def end(number: int, _: "FrameType | None") -> None:
        _remove(owner, folder)
        signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)

    # Python has no exit where this signal ends it. A handler of the program's own replaces ours.
    signal.signal(signal.SIGTERM, end)

    def leave_as_it_was() -> None:
        if signal.getsignal(signal.SIGTERM) is end:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)

    os.register_at_fork(after_in_child=leave_as_it_was)


def _remove(owner: str, folder: str) -> None:
    if owner != str(os.getpid()):  # a forked child may come here too
        return
    # With shutil's import, Python would forget by now that Ctrl-C has ended the program.
    try:
        for entry in os.listdir(folder):  # noqa: PTH208
            try:  # noqa: SIM105 - no import here
                os.remove(os.path.join(folder, entry))  # noqa: PTH107, PTH118
            except FileNotFoundError:
                pass  # a child has closed its connection just now
        os.rmdir(folder)  # noqa: PTH106
    except OSError:
        pass  # someone is at it still; it is a temporary folder


def give_way() -> None:
    """Import the ``sitecustomize`` that would have been found without this one, if there is one."""
    here = os.path.dirname(__file__)  # noqa: PTH120 - pathlib costs more than all of this
    sys.path[:] = [each for each in sys.path if each != here]
    ours = sys.modules.pop("sitecustomize")
    try:
        __import__("sitecustomize")
    except ImportError as error:
        sys.modules["sitecustomize"] = ours
        if error.name != "sitecustomize":
            raise


if __name__ == "sitecustomize":
    if any(client in sys.modules for client in CLIENTS):
        begin()
    else:
        sys.meta_path.insert(0, BeforeTheFirstClient())
    remove_at_exit()
    give_way()
