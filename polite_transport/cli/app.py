"""The verbs of the ``polite`` command put together."""

import typer

from polite_transport.cli.run import run
from polite_transport.cli.survey import survey

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    help="Scripts and crawlers that keep robots.txt and Crawl-delay.",
)

# What follows the first word that is no option belongs to the program, whatever it looks like.
_FOR_A_PROGRAM = {"allow_interspersed_args": False}

app.command(context_settings=_FOR_A_PROGRAM)(run)
app.command(context_settings=_FOR_A_PROGRAM)(survey)
