"""``pyhudi index``: indexes of the metadata table."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import click
import pyarrow as pa

import pyhudi
from pyhudi.cli.effects import Confirmation, shown_progress, with_confirmation, with_spark
from pyhudi.cli.output import Output
from pyhudi.cli.parameters import InstantTime, as_pairs, with_output, with_table
from pyhudi.cli.results import print_result
from pyhudi.cli.structure import noun
from pyhudi.report.row_table import text_column

index = noun("index", "Indexes of the metadata table: list, build, drop, schedule, run.")
_DEFINITION = ("name", "using", "index_options", "if_not_exists")
_dry_run = click.option("--dry-run", is_flag=True, help="Change nothing, and show what would be built.")
_INDEXES = (text_column("index"), text_column("state"), text_column("instant", is_whole=True))


def _with_index(function: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command the definition of an index, as arguments of `build_index` and `schedule_index`, as ``wanted``."""

    @click.argument("name")
    @click.option("--column", metavar="COLUMN", help="Column of a secondary or expression index.")
    @click.option("--using", metavar="KIND", help="Kind of an expression index: column_stats or bloom_filters.")
    @click.option(
        "--index-option",
        "index_options",
        multiple=True,
        metavar="KEY=VALUE",
        callback=as_pairs,
        help="Function of an expression index and its options: expr=from_unixtime; may be repeated.",
    )
    @click.option("--if-not-exists", is_flag=True, help="Do nothing if the index exists.")
    @functools.wraps(function)
    def run(*values: Any, column: str | None, **arguments: Any) -> Any:
        wanted = {"columns": column or (), **{name: arguments.pop(name) for name in _DEFINITION}}
        return function(*values, wanted=wanted, **arguments)

    return run


@index.command("list")
@with_table
@with_output
def list_indexes(table: pyhudi.HudiTable, *, out: Output) -> None:
    """List the partitions of the metadata table, and the planned ones.

    Python: HudiTable.for_path(PATH).config.metadata_partitions, .services.pending_indexes()
    """
    built = [(name, "built", None) for name in table.config.metadata_partitions]
    plans = table.services.pending_indexes()
    planned = [(name, "planned", plan.instant) for plan in plans for name in plan.partitions]
    rows = [dict(zip(("index", "state", "instant"), row, strict=True)) for row in built + planned]
    schema = pa.schema([("index", pa.string()), ("state", pa.string()), ("instant", pa.string())])
    out.rows(pa.Table.from_pylist(rows, schema=schema), _INDEXES, nothing="no metadata table")


@index.command("build")
@with_table
@_with_index
@_dry_run
@with_spark
@with_output
def build(table: pyhudi.HudiTable, *, out: Output, wanted: dict[str, Any], dry_run: bool) -> None:
    """Build an index, which later writes maintain; writers wait meanwhile.

    NAME is column_stats, partition_stats, bloom_filters or record_index, or the name of a secondary or expression
    index of --column. Indexes with a record per row require --spark.

    Python: HudiTable.for_path(PATH).services.build_index(NAME, COLUMN, using=…, index_options=…)
    """
    with shown_progress() as progress:
        done = table.services.build_index(**wanted, dry_run=dry_run, progress=progress)
    verb = "would be built" if dry_run else "built"
    print_result(done, out, done.reason or f"{verb}: {', '.join(done.partitions)}")


@index.command("drop")
@with_table
@click.argument("name")
@click.option("--if-exists", is_flag=True, help="Do nothing if there is no such index.")
@with_confirmation
@with_output
def drop(table: pyhudi.HudiTable, *, out: Output, name: str, if_exists: bool, confirmation: Confirmation) -> None:
    """Delete an index.

    Python: HudiTable.for_path(PATH).services.drop_index(NAME, dry_run=…)
    """

    def show(plan_out: Output) -> bool:
        plan = table.services.drop_index(name, if_exists=if_exists, dry_run=True)
        print_result(plan, plan_out, plan.reason or f"to drop: {', '.join(plan.partitions)}")
        return bool(plan.partitions)

    if confirmation.ask("Drop this index?", show, out):
        done = table.services.drop_index(name, if_exists=if_exists)
        print_result(done, out, done.reason or f"dropped: {', '.join(done.partitions)}")


@index.command("schedule")
@with_table
@_with_index
@_dry_run
@with_output
def schedule(table: pyhudi.HudiTable, *, out: Output, wanted: dict[str, Any], dry_run: bool) -> None:
    """Put the plan of an index on the timeline, to be built by `pyhudi index run` while writers continue.

    Python: HudiTable.for_path(PATH).services.schedule_index(NAME, COLUMN, using=…, index_options=…)
    """
    plan = table.services.schedule_index(**wanted, dry_run=dry_run)
    where = f"planned by {plan.instant}" if plan.instant else "would be planned"
    print_result(plan, out, plan.reason or f"{where}: {', '.join(plan.partitions)}")


@index.command("run")
@with_table
@click.argument("instant", type=InstantTime(), required=False)
@_dry_run
@with_spark
@with_output
def run(table: pyhudi.HudiTable, *, out: Output, instant: str | None, dry_run: bool) -> None:
    """Build the planned indexes, or only that of INSTANT, while writers continue.

    Python: HudiTable.for_path(PATH).services.run_index(INSTANT)
    """
    with shown_progress() as progress:
        done = table.services.run_index(instant, dry_run=dry_run, progress=progress)
    verb = "would be built" if dry_run else "built"
    print_result(done, out, done.reason or f"{verb}: {', '.join(done.partitions)}")
