"""The ``polite`` command: ``run`` for programs that nobody may edit, ``survey`` for crawlers."""

import sys


def main() -> None:
    """Run it. Without the extra ``cli`` one line says what to install."""
    try:
        from polite_transport.cli.app import app
    except ModuleNotFoundError as error:
        if error.name not in ("typer", "rich"):
            raise
        print(  # noqa: T201
            f"polite needs {error.name}: pip install 'polite-transport[cli]'", file=sys.stderr
        )
        raise SystemExit(2) from None
    app()
