"""The ``polite`` command."""

import sys
from types import TracebackType


def main() -> None:
    """Run it. Without the extra ``cli`` one line says what to install."""
    try:
        from polite_transport.cli.app import PROGRAMS, app
    except ModuleNotFoundError as error:
        if error.name not in ("typer", "rich"):
            raise
        print(  # noqa: T201
            f"polite needs {error.name}: pip install 'polite-transport[cli]'", file=sys.stderr
        )
        raise SystemExit(2) from None
    try:
        app()
    except SystemExit as end:
        if end.code or not PROGRAMS:
            raise
    sys.excepthook = _shown_from_the_program_on
    PROGRAMS[0]()


def _shown_from_the_program_on(
    kind: type[BaseException], error: BaseException, traceback: TracebackType | None
) -> None:
    """Show what ended a program as Python would, without the frames that lead to it."""
    shown, last = traceback, traceback
    while last is not None:
        if last.tb_frame.f_globals.get("__name__") in ("polite_transport.retrofit.run", "runpy"):
            shown = last.tb_next
        last = last.tb_next
    sys.__excepthook__(kind, error.with_traceback(shown), shown)
