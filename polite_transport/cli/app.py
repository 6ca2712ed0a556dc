"""The verbs of the ``polite`` command, and their options."""

import json
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.live import Live
from rich.table import Table
from rich.text import Text

from polite_transport.policy import Policy
from polite_transport.retrofit.children import begin, private_folder, take_children_in
from polite_transport.retrofit.run import run_module, run_script
from polite_transport.retrofit.settings import Settings, load_policy
from polite_transport.stores.chosen import open_store
from polite_transport.testing.survey import Survey, Verdict, hold
from polite_transport.testing.survey.report import html_report

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    help="Scripts and crawlers that keep robots.txt and Crawl-delay.",
)

# What ``run`` is to run, once the command line's own handling of exceptions is over.
PROGRAMS: list[Callable[[], None]] = []

_TO_PROGRAM = {"allow_interspersed_args": False}
_COLOURS = {Verdict.KEPT: "green", Verdict.NOT_KEPT: "red", Verdict.NOT_EXERCISED: "dim"}


@app.command(context_settings=_TO_PROGRAM)
def run(
    program: Annotated[
        list[str] | None,
        typer.Argument(help="The script and its arguments.", metavar="SCRIPT [ARGS]..."),
    ] = None,
    module: Annotated[
        str | None, typer.Option("-m", help="Run this module instead of a script.")
    ] = None,
    ua: Annotated[
        str | None,
        typer.Option(
            help="The User-Agent to send, such as 'MyBot/1.0 (+https://example.org/bot)'."
        ),
    ] = None,
    min_delay: Annotated[
        float | None, typer.Option(help="Seconds between two requests to a host, at the least.")
    ] = None,
    policy: Annotated[
        Path | None, typer.Option(help="A TOML or JSON file with the fields of a Policy.")
    ] = None,
    store: Annotated[
        str | None,
        typer.Option(help="sqlite:///path or redis://host to share turns with other programs."),
    ] = None,
    host: Annotated[
        list[str] | None, typer.Option(help="Check and pace only this host; may be repeated.")
    ] = None,
    exempt_host: Annotated[
        list[str] | None, typer.Option(help="Leave this host alone; may be repeated.")
    ] = None,
) -> None:
    """Run a Python script, unedited: every request of it and its child processes is polite."""
    arguments = list(program or ())
    if module is None and not arguments:
        raise typer.BadParameter("name a script, or a module with -m")
    try:
        settings = Settings(
            ua,
            _policy(policy, min_delay),
            tuple(host) if host else None,
            tuple(exempt_host or ()),
        )
        if store is not None:
            open_store(store)
    except (ValueError, OSError) as error:
        raise typer.BadParameter(str(error)) from error
    take_children_in(settings, store, private_folder())
    try:
        begin()
    except ValueError as error:
        raise typer.BadParameter(str(error)) from error
    if module is not None:
        PROGRAMS.append(partial(run_module, module, arguments))
    else:
        PROGRAMS.append(partial(run_script, arguments[0], arguments[1:]))


def _policy(path: Path | None, min_delay: float | None) -> Policy:
    policy = Policy() if path is None else load_policy(path)
    if min_delay is None:
        return policy
    return replace(policy, min_delay=min_delay)


@app.command(context_settings=_TO_PROGRAM)
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
        Path | None, typer.Option(help="A robots.txt of your own for the first run.")
    ] = None,
    limit: Annotated[float, typer.Option(help="Seconds that one run may take.", min=1.0)] = 300.0,
    as_json: Annotated[bool, typer.Option("--json", help="Print the table as JSON.")] = False,
    html: Annotated[Path | None, typer.Option(help="Write a report to this file.")] = None,
) -> None:
    """Run a crawler against a small site, and say by the site's log what it kept."""
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


def _json(result: Survey) -> str:
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


def _table(result: Survey) -> Table:
    table = Table(box=None, pad_edge=False)
    for heading in ("asked", "", "seen in the log"):
        table.add_column(heading)
    for row in result.rows:
        verdict = Text(row.verdict.value, style=_COLOURS[row.verdict])
        table.add_row(Text(row.question), verdict, Text(row.shown))
    return table
