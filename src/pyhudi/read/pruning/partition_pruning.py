"""Pruning of partitions by the column values in their paths."""

from __future__ import annotations

from functools import reduce

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
from pyarrow.fs import LocalFileSystem

from pyhudi.keygen.partition_value_extractor import partition_fields
from pyhudi.read.filters.row_filter import RowFilter
from pyhudi.table.config.table_config import TableConfig


def prune_paths(config: TableConfig, schema: pa.Schema, values: pa.Table, row_filter: RowFilter) -> pa.Table:
    """Return the partitions (see `pyhudi.read.schema.partition_values.decode_paths`) that may hold matching rows.

    Each partition guarantees ``field = value`` for its exact values; a partition whose guarantee contradicts the filter
    is pruned. Arrow's simplification decides, so any expression prunes.
    """
    condition = row_filter.arrow(schema)
    used = set(row_filter.columns(schema))
    fields = [(i, f.name) for i, f in enumerate(partition_fields(config)) if f.name in used]
    if not fields or values.num_rows == 0:
        return values
    guarantees = [_guarantee(row, fields) for row in values.to_pylist()]
    # A dataset with one virtual path per partition, whose files are never read.
    paths = [str(i) for i in range(values.num_rows)]
    virtual = ds.FileSystemDataset.from_paths(
        paths, schema=schema, format=ds.ParquetFileFormat(), filesystem=LocalFileSystem(), partitions=guarantees
    )
    matching = sorted(int(fragment.path) for fragment in virtual.get_fragments(filter=condition))
    return values.take(pa.array(matching, pa.int64()))


def _guarantee(row: dict[str, object], fields: list[tuple[int, str]]) -> pc.Expression:
    equalities = [
        pc.field(name).is_null() if row[f"value_{i}"] is None else pc.field(name) == pc.scalar(row[f"value_{i}"])
        for i, name in fields
        # Spark's order and equality of floating-point numbers differ from Arrow's.
        if row[f"exact_{i}"] and not isinstance(row[f"value_{i}"], float)
    ]
    return reduce(lambda a, b: a & b, equalities, pc.scalar(True))
