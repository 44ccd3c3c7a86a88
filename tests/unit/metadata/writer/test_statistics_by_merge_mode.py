"""Statistics that writers keep in each merge mode: those of log files, of partitions, and of expressions."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from pyhudi.config import Options
from pyhudi.config.enums import MergeMode, PartialUpdateMode, TableType
from pyhudi.format.base_file.column_bounds import bounds_type
from pyhudi.metadata.indexes.expression_index_definition import ExpressionIndex, can_be_kept
from pyhudi.metadata.metadata_layout import COLUMN_STATS, PARTITION_STATS
from pyhudi.metadata.writer.enabled_partitions import enabled_partitions
from pyhudi.metadata.writer.file_records import FileRecords
from pyhudi.storage import open_storage
from pyhudi.table.config.table_config import TableConfig

COLUMNS = pa.schema([("i", pa.int32())])
FILES = pa.table({"partition": ["p", "p"], "name": ["a", "b"], "size": [1, 1], "kind": ["base", "log"]})


@pytest.mark.parametrize(
    ("kind", "mode", "partial", "logs", "rows"),
    [
        *((kind, mode, None, True, True) for kind in TableType for mode in MergeMode if mode is not MergeMode.CUSTOM),
        *((TableType.MERGE_ON_READ, MergeMode.COMMIT_TIME_ORDERING, one, False, True) for one in PartialUpdateMode),
        (TableType.COPY_ON_WRITE, MergeMode.CUSTOM, None, False, True),
        (TableType.MERGE_ON_READ, MergeMode.CUSTOM, None, False, False),
    ],
)
def test_statistics_by_merge_mode(
    tmp_path: Path, kind: TableType, mode: MergeMode, partial: PartialUpdateMode | None, logs: bool, rows: bool
) -> None:
    """``logs``: of log files of their own; ``rows``: statistics of files apply to merged rows."""
    properties = {
        "hoodie.table.name": "t",
        "hoodie.table.version": "9",
        "hoodie.timeline.layout.version": "2",
        "hoodie.table.type": str(kind),
        "hoodie.table.partition.fields": "p",
        "hoodie.record.merge.mode": str(mode),
        "hoodie.record.merge.strategy.id": "1897ef5f",
    }
    if partial is not None:
        properties["hoodie.table.partial.update.mode"] = str(partial)
    config = TableConfig(properties)
    stored = bounds_type(COLUMNS)
    bounds = pa.array([{"i": {field.name: 1 for field in stored.field("i").type}}] * 2, stored)
    records = FileRecords.from_table(open_storage(tmp_path), config, COLUMNS, "1").column_stats(FILES, bounds)
    assert len(records) == 1 + logs
    enabled = enabled_partitions(config, Options.parse({"hoodie.metadata.index.column.stats.enable": "true"}))
    assert COLUMN_STATS in enabled
    assert (PARTITION_STATS in enabled) == rows
    index = ExpressionIndex.from_options("expr_index_i", COLUMN_STATS, "i", {"expr": "year"})
    assert can_be_kept(index, config) == rows
