"""The program ``pyhudi`` with all of its commands."""

from __future__ import annotations

from typing import Any

import click

from pyhudi import __version__
from pyhudi.cli.commands import (
    bootstrap,
    columns,
    commits,
    files,
    locks,
    metadata,
    options,
    partitions,
    queries,
    recovery,
    repair,
    stats,
    tables,
    timeline,
    versions,
)
from pyhudi.cli.commands.services import archive, cleaning, clustering, compaction, indexes, sync
from pyhudi.cli.failures import readable_failures, readable_warnings
from pyhudi.cli.parameters import TRACEBACK
from pyhudi.cli.structure import Noun

_SHORT_HELP = 70
"""Maximum number of characters of the summary of a command."""
_SECTIONS = (
    (
        "Tables",
        (
            tables.table,
            bootstrap.bootstrap,
            columns.columns,
            partitions.partitions,
            files.files,
            metadata.metadata,
        ),
    ),
    ("Timeline", (commits.commits, timeline.timeline, stats.stats)),
    ("Rows", (queries.scan, queries.changes, queries.lookup)),
    ("Recovery", (recovery.savepoint, recovery.restore, recovery.rollback, repair.repair)),
    (
        "Services",
        (cleaning.clean, archive.archive, compaction.compaction, clustering.clustering, indexes.index, sync.sync),
    ),
    ("Versions, locks and options", (versions.upgrade, versions.downgrade, locks.locks, options.options)),
)
"""Titles of the help, with their commands."""


class Program(Noun):
    """The root of all commands. Its help lists them by what they are about."""

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command, with errors as text."""
        with readable_warnings(), readable_failures(lambda: bool(ctx.meta.get(TRACEBACK))):
            return super().invoke(ctx)

    def format_commands(
        self,
        ctx: click.Context,  # noqa: ARG002  # click calls it
        formatter: click.HelpFormatter,
    ) -> None:
        """Write the commands to the help, section by section."""
        for title, commands in _SECTIONS:
            with formatter.section(title):
                formatter.write_dl([(str(c.name), c.get_short_help_str(_SHORT_HELP)) for c in commands])


@click.group(
    "pyhudi",
    cls=Program,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    no_args_is_help=True,
    epilog="PATH is the root folder of a table, local or s3://…, gs://…, abfss://…. Exit codes: 0 done, 1 error of the "
    "table or the storage, 2 wrong command. Guide: docs/cli.md.",
)
@click.version_option(__version__, prog_name="pyhudi")
def program() -> None:
    """Inspect, read and maintain Apache Hudi tables."""


for _, _commands in _SECTIONS:
    for _command in _commands:
        program.add_command(_command)
