"""Structure of the commands: nouns with verbs, and help with the options of all commands last."""

from __future__ import annotations

from typing import Any

import click

from pyhudi.cli.hudi_cli_names import OTHER_COMMANDS, command_named

_SUMMARY = 300
"""Maximum number of characters of the summary of a verb, in lines as wide as the terminal."""


class CommonOption(click.Option):
    """Option that many commands have."""


class Command(click.Command):
    """Command whose help lists the options that it shares with others after its own."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options to the help."""
        own: list[tuple[str, str]] = []
        common: list[tuple[str, str]] = []
        for param in self.get_params(ctx):
            record = param.get_help_record(ctx) if isinstance(param, click.Option) else None
            if record is not None:
                is_common = isinstance(param, CommonOption) or "--help" in param.opts
                (common if is_common else own).append(record)
        for title, records in (("Options", own), ("Common options", common)):
            if records:
                with formatter.section(title):
                    formatter.write_dl(records)


class Noun(click.Group):
    """Group of the commands of one noun; ``commit list`` is ``commits list``, as nouns are found in both numbers."""

    command_class = Command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the verbs to the help, with their whole first sentences."""
        verbs = [(name, self.commands[name]) for name in self.list_commands(ctx)]
        with formatter.section("Commands"):
            formatter.write_dl([(name, verb.get_short_help_str(_SUMMARY)) for name, verb in verbs])

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the command and its arguments; one of another tool is refused with the one that does the same."""
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError as error:
            words = [*ctx.command_path.split()[1:], *args]
            command = command_named(words)
            if command is not None:
                hint = f"In place of hudi-cli's command: `pyhudi {command}`."
            elif words[0] in OTHER_COMMANDS:
                hint = f"Use `pyhudi {OTHER_COMMANDS[words[0]]}`."
            else:
                raise
            raise click.UsageError(f"{error.format_message()} {hint}", ctx) from error

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return the command of a name, in the singular or the plural."""
        other = cmd_name.removesuffix("s") if cmd_name.endswith("s") else f"{cmd_name}s"
        return super().get_command(ctx, cmd_name) or super().get_command(ctx, other)


def noun(name: str, summary: str) -> Noun:
    """Return an empty group of commands."""
    settings: dict[str, Any] = {"no_args_is_help": True}
    return Noun(name, help=summary, short_help=summary, **settings)
