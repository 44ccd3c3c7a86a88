"""Effects of commands: plan and question before them, progress during them, and the Spark session that runs them."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import click
from click import Abort, UsageError
from rich.console import Console

from pyhudi.cli.output import Output, is_terminal
from pyhudi.metrics.progress import Progress
from pyhudi.report import progress_bar
from pyhudi.spark.session import start_session

Function = Callable[..., Any]
_CONSOLE_PROGRESS = "spark.ui.showConsoleProgress"


@dataclass(frozen=True, slots=True)
class Confirmation:
    """Decision whether a command changes the table.

    Attributes:
        dry_run: Only the plan is shown.
        yes: Nobody is asked.
    """

    dry_run: bool
    yes: bool

    def ask(self, question: str, show: Callable[[Output], bool], out: Output) -> bool:
        """Show the plan and ask.

        Args:
            question: What to ask.
            show: Prints the plan, and returns whether there is anything to do.
            out: Output of the plan of a dry run, and of the reason why there is nothing to do.

        Returns:
            True if the command should continue.

        Raises:
            UsageError: There is no terminal to ask on.
            Abort: The answer is no.
        """
        if self.dry_run:
            show(out)
            return False
        if self.yes:
            return True
        if not is_terminal("stdin"):
            raise UsageError(
                "the command asks before it changes the table, and there is no terminal to answer: pass --yes, or "
                "--dry-run to see the plan"
            )
        if not show(Output.for_questions()):
            return False
        if not click.confirm(question, err=True):
            raise Abort
        return True


def with_confirmation(function: Function) -> Function:
    """Give a command the options ``--dry-run`` and ``--yes`` as ``confirmation``."""

    @click.option("--dry-run", is_flag=True, help="Change nothing, and show what would be done.")
    @click.option("-y", "--yes", is_flag=True, help="Do not ask.")
    @functools.wraps(function)
    def run(*values: Any, dry_run: bool, yes: bool, **arguments: Any) -> Any:
        return function(*values, confirmation=Confirmation(dry_run, yes), **arguments)

    return run


def with_spark(function: Function) -> Function:
    """Start a Spark session for a command if the option ``--spark`` names its master; services of the table find it."""

    @click.option(
        "--spark", "master", metavar="MASTER", help="Run on Spark, with this master: 'local[*]', yarn, sc://…."
    )
    @click.option(
        "--spark-conf", "settings", multiple=True, metavar="KEY=VALUE", help="Setting of that session; may be repeated."
    )
    @functools.wraps(function)
    def run(*values: Any, master: str | None, settings: tuple[str, ...], **arguments: Any) -> Any:
        if master is None:
            if settings:
                raise UsageError("--spark-conf requires --spark")
            return function(*values, **arguments)
        session = start_session(master, {**_progress_settings(master), **dict(_setting(text) for text in settings)})
        try:
            return function(*values, **arguments)
        finally:
            session.stop()

    return run


def _progress_settings(master: str) -> dict[str, str]:
    """Return the setting by which Spark shows no progress bars unless the standard error output is a terminal; a
    server of Spark Connect does not take it."""
    return {} if master.startswith("sc://") else {_CONSOLE_PROGRESS: str(is_terminal("stderr")).lower()}


def _setting(text: str) -> tuple[str, str]:
    key, equal, value = text.partition("=")
    if not equal:
        raise UsageError(f"--spark-conf takes KEY=VALUE, not {text!r}")
    return key, value


@contextmanager
def shown_progress() -> Iterator[Progress | None]:
    """Show progress bars during the block on the standard error output, if it is a terminal."""
    if not is_terminal("stderr"):
        yield None
        return
    with progress_bar(Console(stderr=True)) as progress:
        yield progress
