"""File slices that a query selects by the timeline, with bounds on the instants of their contents."""

from __future__ import annotations

from collections.abc import Container
from dataclasses import dataclass

import pyarrow as pa

from pyhudi.read.selection.commit_time_filter import CommitTimes


@dataclass(frozen=True, slots=True)
class InstantBounds:
    """Bounds on the instants of the rows and log blocks that a query reads in its file slices.

    Attributes:
        commit_times: Condition on the commit times of rows; None: all rows.
        log_blocks: Requested time up to which blocks of log files are valid; None: all of the slices.
        written_by: Instants whose blocks of log files are valid; None: all of the slices.
        schema: Requested time as of which the schema of the table applies; None: the latest schema.
    """

    commit_times: CommitTimes | None = None
    log_blocks: str | None = None
    written_by: Container[str] | None = None
    schema: str | None = None


@dataclass(frozen=True, slots=True)
class PartitionPruning:
    """Partitions that may have rows of a query.

    Attributes:
        paths: Their paths.
        num_partitions: Number of partitions before pruning.
        report: Lines on each index by which they were pruned.
    """

    paths: list[str]
    num_partitions: int
    report: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Selection:
    """File slices of a query.

    Attributes:
        slices: The slices (:data:`pyhudi.table.view.file_slicing.SLICE_SCHEMA`).
        partitions: Paths of all partitions that were considered.
        bounds: Bounds on the instants that are read in the slices.
        pruning: The partitions that may have rows of the query; None: partitions were not pruned.
    """

    slices: pa.Table
    partitions: list[str]
    bounds: InstantBounds = InstantBounds()
    pruning: PartitionPruning | None = None
