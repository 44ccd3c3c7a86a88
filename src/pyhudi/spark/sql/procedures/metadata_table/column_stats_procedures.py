"""Procedures that show column statistics."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import SparkSession

from pyhudi.errors import NotFoundError, QueryError
from pyhudi.format.file_names import file_names_of
from pyhudi.metadata.metadata_layout import COLUMN_STATS
from pyhudi.metadata.reader.metadata_table import MetadataTable
from pyhudi.metadata.records import metadata_record, stats_values
from pyhudi.read.schema.table_columns import resolve_table_schema
from pyhudi.spark.sql.procedures.arguments import Arguments, Procedure, Rows
from pyhudi.spark.sql.procedures.metadata_table.open_metadata_table import open_metadata_table
from pyhudi.table.table_snapshot import TableSnapshot
from pyhudi.table.view.file_system_view import FileSystemView

_PERCENTS = (0.5, 0.75, 0.95, 0.99)


def show_metadata_table_column_stats(spark: SparkSession, arguments: Arguments) -> Rows:
    """Show minimum and maximum values and nulls of columns in the base files of the latest snapshot."""
    return [
        (row["file"], name, _text(row["minimum"]), _text(row["maximum"]), row["nulls"])
        for name, stats in _statistics(spark, arguments)
        for row in stats.sort_by("file").to_pylist()
    ]


def _text(value: object) -> str | None:
    return None if value is None else str(value)


def show_metadata_column_stats_overlap(spark: SparkSession, arguments: Arguments) -> Rows:
    """Show in how many files of a partition a value of a column may lie, by the column statistics."""
    rows: list[tuple[Any, ...]] = []
    for name, stats in _statistics(spark, arguments):
        for partition in pc.unique(stats["partition"]).to_pylist():
            part = stats.filter(pc.equal(stats["partition"], partition))
            bounded = part.filter(pc.and_(pc.is_valid(part["minimum"]), pc.is_valid(part["maximum"])))
            rows.append((partition, name, *_overlap(bounded), pc.sum(part["values"]).as_py() or 0))
    return sorted(rows)


def _overlap(stats: pa.Table) -> tuple[Any, ...]:
    """The mean, the maximum and four quantiles of the number of files that a bound of a file lies in, and the number of
    files, before the quantiles."""
    minimums, maximums = Counter(stats["minimum"].to_pylist()), Counter(stats["maximum"].to_pylist())
    depth, depths = 0, []
    for value in sorted({*minimums, *maximums}):
        depth += minimums[value]
        depths.append(depth)
        depth -= maximums[value]
    if not depths:
        return (0.0, 0, 0, 0, 0, 0, 0)
    counts = pa.array(depths)
    quantiles = pc.quantile(counts, q=list(_PERCENTS), interpolation="higher").to_pylist()
    return (float(pc.mean(counts).as_py()), max(depths), stats.num_rows, *map(int, quantiles))


def _statistics(spark: SparkSession, arguments: Arguments) -> Iterator[tuple[str, pa.Table]]:
    """Column statistics of the files of the latest snapshot: each column's name, and a table of partition, file,
    minimum, maximum, and the numbers of values and nulls.

    Raises:
        NotFoundError: The table has none.
        QueryError: There is no such column.
    """
    client = arguments.client(spark)
    metadata = open_metadata_table(client)
    if COLUMN_STATS not in metadata.partitions:
        raise NotFoundError(
            f"the table at {client.storage.uri()} has no column statistics; CREATE INDEX column_stats builds them"
        )
    now = TableSnapshot.load(client)
    resolved = resolve_table_schema(now)
    schema = pa.schema([]) if resolved is None else resolved.schema
    target_columns = arguments.texts("targetColumns")
    for name in target_columns:
        if name not in schema.names:
            raise QueryError(f"the table has no column {name!r}; it has {', '.join(schema.names)}")
    stats = _current(now, metadata, arguments.text("partition"))
    for name in target_columns or sorted(set(pc.unique(stats["columnName"]).to_pylist()) & set(schema.names)):
        part = stats.filter(pc.equal(stats["columnName"], name)).combine_chunks()
        if not part.num_rows:
            continue
        kinds = part["valueType"].combine_chunks() if "valueType" in part.column_names else None
        bounds = [
            stats_values.unwrap(part[bound].combine_chunks(), schema.field(name).type, kinds)[0]
            for bound in ("minValue", "maxValue")
        ]
        columns = [part["partition"], part["fileName"], *bounds, part["valueCount"], part["nullCount"]]
        yield name, pa.table(columns, names=["partition", "file", "minimum", "maximum", "values", "nulls"])


def _current(now: TableSnapshot, metadata: MetadataTable, partition: str | None) -> pa.Table:
    """Statistics of the base files of the latest snapshot, with their partitions."""
    slices = FileSystemView.load(now).latest_slices()
    slices = slices.filter(pc.is_valid(slices["base_path"]))
    if partition is not None:
        slices = slices.filter(pc.equal(slices["partition"], partition))
    names = file_names_of(slices["base_path"])
    files = pa.table([slices["partition"], names], names=["partition", "fileName"])
    records = metadata.scan(COLUMN_STATS, [metadata_record.COLUMN_STATS_PAYLOAD])
    payload = records[metadata_record.COLUMN_STATS_PAYLOAD].combine_chunks()
    live = payload.filter(pc.invert(pc.fill_null(pc.struct_field(payload, "isDeleted"), True)))
    at = pc.index_in(pc.struct_field(live, "fileName"), value_set=files["fileName"].combine_chunks())
    current = live.filter(pc.is_valid(at))
    table = pa.Table.from_struct_array(current)
    return table.append_column("partition", files["partition"].combine_chunks().take(at.drop_null()))


PROCEDURES: dict[str, Procedure] = {
    "show_metadata_table_column_stats": show_metadata_table_column_stats,
    "show_metadata_column_stats_overlap": show_metadata_column_stats_overlap,
}
