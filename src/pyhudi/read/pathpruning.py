"""Partitions left out by what their paths say of the values of their rows."""

from __future__ import annotations

from functools import reduce
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from pyhudi.keygen.paths import decode_partition_paths, partition_fields

if TYPE_CHECKING:
    from pyhudi.read.filters import RowFilter
    from pyhudi.table.config import TableConfig


def path_values(config: TableConfig, schema: pa.Schema, paths: list[str]) -> pa.Table:
    """What paths say: ``partition`` and the columns of :func:`pyhudi.keygen.paths.decode_partition_paths`."""
    decoded = decode_partition_paths(config, schema, paths)
    values = pa.table({"partition": pa.array(paths, pa.string())})
    for name in decoded.column_names:
        values = values.append_column(name, decoded[name])
    return values


def prune_paths(config: TableConfig, schema: pa.Schema, values: pa.Table, rows: RowFilter) -> pa.Table:
    """The partitions (`path_values`) that can hold rows of the filter.

    Each partition guarantees ``field = value`` for its exact values; a partition whose guarantee contradicts the filter
    is left out. Arrow's own simplification decides, so any expression prunes.
    """
    certain = rows.sure(schema)
    if certain is None:
        return values
    condition = certain.arrow(schema)
    used = set(rows.columns(schema))
    fields = [(i, f.name) for i, f in enumerate(partition_fields(config)) if f.name in used]
    if not fields or values.num_rows == 0:
        return values
    guarantees = [_guarantee(row, fields) for row in values.to_pylist()]
    # a data set over one made-up path per partition; its files are never looked at
    paths = [str(i) for i in range(values.num_rows)]
    made_up = ds.FileSystemDataset.from_paths(
        paths, schema=schema, format=ds.ParquetFileFormat(), filesystem=_no_files(), partitions=guarantees
    )
    kept = sorted(int(fragment.path) for fragment in made_up.get_fragments(filter=condition))
    return values.take(pa.array(kept, pa.int64()))


def _guarantee(row: dict[str, object], fields: list[tuple[int, str]]) -> pc.Expression:
    known = [
        pc.field(name).is_null() if row[name] is None else pc.field(name) == pc.scalar(row[name])
        for i, name in fields
        # Spark's order and equality of floating-point numbers are not Arrow's
        if row[f"exact_{i}"] and not isinstance(row[name], float)
    ]
    return reduce(lambda a, b: a & b, known, pc.scalar(True))


def _no_files() -> object:
    from pyarrow.fs import LocalFileSystem

    return LocalFileSystem()
