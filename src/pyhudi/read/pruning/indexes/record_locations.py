"""Locations of the records that a filter selects by key, or by values of secondary indexes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from pyhudi.config.enums import TableType
from pyhudi.errors import HudiError
from pyhudi.metadata.metadata_layout import RECORD_INDEX
from pyhudi.read.pruning.indexes.record_index_pruning import equality_keys, record_index_locations
from pyhudi.read.pruning.indexes.secondary_index_lookup import secondary_index_keys
from pyhudi.table.bucket_index_detection import detect_bucket_index

if TYPE_CHECKING:
    from pyhudi.config import Options
    from pyhudi.metadata.reader.metadata_table import MetadataTable
    from pyhudi.read.filters.row_filter import RowFilter
    from pyhudi.read.pruning.statistics.statistics_conditions import StatisticsEvaluator
    from pyhudi.read.query.query import Query
    from pyhudi.read.selection.table_files import TableFiles
    from pyhudi.table.pinned_table import PinnedTable


@dataclass
class RecordLocations:
    """Record index lookup of one query, executed once; ``found`` is the result (`LOCATION_SCHEMA`)."""

    table: PinnedTable
    files: TableFiles
    query: Query
    conditions: StatisticsEvaluator
    rows: RowFilter | None
    opts: Options
    locations: pa.Table | None = None
    is_unusable: bool = False

    def selected_keys(self) -> pa.StringArray | None:
        """Record keys that the filter selects; None: it does not restrict them."""
        assert self.rows is not None
        if any(self.conditions.is_changed(name) for name in self.table.config.record_keys):
            return None
        return equality_keys(self.rows, self.conditions.schema, self.table.config, self.opts)

    def look_up(
        self, metadata: MetadataTable, partitions: list[str] | None = None
    ) -> tuple[pa.Table | None, list[str]]:
        """Return the locations of the records that the filter selects, in these partitions, and the lines of the
        report; None if the filter does not restrict keys, or no index has them."""
        if RECORD_INDEX not in metadata.partitions or self.query.as_of is not None or self.is_unusable:
            return None, []
        report: list[str] = []
        if self.locations is None:
            try:
                keys = self.selected_keys()
                if keys is None:
                    keys, report = self._by_secondary(metadata)
                why = None if keys is None else self._why_keys_are_missing()
                if why is not None:
                    report.append(f"{RECORD_INDEX}: not used: {why}")
                elif keys is not None:
                    self.locations = record_index_locations(metadata, keys, partitions)
            except HudiError as e:
                self.files.disable_indexes(e)
                report.append(f"{RECORD_INDEX}: not used: {e}")
            self.is_unusable = self.locations is None
        return self.locations, report

    def _why_keys_are_missing(self) -> str | None:
        """Return the reason why the record index may lack keys; None if it has all. With a bucket index, keys are also
        added in log files, which Apache Hudi does not index, and cannot be identified later."""
        if self.table.config.table_type is not TableType.MERGE_ON_READ:
            return None
        bucketed = detect_bucket_index(self.table)
        return None if bucketed is None else f"it may lack keys of log files, as {bucketed}"

    def _by_secondary(self, metadata: MetadataTable) -> tuple[pa.StringArray | None, list[str]]:
        """Return the record keys of the rows that the filter selects by the values of indexed columns, and the lines of
        the report."""
        assert self.rows is not None
        by_values = secondary_index_keys(
            metadata, self.query, self.rows, self.conditions.schema, self.conditions.non_file_columns
        )
        return (None, []) if by_values is None else (by_values[0], [by_values[1]])
