"""Which file slices are worth a log compaction: those with many log blocks, told by the blocks' headers."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from pyhudi.merge.logfiles import LogFiles
from pyhudi.merge.logscan import counted_blocks
from pyhudi.read.merged import block_view
from pyhudi.services.operations import operation_paths

if TYPE_CHECKING:
    from pyhudi.read.pinned import PinnedTable

_SCAN_THREADS = 8


def worth_compacting(table: PinnedTable, operations: pa.Table, least: int) -> pa.Table:
    """The operations whose slices have at least so many log files, or blocks that count.

    Slices with partial updates are left out: what such a block does not say is to be looked up in the base file, and a
    block of whole records would say that it is null.

    Raises:
        FormatError: a log file is damaged.
    """
    view = block_view(table)

    def is_worth(row: Mapping[str, Any]) -> bool:
        with LogFiles(table.storage) as logs:
            blocks = counted_blocks(logs.blocks(operation_paths(row)[1]), view)
        enough = max(len(row["log_files"]), len(blocks)) >= least
        return enough and not any(block.is_partial for block in blocks)

    with ThreadPoolExecutor(_SCAN_THREADS) as pool:
        return operations.filter(pa.array(list(pool.map(is_worth, operations.to_pylist())), pa.bool_()))
