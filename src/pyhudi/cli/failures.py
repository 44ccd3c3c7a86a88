"""Errors and warnings of commands: a few lines of text, and the exit code."""

from __future__ import annotations

import re
import sys
import traceback
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import IO, Any

import click

from pyhudi.errors import HudiError, SetupError

FAILED = 1
INTERRUPTED = 130
"""Exit code of a process that was interrupted, as shells give it."""
_LONGEST = 2_000
"""Maximum number of characters of a message."""


class CommandFailed(click.ClickException):
    """A command failed: an error of the table, its storage or the setup. The exit code is 1."""

    exit_code = FAILED

    def show(self, file: IO[Any] | None = None) -> None:
        """Print the message on the standard error output."""
        stream = file or sys.stderr
        click.secho("error: ", nl=False, file=stream, fg="red", bold=True)
        click.echo(self.message, file=stream)


IN_COMMANDS = {
    "services.run_compaction": "pyhudi compaction run PATH --pending",
    "services.run_log_compaction": "pyhudi compaction run PATH --log --pending",
    "services.run_clustering": "pyhudi clustering run PATH --pending",
    "services.schedule_clustering": "pyhudi clustering schedule PATH",
    "services.clean(": "pyhudi clean run PATH",
    "services.build_index": "pyhudi index build PATH NAME",
    "services.run_index": "pyhudi index run PATH",
    "services.restore": "pyhudi restore PATH",
    "services.rollback": "pyhudi rollback PATH INSTANT",
    "services.savepoint(": "pyhudi savepoint create PATH",
    "services.delete_savepoint": "pyhudi savepoint delete PATH INSTANT",
    "services.delete_metadata_table": "pyhudi metadata delete PATH",
    "services.delete_orphan_files": "pyhudi repair orphans PATH",
    "services.sync_catalog": "pyhudi sync PATH",
    "services.change_properties": "pyhudi repair properties PATH --set KEY=VALUE --unset KEY",
    "pyhudi.overwrite_properties": "pyhudi repair properties PATH --from FILE",
    "lossy=True": "--lossy",
    "if_not_exists=True": "--if-not-exists",
    "read_optimized=True": "--read-optimized",
    "first=True": "--first",
    "hoodie.datasource.query.incremental.format": "pyhudi scan PATH --begin TIME, for the latest rows",
    "to_spark()": "--where takes only such conditions; DuckDB, polars or jq can filter the output of `pyhudi scan`",
}
"""Commands and options for what messages name of the Python API."""


@contextmanager
def readable_failures(with_traceback: Callable[[], bool]) -> Iterator[None]:
    """Turn errors of the block into `CommandFailed`.

    Args:
        with_traceback: Returns whether the lines of code of an error are printed, too.

    Raises:
        CommandFailed: The block raised an error.
    """
    try:
        yield
    except (click.ClickException, click.exceptions.Exit, click.Abort, BrokenPipeError):
        raise
    except KeyboardInterrupt:
        click.echo("\ninterrupted", err=True)
        raise click.exceptions.Exit(INTERRUPTED) from None
    except Exception as error:
        if with_traceback():
            click.echo("".join(traceback.format_exception(error)), err=True)
        raise CommandFailed(message_of(error)) from error


@contextmanager
def readable_warnings() -> Iterator[None]:
    """Print warnings of the block as single lines on the standard error output."""
    with warnings.catch_warnings():
        warnings.simplefilter("default")
        for category in (DeprecationWarning, PendingDeprecationWarning, ResourceWarning):
            warnings.simplefilter("ignore", category)
        warnings.showwarning = _print_warning
        yield


def message_of(error: BaseException) -> str:
    """Return the text of an error for a person, with its cause if that says more, and with the commands and options
    that correspond to the calls of the Python API in the message."""
    text = _shortened(str(error) or type(error).__name__)
    if isinstance(error, SetupError) and ("session" in text or "spark=" in text):
        return f"{text}\non the command line: --spark 'local[*]', or another master"
    commands = [command for word, command in IN_COMMANDS.items() if re.search(rf"\b{re.escape(word)}", text)]
    return "\n".join((_with_cause(error, text), *(f"on the command line: {command}" for command in commands)))


def _with_cause(error: BaseException, text: str) -> str:
    """Return the text of an error with its cause if that says more."""
    if isinstance(error, HudiError):
        cause = str(error.__cause__ or "").partition("\n")[0]  # errors of object stores continue with internals
        return f"{text}\ncause: {_shortened(cause)}" if cause and cause not in text else text
    if isinstance(error, OSError):
        return text
    return f"{type(error).__name__}: {text}\nThis error was not expected; --traceback prints where it occurred"


def _shortened(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"


def _print_warning(message: Warning | str, *_: object, **__: object) -> None:
    click.secho("warning: ", nl=False, err=True, fg="yellow", bold=True)
    click.echo(str(message), err=True)
