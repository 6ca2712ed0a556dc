"""``polite survey``: a crawler against a small site, and what its log shows."""

import json
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from rich.table import Table

    from polite_transport.testing.survey import Survey

_COLOURS = {"kept": "green", "not kept": "red", "not exercised": "dim", "not asked": "dim"}


def survey(
    command: Annotated[
        list[str],
        typer.Argument(
            help="The crawler and its arguments; {url} is the site.", metavar="-- COMMAND... {url}"
        ),
    ],
    token: Annotated[
        str | None, typer.Option(help="The crawler's product token, for a run by its own name.")
    ] = None,
    delay: Annotated[
        float, typer.Option(help="The Crawl-delay to ask for, seconds.", min=0.0)
    ] = 3.0,
    robots: Annotated[
        Path | None,
        typer.Option(help="A robots.txt of your own for the first run, which is judged by it."),
    ] = None,
    limit: Annotated[float, typer.Option(help="Seconds that one run may take.", min=1.0)] = 300.0,
    as_json: Annotated[bool, typer.Option("--json", help="Print the table as JSON.")] = False,
    html: Annotated[Path | None, typer.Option(help="Write a report to this file.")] = None,
) -> None:
    """Run a crawler against a small site, and say by the site's log what it kept."""
    # ``run`` starts programs, and has no use for any of these.
    from rich.console import Console
    from rich.live import Live

    from polite_transport.testing.survey import hold
    from polite_transport.testing.survey.report import html_report

    if not any("{url}" in part for part in command):
        raise typer.BadParameter("the command has no {url} for the site's address")
    told = Console(stderr=True)
    try:
        own_robots = None if robots is None else robots.read_text(encoding="utf-8")
        with Live(console=told, transient=True, refresh_per_second=4) as live:

            def say(run: str, arrivals: int, seconds: float) -> None:
                live.update(f"{run}: {arrivals} requests in {seconds:.0f} s")

            result = hold(
                command, token=token, delay=delay, robots=own_robots, limit=limit, say=say
            )
        if html is not None:
            html.write_text(html_report(result), encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise typer.BadParameter(str(error)) from error
    if as_json:
        typer.echo(_json(result))
    else:
        Console().print(_table(result))
    if not result.all_kept:
        raise typer.Exit(1)


def _json(result: "Survey") -> str:
    rows = [
        {
            "question": row.question,
            "verdict": row.verdict.value,
            "shown": row.shown,
            "requests": [f"{each.method} {each.target}" for each in row.arrivals],
        }
        for row in result.rows
    ]
    made = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    return json.dumps({"command": result.command, "made": made, "rows": rows}, indent=2)


def _table(result: "Survey") -> "Table":
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False)
    for heading in ("asked", "", "seen in the log"):
        table.add_column(heading)
    for row in result.rows:
        verdict = Text(row.verdict.value, style=_COLOURS[row.verdict.value])
        table.add_row(Text(row.question), verdict, Text(row.shown))
    return table
