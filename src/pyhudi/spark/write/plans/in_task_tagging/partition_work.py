"""Work of the tasks that write partitions, estimated from the rows and base files of each."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame

from pyhudi.config.enums import TableType
from pyhudi.schema.meta_fields import PARTITION_PATH
from pyhudi.spark.execution.slice_tasks import coalesced
from pyhudi.write.location_columns import PARTITION_SHARE
from pyhudi.write.tasks.in_task_tagging import BASES_SCHEMA, PartitionShare

MAX_PARTITION_BYTES = 1 << 30
"""Most bytes of one partition's base files."""
_SHORT, _BALANCED = 2.0, 1.5
"""Seconds of a task that are always acceptable; limit of the longest task as a multiple of its fair share."""
_SEARCHED_BY_BLOOM = 1.0
"""Seconds of all cores for which files are searched that bloom filters may exclude: as long as Spark takes for the jobs
that look up the filters."""
_SEARCHED, _WRITTEN, _REWRITTEN = 200e6, 400e3, 30e6
"""Throughput of a core per second: bytes of base files whose keys are searched, rows written to log files, bytes of
base files rewritten. Rough, as they only distinguish small partitions from large ones."""
_SHARED = 8 * 1024 * 1024
"""Bytes of base files that justify another task."""
UNCOUNTED_ROWS = 100_000
"""Most rows that one task writes without knowing their number. A batch with more of them loses the time of sorting as
many."""


def count_rows_by_partition(rows: DataFrame) -> list[tuple[str, int]]:
    """Return the number of rows by partition path. Runs a Spark job."""
    return [(path, count) for path, count in coalesced(rows.groupBy(PARTITION_PATH).count()).collect()]


def partition_work(row_counts: Sequence[tuple[str, int]], slices: pa.Table) -> pa.Table:
    """Return the rows of partitions with the size of the partition's base files: partition, rows, size."""
    counts = pa.table(
        {
            "partition": pa.array([r[0] for r in row_counts], pa.string()),
            "rows": pa.array([r[1] for r in row_counts], pa.int64()),
        }
    )
    sizes = partition_sizes(slices)
    at = pc.index_in(counts["partition"].combine_chunks(), value_set=sizes["partition"].combine_chunks())
    return counts.append_column("size", pc.fill_null(sizes["size"].combine_chunks().take(at), 0))


def only_partition(slices: pa.Table) -> pa.Table:
    """Return the partition of a table that is not partitioned, as `partition_work`, if the batch has
    `UNCOUNTED_ROWS`."""
    size = pc.sum(partition_sizes(slices)["size"]).as_py() or 0
    return pa.table({"partition": [""], "rows": [UNCOUNTED_ROWS], "size": [size]})


def is_cheaper(
    partitions: pa.Table, bases: pa.Table, table_type: TableType, cores: int, max_rows: int, *, bloom: bool = False
) -> bool:
    """Return True if the tasks of partitions (`partition_shares`) do not take much longer than all cores together.

    Args:
        partitions: The partitions (`partition_work`).
        bases: Their base files (BASES_SCHEMA).
        table_type: Type of the table.
        cores: Number of tasks that run at a time.
        max_rows: Most rows of a partition.
        bloom: The index of the table is BLOOM. The tasks search files that it might exclude.
    """
    if not partitions.num_rows:
        return False
    rows, size = _rows_and_size(partitions)
    if rows.max() > max_rows or size.max() > MAX_PARTITION_BYTES:
        return False
    lookup = _lookup_seconds(rows, size)
    if bloom and lookup.sum() > _SEARCHED_BY_BLOOM * cores:
        return False
    longest = pc.max(partition_shares(partitions, bases, table_type, cores)["seconds"]).as_py()
    fair = (lookup + _rewrite_seconds(size, table_type)).sum() / cores
    return bool(longest <= max(_SHORT, _BALANCED * fair))


def base_files(slices: pa.Table, partitions: pa.Table) -> pa.Table:
    """Return the base files (BASES_SCHEMA) of some partitions."""
    keep = pc.and_(
        pc.is_valid(slices["base_path"]), pc.is_in(slices["partition"], partitions["partition"].combine_chunks())
    )
    return slices.filter(keep).select(BASES_SCHEMA.names).cast(BASES_SCHEMA).combine_chunks()


def partition_shares(partitions: pa.Table, bases: pa.Table, table_type: TableType, cores: int) -> pa.Table:
    """Return the tasks of each partition: partition path, share (`PARTITION_SHARE`), and the seconds for which it keeps
    a core busy.

    A task for each core that would be idle otherwise rewrites some of the base files of a partition. Each of them
    looks up all keys, which takes a fraction of the time of rewriting. Arguments as of `is_cheaper`.
    """
    rows, size = _rows_and_size(partitions)
    lookup, rewrite = _lookup_seconds(rows, size), _rewrite_seconds(size, table_type)
    count = np.ones(len(rows), dtype=np.int64)
    if table_type is TableType.COPY_ON_WRITE:
        files = pc.value_counts(bases["partition"].combine_chunks())
        at = pc.index_in(partitions["partition"].combine_chunks(), value_set=files.field("values"))
        limit = np.minimum(pc.fill_null(files.field("counts").take(at), 1).to_numpy(), np.round(size / _SHARED))
        seconds = lookup + rewrite
        idle = np.round(cores * seconds / max(seconds.sum(), 1e-9))
        count = np.clip(np.minimum(limit, idle), 1, None).astype(np.int64)
    number = np.repeat(np.arange(len(count)), count)
    first = np.repeat(np.cumsum(count) - count, count)
    share = [
        str(PartitionShare(n, of))
        for n, of in zip((np.arange(len(number)) - first).tolist(), count[number].tolist(), strict=True)
    ]
    taken = (lookup + rewrite / count)[number]
    columns = [partitions["partition"].take(pa.array(number)), pa.array(share), pa.array(taken)]
    return pa.table(columns, names=[PARTITION_PATH, PARTITION_SHARE, "seconds"])


def partition_sizes(slices: pa.Table) -> pa.Table:
    """Return the bytes of base files by partition: the columns partition and size."""
    summed = slices.group_by("partition").aggregate([("base_size", "sum")])
    return pa.table([summed["partition"], pc.fill_null(summed["base_size_sum"], 0)], names=["partition", "size"])


def _rows_and_size(partitions: pa.Table) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Return the rows of each partition and the bytes of its base files."""
    return partitions["rows"].to_numpy().astype(np.float64), partitions["size"].to_numpy().astype(np.float64)


def _lookup_seconds(rows: npt.NDArray[np.float64], size: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Return the estimated seconds for which a core searches the rows of each partition."""
    return rows / _WRITTEN + size / _SEARCHED


def rewritten_bytes(seconds: npt.NDArray[np.float64]) -> npt.NDArray[np.int64]:
    """Return the bytes of base files that a core rewrites in some time."""
    return (seconds * _REWRITTEN).astype(np.int64)


def _rewrite_seconds(size: npt.NDArray[np.float64], table_type: TableType) -> npt.NDArray[np.float64]:
    """Return the estimated seconds for which a core rewrites the base files of each partition."""
    return size / _REWRITTEN if table_type is TableType.COPY_ON_WRITE else np.zeros_like(size)
