"""``pyhudi bootstrap``: a table over existing files, and the source files of its skeleton files."""

from __future__ import annotations

import click

import pyhudi
from pyhudi.cli.columns import BOOTSTRAP_MAPPING
from pyhudi.cli.effects import with_spark
from pyhudi.cli.output import Output
from pyhudi.cli.parameters import with_limit, with_output, with_path, with_table
from pyhudi.cli.results import print_result
from pyhudi.cli.structure import noun
from pyhudi.spark.session import session_if_any

bootstrap = noun("bootstrap", "A table over existing files: run, mapping, partitions.")
_NOT_BOOTSTRAPPED = "no files were bootstrapped by metadata only"


@bootstrap.command("run")
@with_path
@with_spark
@with_output
def run(path: str, *, options: dict[str, str], out: Output) -> None:
    """Create a table over the Parquet or ORC files of the folder -o hoodie.bootstrap.base.path=…

    The files stay where they are. Copying of rows (-o hoodie.bootstrap.mode.selector=…) requires --spark.

    Python: pyhudi.bootstrap_table(PATH, options)
    """
    done = pyhudi.bootstrap_table(path, options, spark=session_if_any())
    print_result(done, out, f"bootstrapped by {done.instant}: {done.num_files:,} files with {done.num_rows:,} rows")


@bootstrap.command("mapping")
@with_table
@click.option("--partition", metavar="PARTITION", help="Only those of the partition with this path.")
@click.option("--file-group", "file_ids", multiple=True, metavar="ID", help="Only this file group; may be repeated.")
@with_limit
@with_output
def mapping(
    table: pyhudi.HudiTable, *, out: Output, partition: str | None, file_ids: tuple[str, ...], limit: int | None
) -> None:
    """List the source file of each skeleton file.

    Python: HudiTable.for_path(PATH).inspect.bootstrap_mapping(PARTITION, …)
    """
    rows = table.inspect.bootstrap_mapping(partition, file_ids or None)
    out.rows(rows, BOOTSTRAP_MAPPING, limit=limit, nothing=_NOT_BOOTSTRAPPED)


@bootstrap.command("partitions")
@with_table
@with_limit
@with_output
def partitions(table: pyhudi.HudiTable, *, out: Output, limit: int | None) -> None:
    """List the partitions that were bootstrapped by metadata only.

    Python: HudiTable.for_path(PATH).inspect.bootstrap_partitions()
    """
    out.rows(table.inspect.bootstrap_partitions(), limit=limit, nothing=_NOT_BOOTSTRAPPED)
