"""Procedures that show the sizes of written files, and write amplification."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyspark.sql import SparkSession

from pyhudi.spark.sql.procedures.arguments import Arguments, Procedure, Rows
from pyhudi.spark.sql.procedures.timeline.commit_statistics import completed_writes
from pyhudi.timeline.commit_metadata import total
from pyhudi.timeline.instant import Action


def stats_file_sizes(spark: SparkSession, arguments: Arguments) -> Rows:
    """Show how large the files of each write are, and of all."""
    active = arguments.client(spark).active_timeline()
    sizes = [(i.requested, m.stats["fileSizeInBytes"]) for i, m in completed_writes(active) if m.stats.num_rows]
    rows = [(name, *_spread(values)) for name, values in sizes]
    if sizes:
        rows.append(("ALL", *_spread(pa.chunked_array([c for _, values in sizes for c in values.chunks]))))
    return arguments.limited(rows)


def _spread(values: pa.ChunkedArray) -> list[Any]:
    """Least, 10th, 50th percentile, mean, 95th percentile, greatest, number and standard deviation, as Apache Hudi's
    histograms have them."""
    ordered = np.sort(values.to_numpy())
    low, half, high = (_percentile(ordered, share) for share in (0.1, 0.5, 0.95))
    spread = float(ordered.std(ddof=1)) if len(ordered) > 1 else 0.0
    return [int(ordered[0]), low, half, float(ordered.mean()), high, int(ordered[-1]), len(ordered), spread]


def _percentile(ordered: npt.NDArray[np.int64], share: float) -> float:
    """A value between two neighbours, of which the place counts from one to one more than there are."""
    place = share * (len(ordered) + 1)
    at = min(max(int(place), 1), len(ordered))
    above = min(at, len(ordered) - 1)
    part = place - at if 1 <= place < len(ordered) else 0.0
    return float(ordered[at - 1] + part * (ordered[above] - ordered[at - 1]))


def stats_wa(spark: SparkSession, arguments: Arguments) -> Rows:
    """Show how many records each commit has written for each that it changed, and all of them together."""
    active = arguments.client(spark).active_timeline()
    rows, changed, written = [], 0, 0
    for instant, metadata in reversed(
        [write for write in completed_writes(active) if write[0].action == Action.COMMIT]
    ):
        counts = total(metadata.stats, "numUpdateWrites"), total(metadata.stats, "numWrites")
        rows.append((instant.requested, *counts, _factor(*counts)))
        changed, written = changed + counts[0], written + counts[1]
    return [*arguments.limited(rows), ("Total", changed, written, _factor(changed, written))]


def _factor(changed: int, written: int) -> str:
    return f"{written / changed:.2f}" if changed else "0"


PROCEDURES: dict[str, Procedure] = {"stats_file_sizes": stats_file_sizes, "stats_wa": stats_wa}
