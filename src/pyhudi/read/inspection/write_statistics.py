"""Statistics of writes: sizes of the files that they have written, and records written for each that was changed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from pyhudi.read.inspection.partition_patterns import in_partitions
from pyhudi.storage.concurrent_reads import concurrent_map
from pyhudi.timeline.active_timeline import ActiveTimeline
from pyhudi.timeline.commit_metadata import CommitMetadata, total
from pyhudi.timeline.instant import Instant

ALL = "ALL"
"""Name of the row of all writes."""
FILE_SIZES_SCHEMA = pa.schema(
    [
        ("instant", pa.string()),
        ("smallest", pa.int64()),
        ("percentile_10", pa.float64()),
        ("median", pa.float64()),
        ("mean", pa.float64()),
        ("percentile_95", pa.float64()),
        ("largest", pa.int64()),
        ("files", pa.int64()),
        ("standard_deviation", pa.float64()),
    ]
)
"""One row per write with files, newest first, then one of all (``ALL``); sizes in bytes."""
AMPLIFICATION_SCHEMA = pa.schema(
    [
        ("instant", pa.string()),
        ("rows_updated", pa.int64()),
        ("rows_written", pa.int64()),
        ("amplification", pa.float64()),
    ]
)
"""One row per write, newest first, then one of all (``ALL``). ``amplification`` is the number of rows written for each
updated one; null without updates."""


def file_sizes(active: ActiveTimeline, partitions: str | None = None) -> pa.Table:
    """Return how large the files of each completed write of the active timeline are (`FILE_SIZES_SCHEMA`), in
    ``partitions`` (a pattern of `in_partitions`) or in all."""
    writes = [(i.requested, in_partitions(m.stats, partitions, "partitionPath")) for i, m in _writes(active)]
    sizes = [(instant, stats["fileSizeInBytes"]) for instant, stats in writes if stats.num_rows]
    rows = [(name, *_distribution(values)) for name, values in sizes]
    if sizes:
        every = pa.chunked_array([chunk for _, values in sizes for chunk in values.chunks])
        rows.append((ALL, *_distribution(every)))
    return _table(rows, FILE_SIZES_SCHEMA)


def write_amplification(active: ActiveTimeline) -> pa.Table:
    """Return how many rows each completed write of the active timeline has written for each row that it has updated
    (`AMPLIFICATION_SCHEMA`)."""
    counts = [
        (instant.requested, total(metadata.stats, "numUpdateWrites"), total(metadata.stats, "numWrites"))
        for instant, metadata in _writes(active)
    ]
    if counts:
        counts.append((ALL, sum(row[1] for row in counts), sum(row[2] for row in counts)))
    rows = [(name, updated, written, written / updated if updated else None) for name, updated, written in counts]
    return _table(rows, AMPLIFICATION_SCHEMA)


def _writes(active: ActiveTimeline) -> list[tuple[Instant, CommitMetadata]]:
    """Return the completed writes, newest first."""
    instants = list(reversed(list(active.timeline.completed().writes())))
    return list(zip(instants, concurrent_map(active.commit_metadata, instants), strict=True))


def _distribution(values: pa.ChunkedArray) -> list[Any]:
    """Return least, 10th and 50th percentile, mean, 95th percentile, greatest, number and standard deviation, as
    Apache Hudi's histograms have them."""
    ordered = np.sort(values.to_numpy())
    low, half, high = (_percentile(ordered, share) for share in (0.1, 0.5, 0.95))
    deviation = float(ordered.std(ddof=1)) if len(ordered) > 1 else 0.0
    return [int(ordered[0]), low, half, float(ordered.mean()), high, int(ordered[-1]), len(ordered), deviation]


def _percentile(ordered: npt.NDArray[np.int64], share: float) -> float:
    """Return a value between two neighbours, of which the place counts from one to one more than there are."""
    place = share * (len(ordered) + 1)
    at = min(max(int(place), 1), len(ordered))
    above = min(at, len(ordered) - 1)
    part = place - at if 1 <= place < len(ordered) else 0.0
    return float(ordered[at - 1] + part * (ordered[above] - ordered[at - 1]))


def _table(rows: Sequence[Sequence[Any]], schema: pa.Schema) -> pa.Table:
    columns = list(zip(*rows, strict=True)) or [()] * len(schema)
    return pa.table([pa.array(column, field.type) for column, field in zip(columns, schema, strict=True)], schema)
