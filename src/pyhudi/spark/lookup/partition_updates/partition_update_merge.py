"""Records that move to another partition, in tables that merge versions: by partial updates or a custom merger.

The incoming row alone is not the new version of the record. It is merged with the stored record, whole rows of both,
and the partition columns of the result decide where the record belongs. If that is another partition, the record is
deleted at its old location and the merged row is inserted at the new one. Otherwise the incoming row is written
unchanged to the old location, and merged there like any other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.types import BooleanType, StructField, StructType

from pyhudi.arrow.empty_offsets import with_offsets
from pyhudi.errors import UnsupportedTableError
from pyhudi.keygen.key_spec import KeySpec
from pyhudi.merge.modes.merge_rules import MergeRules
from pyhudi.merge.modes.record_versions import RecordVersions, as_nullable_fields, fold_record_versions, joined
from pyhudi.schema.meta_fields import PARTITION_PATH, RECORD_KEY
from pyhudi.spark.column_names import quoted
from pyhudi.spark.execution.row_tasks import Batches, map_in_arrow
from pyhudi.spark.helper_columns import SEARCHED_FILE
from pyhudi.spark.keys.key_generator import partition_path_of
from pyhudi.spark.spark_errors import failure
from pyhudi.spark.spark_types import nullable_type
from pyhudi.write.location_columns import IS_DELETE, ROW_POSITION

_NEW, _OLD, _LOCATIONS = "_pyhudi_incoming", "_pyhudi_previous", "_pyhudi_locations_of_key"
_GONE, _STAYS, _PATH, _OUT = "_pyhudi_merged_away", "_pyhudi_stays", "_pyhudi_merged_path", "_pyhudi_merged_row"
_KEY = "_pyhudi_merged_key"


@dataclass(frozen=True, slots=True)
class PartitionUpdateMerge:
    """Merge of incoming rows with the stored records that they may move.

    Attributes:
        rules: Rules between versions of a record from different writes.
        spec: Specification of keys and partition paths.
    """

    rules: MergeRules
    spec: KeySpec

    def apply(self, moving: DataFrame, names: list[str], locations: Column, stored: DataFrame) -> DataFrame:
        """Return the rows to be written. Lazy.

        Evaluation fails at a record that would move, but that the custom merger keeps in its old partition, because it
        lets the stored version win against a delete.

        Args:
            moving: Rows that are no deletes and whose records are in other partitions only.
            names: Their own columns.
            locations: Column with the locations of the records: structs with partition, file_no and row.
            stored: The stored records: columns ``names``, one row per key.

        Returns:
            The columns ``names``, and file number and row position, which are null for new records.
        """
        merged = self._merged(moving, names, locations, stored)
        merged = merged.withColumn(_PATH, partition_path_of(merged, self.spec))
        table_columns = {name: F.col(quoted([name])) for name in names}
        incoming = {name: F.col(quoted([_NEW, name])) for name in names}
        locations, path = F.col(_LOCATIONS), F.col(_PATH)
        moves = ~F.col(_GONE) & ~F.exists(locations, lambda p: p["partition"] == path)
        left = F.transform(locations, lambda p: _at(table_columns, p["partition"], F.lit(True), p["file_no"], p["row"]))
        none = F.lit(None)
        entered = F.array(_at(table_columns, path, F.lit(False), none.cast("int"), none.cast("bigint")))
        here = F.transform(locations, lambda p: _at(incoming, p["partition"], F.lit(False), p["file_no"], p["row"]))
        placed = F.when(moves, F.concat(left, entered)).otherwise(here)
        if self.rules.merger is not None:
            placed = F.when(F.coalesce(self._fails(moves), F.lit(False)), here).otherwise(placed)
        exploded = merged.select(F.explode(placed).alias(_OUT))
        return exploded.select(
            *(F.col(quoted([_OUT, name])).alias(name) for name in (*names, SEARCHED_FILE, ROW_POSITION))
        )

    def _merged(self, moving: DataFrame, names: list[str], locations: Column, stored: DataFrame) -> DataFrame:
        """Return the merged rows, with whether they are deletes (`_GONE`), whether the stored record stays when it is
        deleted (`_STAYS`), the incoming rows (`_NEW`) and the locations (`_LOCATIONS`)."""
        columns = [F.col(quoted([name])).alias(name) for name in names]
        locations = F.transform(
            locations, lambda p: F.struct(*(p[n].alias(n) for n in ("partition", "file_no", "row")))
        )
        updated = moving.select(
            F.col(RECORD_KEY).alias(_KEY), F.struct(*columns).alias(_NEW), locations.alias(_LOCATIONS)
        )
        previous = stored.select(F.col(RECORD_KEY).alias(_KEY), F.struct(*columns).alias(_OLD))
        pairs = updated.join(previous, _KEY, "left").select(_NEW, _OLD, _LOCATIONS)
        flags = [StructField(_GONE, BooleanType()), StructField(_STAYS, BooleanType())]
        passed = [StructField(name, pairs.schema[name].dataType) for name in (_NEW, _LOCATIONS)]
        incoming = pairs.schema[_NEW].dataType
        assert isinstance(incoming, StructType)
        out = nullable_type(StructType([*incoming.fields, *flags, *passed]))
        assert isinstance(out, StructType)
        return map_in_arrow(pairs, _merge_pairs(self.rules), out)

    @staticmethod
    def _fails(moves: Column) -> Column:
        """Return a column whose evaluation fails if a record moves that the merger keeps."""
        message = F.concat(
            *(F.lit("the record '"), F.col(RECORD_KEY), F.lit("' would move to the partition '"), F.col(_PATH)),
            F.lit(
                "', but the merger of the table lets the stored version win against its delete in the old one; let "
                "RecordMerger.merge() return a delete if the newer version is one with the same ordering value"
            ),
        )
        return F.when(moves & F.col(_STAYS), failure(UnsupportedTableError, message).isNull())


def _at(row: dict[str, Column], partition: Column, is_delete: Column, file_no: Column, position: Column) -> Column:
    """Return a row at a location."""
    placed = {**row, PARTITION_PATH: partition, IS_DELETE: is_delete, SEARCHED_FILE: file_no, ROW_POSITION: position}
    return F.struct(*(column.alias(name) for name, column in placed.items()))


def _merge_pairs(rules: MergeRules) -> Callable[[Iterable[pa.RecordBatch]], Batches]:
    def merge(batches: Iterable[pa.RecordBatch]) -> Batches:
        for batch in with_offsets(batches):
            if batch.num_rows:
                yield merge_pairs_of_rows(batch, rules)

    return merge


def merge_pairs_of_rows(pairs: pa.RecordBatch, rules: MergeRules) -> pa.RecordBatch:
    """Merge incoming rows with stored records.

    Args:
        pairs: Incoming rows (struct), stored records with the same fields (struct; null if there is none), and a column
            that is returned unchanged.
        rules: Rules between the versions.

    Returns:
        The fields of the merged rows, whether they are deletes, whether the stored record survives its delete, the
        incoming rows, and the unchanged column.
    """
    incoming, before, passed = (pairs.column(i) for i in range(3))
    schema = as_nullable_fields(pa.schema(list(incoming.type)))
    rules = rules.present(schema)
    valid_rows = np.flatnonzero(before.is_valid().to_numpy(zero_copy_only=False)).astype(np.int64)
    count = len(valid_rows)
    alive, numbers = np.zeros(count, dtype=np.bool_), np.arange(count, dtype=np.int64)
    older = RecordVersions.from_rows(_rows(before.take(pa.array(valid_rows)), schema), alive, rules, schema)
    newer = RecordVersions.from_rows(_rows(incoming.take(pa.array(valid_rows)), schema), alive, rules, schema)
    row_numbers = np.concatenate([numbers, numbers])
    merged = fold_record_versions(joined(older, newer), row_numbers, rules)
    survives = alive
    if rules.merger is not None:
        deletes = RecordVersions.from_rows(merged.rows, ~alive, rules, schema)
        survives = ~fold_record_versions(joined(older, deletes), row_numbers, rules).is_delete
    # a row without a stored record is a new one
    picks = np.arange(len(incoming), dtype=np.int64)
    picks[valid_rows] = len(incoming) + numbers
    rows = pa.Table.from_batches([_rows(incoming, schema), merged.rows]).combine_chunks().take(pa.array(picks))
    flags = [np.zeros(len(incoming), dtype=np.bool_) for _ in range(2)]
    flags[0][valid_rows], flags[1][valid_rows] = merged.is_delete, survives
    columns = [*(column.combine_chunks() for column in rows.columns), *map(pa.array, flags), incoming, passed]
    return pa.RecordBatch.from_arrays(columns, names=[*schema.names, _GONE, _STAYS, _NEW, _LOCATIONS])


def _rows(structs: pa.StructArray, schema: pa.Schema) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays(structs.flatten(), schema=schema)
