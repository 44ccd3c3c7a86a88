"""Selection of file slices for log compaction: those with many log blocks, determined from block headers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from pyhudi.merge.logs.log_file_pool import LogFiles
from pyhudi.merge.logs.valid_log_blocks import valid_blocks
from pyhudi.read.execution.file_slice_reader import snapshot_block_view
from pyhudi.storage.concurrent_reads import concurrent_map
from pyhudi.table.table_snapshot import TableSnapshot
from pyhudi.table.view.compaction_operations import operation_paths

_SCAN_THREADS = 8


def log_compaction_candidates(table: TableSnapshot, operations: pa.Table, min_blocks: int) -> pa.Table:
    """Return the operations whose slices have at least ``min_blocks`` log files, or as many valid blocks.

    Slices with partial updates are omitted: columns missing in such a block are taken from the base file, whereas a
    block of whole records would set them to null.

    Raises:
        FormatError: A log file is corrupt.
    """
    view = snapshot_block_view(table)

    def is_worth(row: Mapping[str, Any]) -> bool:
        with LogFiles(table.storage) as logs:
            blocks = valid_blocks(logs.blocks(operation_paths(row)[1]), view)
        enough = max(len(row["log_files"]), len(blocks)) >= min_blocks
        return enough and not any(block.is_partial for block in blocks)

    return operations.filter(
        pa.array(concurrent_map(is_worth, operations.to_pylist(), threads=_SCAN_THREADS), pa.bool_())
    )
