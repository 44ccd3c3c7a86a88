"""Tagging of rows whose key is in another partition, for global indexes.

Measured on Apache Hudi: where partition paths are updated, the record is deleted at its old location and inserted at
the new one, unless the stored record wins by its ordering value, which then stays where it is. Where they are not
updated, the record is written to its old partition. It also keeps the old values of its partition columns, so that they
match the path. Apache Hudi writes the new values, but reads the old ones, from the path.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.types import StructType

from pyhudi.config import Option, options
from pyhudi.config.enums import IndexType
from pyhudi.errors import SchemaMismatchError
from pyhudi.schema.meta_fields import PARTITION_PATH
from pyhudi.schema.name_resolution import top_column
from pyhudi.spark.column_names import quoted, resolve
from pyhudi.spark.helper_columns import OLD_PARTITION, SEARCHED_FILE
from pyhudi.spark.keys.deduplication import is_marked_delete, ordering_values
from pyhudi.spark.lookup.key_lookup import KeyLookup
from pyhudi.spark.lookup.scan.key_columns import STORED_VALUE_PREFIX, KeyColumns, extra_name
from pyhudi.write.location_columns import IS_DELETE, ROW_POSITION

_LOCATIONS, _OUT = "_pyhudi_locations", "_pyhudi_routed_row"
_MOVING_OPTIONS = {
    IndexType.GLOBAL_SIMPLE: options.SIMPLE_UPDATE_PARTITION_PATH,
    IndexType.RECORD_INDEX: options.RECORD_INDEX_UPDATE_PARTITION_PATH,
    IndexType.GLOBAL_RECORD_LEVEL_INDEX: options.RECORD_INDEX_UPDATE_PARTITION_PATH,
}
"""Options that decide whether records move to other partitions; all other indexes use that of the bloom index."""


def moving_option(lookup: KeyLookup) -> Option[bool]:
    """Return the option that decides whether records move to other partitions."""
    return _MOVING_OPTIONS.get(lookup.index, options.BLOOM_UPDATE_PARTITION_PATH)


def moves_records(lookup: KeyLookup) -> bool:
    """Return True if records move to the partitions of their incoming versions, with a global index."""
    return lookup.opts.get_typed(moving_option(lookup))


def merges_moved_records(lookup: KeyLookup) -> bool:
    """Return True if records that move are merged with the stored versions: by partial updates or a custom merger."""
    return lookup.index.is_global and lookup.merging.combines_versions and moves_records(lookup)


@dataclass(frozen=True, slots=True)
class PartitionUpdatePolicy:
    """Treatment of records whose incoming version is in another partition.

    Attributes:
        moves: Records move to the partition of their incoming version; False: they stay in theirs.
        ordering: Ordering columns by which a stored record can win and stay; only if records move.
        stored_columns: Partition columns that keep their stored values; only if records stay.
        compares_sequences: As in `MergeSettings`.
    """

    moves: bool
    ordering: tuple[str, ...]
    stored_columns: tuple[str, ...]
    compares_sequences: bool


def global_locations(locations: DataFrame, keys: KeyColumns, policy: PartitionUpdatePolicy) -> DataFrame:
    """Return one row per key with the list of its locations.

    Args:
        locations: Locations of `scan_locations` or `bloom_locations`.
        keys: Columns by which keys are compared.
        policy: Treatment of records in other partitions, which determines the stored columns of the list.
    """
    base = StructType([field for field in locations.schema.fields if field.name.startswith(STORED_VALUE_PREFIX)])
    location = F.struct(
        F.col(OLD_PARTITION).alias("partition"),
        F.col(SEARCHED_FILE).alias("file_no"),
        F.col(ROW_POSITION).alias("row"),
        _ordering(base, [extra_name(name) for name in policy.ordering], policy).alias("ordering"),
        _values(base, policy.stored_columns).alias("kept"),
    )
    return locations.groupBy(*keys.in_locations).agg(F.collect_list(location).alias(_LOCATIONS))


def locations_column() -> Column:
    """Return the locations of a row's key in rows joined with `global_locations`: structs with partition, file_no and
    row."""
    return F.col(_LOCATIONS)


def file_numbers() -> Column:
    """Return the numbers of the files with the key of a row, in rows joined with `global_locations`."""
    return F.transform(F.col(_LOCATIONS), lambda p: p["file_no"])


def is_elsewhere() -> Column:
    """Return a column that is true if a row is no delete and records of its key are in other partitions only, in rows
    joined with `global_locations`."""
    here = F.exists(F.col(_LOCATIONS), lambda p: p["partition"] == F.col(PARTITION_PATH))
    return F.col(_LOCATIONS).isNotNull() & ~is_marked_delete() & ~here


def apply_partition_updates(joined: DataFrame, schema: StructType, policy: PartitionUpdatePolicy) -> DataFrame:
    """Return the rows to be written. Lazy.

    Args:
        joined: Rows joined with the locations of their keys (`global_locations`).
        schema: Columns of the rows.
        policy: Treatment of records in other partitions.

    Returns:
        The rows with the partition path, delete mark and kept columns that their locations require, and with file
        number and row position, which are null for new records.
    """
    table_columns = {name: F.col(quoted([name])) for name in schema.names}
    incoming = _IncomingRow(
        table_columns[PARTITION_PATH],
        is_marked_delete(),
        _values(schema, policy.stored_columns),
        F.coalesce(F.col(_LOCATIONS), F.array()),
    )
    routed, needed = incoming.moved(schema, policy) if policy.moves else incoming.kept()
    new = F.array(incoming.at(incoming.partition, F.lit(None).cast("int"), F.lit(None).cast("bigint"), F.lit(False)))
    nothing = F.filter(new, lambda _: F.lit(False))
    inserted = F.when(needed & ~incoming.delete, new).otherwise(nothing)
    exploded = joined.withColumn(_OUT, F.explode(F.concat(routed, inserted)))
    replaced = {PARTITION_PATH: F.col(_OUT)["partition"], IS_DELETE: F.col(_OUT)["delete"]}
    replaced |= _with_values(schema, policy.stored_columns, F.col(_OUT)["kept"])
    columns = [(replaced[name] if name in replaced else F.col(quoted([name]))).alias(name) for name in table_columns]
    return exploded.select(
        *columns, F.col(_OUT)["file_no"].alias(SEARCHED_FILE), F.col(_OUT)["row"].alias(ROW_POSITION)
    )


@dataclass(frozen=True, slots=True)
class _IncomingRow:
    """Columns of an incoming row.

    Attributes:
        partition: Its partition path.
        delete: True for a delete.
        values: Its values of the stored columns.
        locations: Locations of the stored records of its key.
    """

    partition: Column
    delete: Column
    values: Column
    locations: Column

    def at(
        self, partition: Column, file_no: Column, row: Column, is_delete: Column, values: Column | None = None
    ) -> Column:
        """Return the row at a location; ``values``: those of the stored columns, by default its own."""
        return F.struct(
            partition.alias("partition"),
            file_no.alias("file_no"),
            row.alias("row"),
            is_delete.alias("delete"),
            (self.values if values is None else values).alias("kept"),
        )

    def kept(self) -> tuple[Column, Column]:
        """Return the rows for stored records, which stay in their partitions, and True if there are none."""

        def at(location: Column) -> Column:
            values = F.when(location["partition"] == self.partition, self.values).otherwise(location["kept"])
            return self.at(location["partition"], location["file_no"], location["row"], self.delete, values)

        return F.transform(self.locations, at), F.size(self.locations) == 0

    def moved(self, schema: StructType, policy: PartitionUpdatePolicy) -> tuple[Column, Column]:
        """Return the rows for stored records, of which those in other partitions are deleted, and True if none of them
        is in the partition of the row or stays."""
        locations, partition = self.locations, self.partition
        ordering = _ordering(schema, policy.ordering, policy)
        # A stored record with a greater ordering value stays; one in the same partition is left to the merge.
        replaced = F.filter(locations, lambda p: (p["partition"] == partition) | (p["ordering"] <= ordering))

        def at(location: Column) -> Column:
            is_delete = self.delete | (location["partition"] != partition)
            return self.at(location["partition"], location["file_no"], location["row"], is_delete)

        is_here = F.exists(locations, lambda p: p["partition"] == partition)
        is_beaten = F.size(replaced) < F.size(locations)
        return F.transform(replaced, at), ~is_here & ~is_beaten


def _ordering(schema: StructType, fields: Sequence[str], policy: PartitionUpdatePolicy) -> Column:
    """Return the values of ordering fields as one struct, by which versions are compared."""
    values = ordering_values(schema, fields, compares_sequences=policy.compares_sequences)
    return F.struct(F.lit(0).alias("none"), *(column.alias(f"o{i}") for i, column in enumerate(values)))


def _values(schema: StructType, fields: tuple[str, ...]) -> Column:
    """Return the fields as one struct; in locations they have other names."""
    names = [name if top_column(name, schema.names) in schema.names else extra_name(name) for name in fields]
    columns = (resolve(schema, name, "partition path", SchemaMismatchError)[0] for name in names)
    return F.struct(F.lit(0).alias("none"), *(column.alias(f"k{i}") for i, column in enumerate(columns)))


def _with_values(schema: StructType, fields: tuple[str, ...], values: Column) -> dict[str, Column]:
    """Return the columns that contain the fields, with these values."""
    columns: dict[str, Column] = {}
    for i, name in enumerate(fields):
        if name in schema.names:
            columns[name] = values[f"k{i}"]
            continue
        top = top_column(name, schema.names)
        column = columns.get(top, F.col(quoted([top])))
        columns[top] = column.withField(quoted(name.split(".")[1:]), values[f"k{i}"])
    return columns
