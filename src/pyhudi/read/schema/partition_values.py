"""Values of partition columns, as the paths of partitions give them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.keygen.partition_value_extractor import decode_partition_paths, partition_fields
from pyhudi.table.config.table_config import TableConfig


@dataclass(frozen=True, slots=True)
class PathValue:
    """Values of a partition column from the paths of some partitions, and a mask where they override those in files."""

    values: pa.Array
    is_exact: pa.BooleanArray


@dataclass(frozen=True, slots=True)
class PathColumns:
    """Partition columns of a query, as far as their values come from the paths of partitions.

    Attributes:
        partitions: One row per partition, see `decode_paths`.
        required: Columns whose values must come from the path, because files omit them, or as the query requests.
        values: Columns with the values of partition paths, by the rows of ``partitions``. They take precedence over the
            values in files.
    """

    partitions: pa.Table
    required: tuple[str, ...]
    values: Mapping[str, PathValue]

    @property
    def paths(self) -> pa.StringArray:
        """Paths of the partitions."""
        return self.partitions["partition"].combine_chunks()

    def select_partitions(self, paths: pa.Array) -> PathColumns:
        """Return the columns of these partitions alone."""
        rows = pc.is_in(self.paths, paths)
        values = {
            name: PathValue(value.values.filter(rows), value.is_exact.filter(rows))
            for name, value in self.values.items()
        }
        return PathColumns(self.partitions.filter(rows), self.required, values)

    def by_partition(self) -> dict[str, dict[str, Any]]:
        """Return a mapping from partition path to the values that apply."""
        values_by_path: dict[str, dict[str, Any]] = {path: {} for path in self.paths.to_pylist()}
        for name, each in self.values.items():
            rows = zip(values_by_path.values(), each.values.to_pylist(), each.is_exact.to_pylist(), strict=True)
            for partition_values, value, is_exact in rows:
                if is_exact:
                    partition_values[name] = value
        return values_by_path


def decode_paths(config: TableConfig, schema: pa.Schema, paths: list[str]) -> pa.Table:
    """Decode partition paths into ``partition`` and, for the i-th partition field, ``value_<i>`` and ``exact_<i>``, as
    in :func:`pyhudi.keygen.partition_value_extractor.decode_partition_paths`."""
    decoded = decode_partition_paths(config, schema, paths)
    count = decoded.num_columns // 2
    names = [f"{what}_{i}" for what in ("value", "exact") for i in range(count)]
    return pa.table([pa.array(paths, pa.string()), *decoded.columns], names=["partition", *names])


def partition_column_values(
    config: TableConfig, schema: pa.Schema, values: pa.Table, path_columns: tuple[str, ...] = ()
) -> dict[str, PathValue]:
    """Return the partition columns of ``schema`` by `decode_paths`.

    A value that the path certainly determines applies to all rows of its partition, as in Apache Hudi: files may have
    another one, for records that stayed in their old partition. Columns in ``path_columns`` are not in files, so all
    their values apply.
    """
    columns = {}
    for i, field in enumerate(partition_fields(config)):
        if field.name in schema.names:
            is_exact = values[f"exact_{i}"].combine_chunks()
            if field.name in path_columns:
                is_exact = pa.repeat(pa.scalar(True), values.num_rows)
            columns[field.name] = PathValue(values[f"value_{i}"].combine_chunks(), is_exact)
    return columns
