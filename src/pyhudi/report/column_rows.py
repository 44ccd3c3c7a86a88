"""Columns of a table as rows, with their types in SQL."""

from __future__ import annotations

import pyarrow as pa

from pyhudi.read.inspection.result_table import ResultTable
from pyhudi.schema.converters.sql_types import sql_type
from pyhudi.schema.table_types import COMMENT

COLUMN_ROWS_SCHEMA = pa.schema(
    [("column", pa.string()), ("type", pa.string()), ("nullable", pa.bool_()), ("comment", pa.string())]
)
"""One row per column. ``type`` is its type in SQL (`pyhudi.schema.converters.sql_types.sql_type`), ``comment`` is null
without one."""


def column_rows(schema: pa.Schema) -> ResultTable:
    """Return the columns of a table as rows.

    Args:
        schema: Its columns, such as `HudiTable.schema` or the result of `SchemaUpdate.preview`.

    Returns:
        One row per column, in order (`COLUMN_ROWS_SCHEMA`).

    >>> column_rows(pa.schema([("id", pa.int64())])).to_pylist()
    [{'column': 'id', 'type': 'bigint', 'nullable': True, 'comment': None}]
    """
    comments = [(field.metadata or {}).get(COMMENT) for field in schema]
    columns = [
        pa.array(schema.names, pa.string()),
        pa.array([sql_type(kind) for kind in schema.types], pa.string()),
        pa.array([field.nullable for field in schema], pa.bool_()),
        pa.array([None if comment is None else comment.decode() for comment in comments], pa.string()),
    ]
    return ResultTable(pa.Table.from_arrays(columns, schema=COLUMN_ROWS_SCHEMA))
