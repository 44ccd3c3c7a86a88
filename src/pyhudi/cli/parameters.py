"""Arguments and options of commands: the table, its options, instants, names of columns, the form of the output."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click import BadParameter
from click.shell_completion import CompletionItem

import pyhudi
from pyhudi.cli.output import Output, OutputFormat
from pyhudi.cli.structure import CommonOption
from pyhudi.config import OPTIONS, Options
from pyhudi.config.option import NAMED
from pyhudi.config.option_registry import is_known, suggest
from pyhudi.errors import ConfigError, FormatError
from pyhudi.table.config.properties_text import parse_properties

if TYPE_CHECKING:
    TextType = click.ParamType[str]
    NamesType = click.ParamType[list[str]]
else:  # generic from click 8.2 on
    TextType = NamesType = click.ParamType

Function = Callable[..., Any]
TRACEBACK = "pyhudi.traceback"
"""Key of the context: whether errors are printed with the lines of code."""
_READABLE_INSTANT = re.compile(r"\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d(\.\d{3})?")


class TablePath(TextType):
    """Path or URI of a table's root folder. A shell completes local folders."""

    name = "path"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Return the path."""
        if not str(value).strip():
            self.fail("it is empty", param, ctx)
        return str(value)

    def shell_complete(
        self,
        ctx: click.Context,  # noqa: ARG002  # click calls it
        param: click.Parameter,  # noqa: ARG002
        incomplete: str,
    ) -> list[CompletionItem]:
        """Return that the shell completes folders."""
        return [CompletionItem(incomplete, type="dir")]


class InstantTime(TextType):
    """Requested time of an instant, as in the timeline (``20261121094947775``) or readable."""

    name = "instant"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Return the instant as in the timeline."""
        text = str(value).strip()
        if _READABLE_INSTANT.fullmatch(text):
            return re.sub(r"\D", "", text)
        if not text.isdigit():
            self.fail(
                f"{text!r} is no instant, such as 20261121094947775 (`pyhudi timeline list` shows them)", param, ctx
            )
        return text


class Names(NamesType):
    """Names with commas between them."""

    name = "names"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> list[str]:
        """Return the names."""
        if isinstance(value, list):
            return value
        names = [name.strip() for name in str(value).split(",") if name.strip()]
        if not names:
            self.fail("there is no name", param, ctx)
        return names


def with_table(function: Function) -> Function:
    """Open the table of the argument PATH for a command, which gets it as its first argument."""

    @_path
    @_options
    @functools.wraps(function)
    def run(path: str, options: dict[str, str], **arguments: Any) -> Any:
        return function(pyhudi.HudiTable.for_path(path, options), **arguments)

    return run


def with_path(function: Function) -> Function:
    """Give a command the argument PATH and the options as ``path`` and ``options``."""
    return _path(_options(function))


def with_output(function: Function) -> Function:
    """Give a command its output as ``out``."""

    @_output
    @functools.wraps(function)
    def run(*values: Any, form: str, **arguments: Any) -> Any:
        return function(*values, out=Output.standard(OutputFormat(form)), **arguments)

    return run


def with_limit(function: Function) -> Function:
    """Give a command the largest number of rows to print as ``limit``."""
    return click.option(
        "--limit",
        type=click.IntRange(min=0),
        metavar="N",
        help="Print at most N rows; 0 prints all. By default 20 in a table, and all as JSON and CSV.",
    )(function)


def only_if_due_option(function: Function) -> Function:
    """Add the option ``--only-if-due``."""
    return click.option(
        "--only-if-due", is_flag=True, help="Do nothing unless the trigger of the service is due, by its options."
    )(function)


def as_pairs(_: click.Context, param: click.Parameter, pairs: Iterable[str]) -> dict[str, str]:
    """Return ``KEY=VALUE`` pairs by key.

    Raises:
        BadParameter: A pair has another form.
    """
    values = {}
    for pair in pairs:
        key, equal, value = pair.partition("=")
        if not equal or not key.strip():
            raise BadParameter(f"{pair!r} is not KEY=VALUE", param=param)
        values[key.strip()] = value.strip()
    return values


def as_options(ctx: click.Context, param: click.Parameter, pairs: Iterable[str]) -> dict[str, str]:
    """Return ``KEY=VALUE`` pairs as options.

    Raises:
        BadParameter: A pair has another form, a key of Hudi is unknown, or a value is not allowed.
    """
    return _checked(as_pairs(ctx, param, pairs), param)


def as_known_pairs(ctx: click.Context, param: click.Parameter, pairs: Iterable[str]) -> dict[str, str]:
    """Return ``KEY=VALUE`` pairs whose keys of Hudi are known, by key.

    Raises:
        BadParameter: A pair has another form, or a key of Hudi is unknown.
    """
    return _with_known_keys(as_pairs(ctx, param, pairs), param)


def _checked(options: dict[str, str], param: click.Parameter) -> dict[str, str]:
    try:
        Options.parse(_with_known_keys(options, param))
    except ConfigError as error:
        raise BadParameter(str(error), param=param) from error
    return options


def _with_known_keys(options: dict[str, str], param: click.Parameter) -> dict[str, str]:
    for key in options:
        if not is_known(key):
            similar = suggest(key)
            hint = f"did you mean {similar!r}?" if similar else "`pyhudi options search` finds the known ones"
            raise BadParameter(f"unknown option {key!r}; {hint}", param=param)
    return options


def properties_of(path: Path) -> dict[str, str]:
    """Return the properties in a file.

    Raises:
        BadParameter: It cannot be read.
    """
    try:
        return parse_properties(path.read_bytes())
    except (OSError, FormatError) as error:
        raise BadParameter(f"{path}: {error}") from error


def _options_file(_: click.Context, param: click.Parameter, path: Path | None) -> dict[str, str]:
    return {} if path is None else _checked(properties_of(path), param)


def _remember_traceback(ctx: click.Context, _: click.Parameter, value: bool) -> None:  # noqa: FBT001  # click calls it
    if value:
        ctx.meta[TRACEBACK] = True


def _complete_option(_: click.Context, __: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Return the keys of options that begin with a text, for a shell."""
    if "=" in incomplete:
        return []
    keys = sorted({*OPTIONS, *NAMED})
    helps = {key: option.doc for key, option in NAMED.items()}
    return [CompletionItem(f"{key}=", help=helps.get(key)) for key in keys if key.startswith(incomplete)]


def traceback_option(function: Function) -> Function:
    """Add the option ``--traceback``."""
    return click.option(
        "--traceback",
        is_flag=True,
        expose_value=False,
        callback=_remember_traceback,
        cls=CommonOption,
        help="Print the lines of code of an error.",
    )(function)


_path = click.argument("path", type=TablePath(), metavar="PATH")
_output = click.option(
    "--output",
    "form",
    type=click.Choice([form.value for form in OutputFormat]),
    default=OutputFormat.TABLE.value,
    cls=CommonOption,
    help="Form of the result: a table for people, one JSON object per line, or CSV.  [default: table]",
)


def _options(function: Function) -> Function:
    @click.option(
        "-o",
        "--option",
        "pairs",
        multiple=True,
        metavar="KEY=VALUE",
        callback=as_options,
        shell_complete=_complete_option,
        cls=CommonOption,
        help="Option of Apache Hudi, or setting of the storage; may be repeated.",
    )
    @click.option(
        "--options-file",
        type=click.Path(exists=True, dir_okay=False, path_type=Path),
        callback=_options_file,
        cls=CommonOption,
        help="File with such options (Java properties); -o overrides them.",
    )
    @traceback_option
    @functools.wraps(function)
    def run(*values: Any, pairs: dict[str, str], options_file: dict[str, str], **arguments: Any) -> Any:
        return function(*values, options={**options_file, **pairs}, **arguments)

    return run
