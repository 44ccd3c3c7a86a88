"""Pruning by the record index: the file groups of the records that a filter selects by key.

Keys come from the filter, or from secondary indexes of the columns that it restricts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.arrow.arrays import numpy_mask
from pyhudi.config.enums import QueryType, TableType
from pyhudi.errors import HudiError
from pyhudi.metadata.metadata_layout import RECORD_INDEX
from pyhudi.metadata.reader.metadata_table import MetadataTable
from pyhudi.read.pruning.indexes.record_location_lookup import equality_keys, record_index_locations
from pyhudi.read.pruning.indexes.secondary_index_lookup import secondary_index_keys
from pyhudi.read.pruning.pruner_protocol import Indexes, Predicate, Pruning, pruned_line
from pyhudi.read.pruning.statistics.comparison_pruning import Mask
from pyhudi.read.query.query import Query
from pyhudi.table.bucket_index_detection import detect_bucket_index
from pyhudi.table.table_snapshot import TableSnapshot
from pyhudi.table.view.file_group_keys import in_groups


def selected_keys(predicate: Predicate) -> pa.StringArray | None:
    """Return the record keys that the filter selects; None: it does not restrict them."""
    implied, config = predicate.filter.implied, predicate.table.config
    assert implied is not None
    if any(predicate.conditions.is_changed(name) for name in config.record_keys):
        return None
    return equality_keys(implied, config, predicate.schema, predicate.opts)


@dataclass(slots=True)
class RecordIndexPruner:
    """Pruner of one query by the record index, which is looked up once.

    Attributes:
        locations: Locations of the selected records (`KEY_LOCATION_SCHEMA`), once they have been looked up; None also
            if the index is not used.
    """

    locations: pa.Table | None = field(default=None, init=False)
    _is_unusable: bool = field(default=False, init=False)

    def prune_partitions(self, partitions: pa.StringArray, predicate: Predicate, indexes: Indexes) -> Pruning:
        """Prune partitions without a selected record."""
        lookup = self._look_up(predicate, indexes.metadata, partitions.to_pylist())
        if self.locations is None:
            return lookup
        out = ~numpy_mask(pc.is_in(partitions, value_set=pc.unique(self.locations["partition"])))
        return _final(lookup, "partitions", out)

    def prune_slices(self, slices: pa.Table, predicate: Predicate, indexes: Indexes) -> Pruning:
        """Prune slices without a selected record."""
        lookup = self._look_up(predicate, indexes.metadata)
        if self.locations is None:
            return lookup
        out = ~numpy_mask(in_groups(slices, self.locations))
        return _final(lookup, "slices", out)

    def _look_up(
        self, predicate: Predicate, metadata: MetadataTable, partitions: Sequence[str] | None = None
    ) -> Pruning:
        """Look up the selected records, in these partitions, and return the report."""
        if self.locations is not None or self._is_unusable:
            return Pruning()
        if RECORD_INDEX not in metadata.partitions or predicate.query.as_of is not None:
            return Pruning()
        report: tuple[str, ...] = ()
        result = Pruning()
        try:
            keys, report = _keys_and_report(predicate, metadata)
            why = None if keys is None else _why_keys_are_missing(predicate.table, predicate.query)
            if why is not None:
                result = Pruning.not_used(RECORD_INDEX, why)
            elif keys is not None:
                self.locations = record_index_locations(metadata, keys, partitions)
        except HudiError as error:
            result = Pruning.not_used(RECORD_INDEX, error)
        self._is_unusable = self.locations is None
        return replace(result, report=(*report, *result.report))


def _final(lookup: Pruning, what: str, out: Mask) -> Pruning:
    return replace(lookup, pruned=out, report=(*lookup.report, pruned_line(RECORD_INDEX, what, out)), is_final=True)


def _keys_and_report(predicate: Predicate, metadata: MetadataTable) -> tuple[pa.StringArray | None, tuple[str, ...]]:
    """Return the record keys that the filter selects, by itself or by secondary indexes, and their lines."""
    keys = selected_keys(predicate)
    if keys is not None:
        return keys, ()
    implied = predicate.filter.implied
    assert implied is not None
    return secondary_index_keys(
        metadata, predicate.query, implied, predicate.schema, predicate.conditions.non_file_columns
    )


def _why_keys_are_missing(table: TableSnapshot, query: Query) -> str | None:
    """Return the reason why the record index may lack rows of a query; None if it has all. Base files alone still have
    records that log files have deleted or moved. With a bucket index, keys are also added in log files, which Apache
    Hudi does not index, and cannot be identified later."""
    if table.config.table_type is not TableType.MERGE_ON_READ:
        return None
    if query.type is QueryType.READ_OPTIMIZED:
        return "base files may have records that log files have deleted or moved since"
    bucketed = detect_bucket_index(table)
    return None if bucketed is None else f"it may lack keys of log files, as {bucketed}"
