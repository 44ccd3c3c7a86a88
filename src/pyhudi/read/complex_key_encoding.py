"""Encoding of the keys of a table with the complex key generator and one key field: ``id:a`` or ``a``.

Releases of Apache Hudi differ (docs/format/core.md, section 8.2), and no property of the table says which form it has.
The other one would duplicate records. Its Flink writer leaves out the name in version 9, too, if it is told to, or if
there is one partition field.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pyarrow as pa

from pyhudi.config import Options, options
from pyhudi.config.enums import InvalidText, QueryType
from pyhudi.errors import RecordKeyError
from pyhudi.index.sampled_keys import sample_keys
from pyhudi.keygen.key_spec import KeySpec
from pyhudi.keygen.record_key_formatter import field_texts
from pyhudi.read.execution.arrow_scan import slice_readers
from pyhudi.read.query.query import Query
from pyhudi.read.scan_planner import plan_scan
from pyhudi.read.schema.table_columns import resolve_table_schema
from pyhudi.schema.meta_fields import RECORD_KEY
from pyhudi.schema.name_resolution import top_column
from pyhudi.table.config.key_generator_type import KeyGenType
from pyhudi.table.table_snapshot import TableSnapshot


def names_parts(table: TableSnapshot, opts: Options, spec: KeySpec) -> bool | None:
    """Return True if the stored keys have the form ``id:a``, False if they have the form ``a``, and None if the table
    stores no keys, or its keys have one form in all releases.

    Args:
        table: The table.
        opts: Options of the read.
        spec: Specification of the keys of the table.
    """
    if spec.keygen is not KeyGenType.COMPLEX or len(spec.record_fields) != 1:
        return None
    keys = sample_keys(table)
    if keys and not spec.may_name_parts(keys):
        return False
    if keys and table.config.version >= 9:
        return True
    record = first_record(table, opts, spec.record_fields)
    if record is None:
        return None
    key = record.column(RECORD_KEY)[0].as_py()
    try:
        value = field_texts(record, spec.record_fields[0], replace(spec, consistent_timestamps=False))
    except RecordKeyError:  # A type of other writers, whose text does not begin with a name.
        return spec.may_name_parts([key])
    return spec.matching(key, value[0].as_py()).named_parts


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
