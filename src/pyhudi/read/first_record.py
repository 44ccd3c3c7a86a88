"""One record of a table, from which the form of its keys is derived."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from pyhudi.config import Options, options
from pyhudi.config.enums import InvalidText, QueryType
from pyhudi.read.execution.arrow_scan import slice_readers
from pyhudi.read.query.query import Query
from pyhudi.read.scan_planner import plan_scan
from pyhudi.read.schema.table_columns import resolve_table_schema
from pyhudi.schema.meta_fields import RECORD_KEY
from pyhudi.schema.name_resolution import top_column
from pyhudi.table.table_snapshot import TableSnapshot


def first_record(table: TableSnapshot, opts: Options, fields: Sequence[str]) -> pa.RecordBatch | None:
    """Return a record of a table, of a base file if there is one, with `RECORD_KEY` and the columns of some fields that
    the table has; None if it has no records, or stores no keys.

    Reads file slices until one has records.

    Args:
        table: The table.
        opts: Options of the read.
        fields: Names of fields; dots separate those of structs.
    """
    if not table.config.populate_meta_fields:
        return None
    columns = resolve_table_schema(table)
    if columns is None:
        return None
    names = columns.schema.names
    wanted = {name: None for field in fields if (name := top_column(field, names)) in names}
    lenient = opts.merged({options.READ_INVALID_TEXT.key: InvalidText.REPLACE.value})
    for kind in (QueryType.READ_OPTIMIZED, QueryType.SNAPSHOT):
        plan = plan_scan(table, Query(type=kind), columns=[RECORD_KEY, *wanted], opts=lenient)
        for read in slice_readers(plan, table.storage):
            for batch in read():
                if batch.num_rows:
                    return batch.slice(0, 1)
    return None
