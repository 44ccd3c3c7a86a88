"""``pyhudi partitions``: partitions with their sizes, and the expiry of old ones."""

from __future__ import annotations

import pyarrow as pa

import pyhudi
from pyhudi.cli.columns import partition_columns
from pyhudi.cli.effects import Confirmation, with_confirmation, with_spark
from pyhudi.cli.output import Output
from pyhudi.cli.parameters import with_limit, with_output, with_table
from pyhudi.cli.results import print_result
from pyhudi.cli.structure import noun

partitions = noun("partitions", "Partitions: list, expire.")


@partitions.command("list")
@with_table
@with_limit
@with_output
def list_partitions(table: pyhudi.HudiTable, *, out: Output, limit: int | None) -> None:
    """List the partitions of the latest snapshot, with file groups, log files and sizes.

    Python: HudiTable.for_path(PATH).inspect.partitions()
    """
    rows = table.inspect.partitions().to_arrow()
    out.rows(rows, partition_columns(rows.schema), limit=limit, nothing="no partitions")


@partitions.command("expire")
@with_table
@with_confirmation
@with_spark
@with_output
def expire(table: pyhudi.HudiTable, *, out: Output, confirmation: Confirmation) -> None:
    """Drop the partitions that have not been written to for long (TTL), as
    -o hoodie.partition.ttl.strategy.days.retain=… says. Requires --spark.

    Python: HudiTable.for_path(PATH).services.delete_expired_partitions(dry_run=…)
    """

    def show(plan_out: Output) -> bool:
        plan = table.services.delete_expired_partitions(dry_run=True)
        plan_out.rows(pa.table({"partition": pa.array(plan.partitions, pa.string())}), nothing=plan.reason)
        return bool(plan)

    if confirmation.ask("Drop these partitions?", show, out):
        done = table.services.delete_expired_partitions()
        text = f"dropped by {done.instant}: {', '.join(done.partitions)}" if done else done.reason
        print_result(done, out, text)
