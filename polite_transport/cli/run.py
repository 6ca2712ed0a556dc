"""``polite run``: a Python program as it is, politely."""

import logging
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

from polite_transport.policy import Policy
from polite_transport.retrofit.run import run_python
from polite_transport.retrofit.settings import Settings, load_policy
from polite_transport.stores.chosen import open_store


def run(
    program: Annotated[
        list[str],
        typer.Argument(
            help="A script, or with -m a module, and its own arguments.",
            metavar="PROGRAM [ARGS]...",
        ),
    ],
    module: Annotated[
        bool, typer.Option("-m", help="PROGRAM is the name of a module, as for python -m.")
    ] = False,
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
        Path | None, typer.Option(help="A TOML or JSON file with fields of a Policy.")
    ] = None,
    store: Annotated[
        str | None,
        typer.Option(
            help="Where turns are shared with other programs: sqlite:///path or redis://host."
        ),
    ] = None,
    hosts: Annotated[
        list[str] | None,
        typer.Option(help="Check and pace only this host; may be repeated, or hold commas."),
    ] = None,
    exempt_hosts: Annotated[
        list[str] | None,
        typer.Option(help="Leave this host alone; may be repeated, or hold commas."),
    ] = None,
) -> None:
    """Run a Python program unedited: every request of it and its Python children is polite."""
    try:
        settings = Settings(
            ua,
            _policy(policy, min_delay),
            _names(hosts) if hosts else None,  # None = all; that none is meant, check refuses
            _names(exempt_hosts or ()),
        )
        logging.getLogger("polite_transport").disabled = True  # the program itself will say it
        settings.check()
        if store is not None:
            open_store(store)
    except (ValueError, OSError) as error:
        raise typer.BadParameter(str(error)) from error
    run_python(["-m", *program] if module else program, settings, store)


def _policy(path: Path | None, min_delay: float | None) -> Policy:
    given: dict[str, Any] = {} if min_delay is None else {"min_delay": min_delay}
    if path is None:
        return Policy(**given)
    policy = load_policy(path, **given)
    overrides = {
        host: replace(own, min_delay=max(own.min_delay, min_delay or 0.0))
        for host, own in policy.overrides.items()
    }
    return replace(policy, overrides=overrides)


def _names(given: list[str] | tuple[str, ...]) -> tuple[str, ...]:
    return tuple(name for each in given for part in each.split(",") if (name := part.strip()))
