"""The options and the ends that the command lines of both experiments share."""

import sys
from collections.abc import Collection
from pathlib import Path
from typing import Annotated

import typer

from mor_ref.argument_checks import known_name

ArmsOption = Annotated[str, typer.Option("--arms", help="Arms, with commas; all by default.")]
PlaceOption = Annotated[Path, typer.Option("--in", help="The directory of the files of the runs.")]


def app_of(purpose: str) -> typer.Typer:
    """Return an application without commands."""
    return typer.Typer(help=purpose, add_completion=False, pretty_exceptions_enable=False)


def arms_in(text: str, known: Collection[str]) -> tuple[str, ...]:
    """Return the arms of an option, each once."""
    arms = tuple(dict.fromkeys(filter(None, text.split(","))))
    for name in arms:
        known_name("arms", name, known)
    return arms


def run_as_program(app: typer.Typer) -> None:
    """Run a command line; an error is one sentence."""
    try:
        app()
    except (ValueError, OSError, RuntimeError) as error:
        sys.exit(f"error: {error}")
