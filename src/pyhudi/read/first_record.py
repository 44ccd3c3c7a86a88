"""Record keys of file slices that have log files only."""

from __future__ import annotations

from pyhudi.config import Options
from pyhudi.read.execution.arrow_scan import slice_readers
from pyhudi.read.scan_planner import plan_scan
from pyhudi.read.schema.table_columns import resolve_table_schema
from pyhudi.schema.meta_fields import RECORD_KEY
from pyhudi.table.meta_client import TableMetaClient
from pyhudi.table.table_snapshot import TableSnapshot


def log_only_keys(client: TableMetaClient, opts: Options) -> tuple[str, ...]:
    """Return some record keys of a table whose base files have none; empty if it has no records, or stores no keys.

    Reads file slices until one has records.
    """
    table = TableSnapshot.load(client)
    if not client.config.populate_meta_fields or resolve_table_schema(table) is None:
        return ()
    plan = plan_scan(table, columns=[RECORD_KEY], opts=opts)
    for read in slice_readers(plan, client.storage):
        for batch in read():
            if batch.num_rows:
                return tuple(batch.column(0).slice(0, 1).to_pylist())
    return ()
