"""Sources of the changes of a file group in a commit: a CDC log, or its data files (Apache Hudi's
``HoodieCDCInferenceCase``)."""

from __future__ import annotations

from enum import StrEnum

import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.arrow.arrays import contiguous
from pyhudi.errors import QueryError
from pyhudi.format.file_names import file_names_of
from pyhudi.timeline.commit_metadata import CommitMetadata
from pyhudi.timeline.operation_types import ALTER_SCHEMA, DELETES, INDEX, REWRITING_OPERATIONS

NO_DATA = REWRITING_OPERATIONS | {INDEX, ALTER_SCHEMA}
"""Operation types that change no records."""

CHANGED_FILES = pa.schema(
    [
        ("instant", pa.string()),
        ("case", pa.string()),
        ("partition", pa.string()),
        ("file_id", pa.string()),
        ("paths", pa.list_(pa.string())),
        ("written", pa.string()),
        ("logged_bytes", pa.int64()),
    ]
)
"""One row per file group that a commit changed. ``paths``: the CDC log, or the written log files; ``written``: the
written base file; ``logged_bytes``: the size of the CDC log, null if it is not known."""


class CdcInferenceCase(StrEnum):
    """Source of the changes. INSERTED_ROWS, which Apache Hudi does not have, are the rows of a base file that have the
    time of the commit, which has inserted them into a file with other rows."""

    AS_IS = "AS_IS"
    BASE_FILE_INSERT = "BASE_FILE_INSERT"
    INSERTED_ROWS = "INSERTED_ROWS"
    BASE_FILE_DELETE = "BASE_FILE_DELETE"
    LOG_FILE = "LOG_FILE"
    REPLACE_COMMIT = "REPLACE_COMMIT"


def cdc_files(instant: str, metadata: CommitMetadata) -> pa.Table:
    """Return the file groups that a commit changed (CHANGED_FILES).

    Raises:
        QueryError: It updated or deleted rows of a base file and logged no changes.
    """
    if metadata.operation in NO_DATA:
        return CHANGED_FILES.empty_table()
    stats = metadata.stats.filter(pc.is_valid(metadata.stats["path"])).combine_chunks()
    is_log = contiguous(pc.starts_with(file_names_of(stats["path"]), "."))
    case = _cases(stats, is_log, deletes=metadata.operation in DELETES)
    unknown = stats["path"].filter(pc.is_null(case))
    if len(unknown):
        raise QueryError(
            f"the commit {instant} rewrote {unknown[0].as_py()!r} without logging its changes: change data "
            "capture was disabled, or its writer does not support it. Begin after this commit"
        )
    paths = contiguous(stats["path"])
    single = pa.ListArray.from_arrays(pa.array(range(len(paths) + 1), pa.int32()), paths)
    columns = [
        pa.repeat(instant, stats.num_rows),
        case,
        contiguous(stats["partitionPath"]),
        contiguous(stats["fileId"]),
        pc.if_else(is_log, single, _change_paths(stats)),
        pc.if_else(is_log, pa.scalar(None, pa.string()), paths),
        _change_bytes(stats),
    ]
    table = pa.Table.from_arrays(columns, schema=CHANGED_FILES)
    return pa.concat_tables([_one_for_each_group(_with_data(table, stats, is_log)), _replaced(instant, metadata)])


def _cases(stats: pa.Table, is_log: pa.Array, *, deletes: bool) -> pa.Array:
    """Return the source of the changes of each file; null if its writer has logged none. ``deletes``: the commit only
    deletes."""
    logged = contiguous(pc.fill_null(pc.greater(pc.list_value_length(_change_paths(stats)), 0), False))
    counts = {
        n: pc.fill_null(contiguous(stats[n]), 0) for n in ("numWrites", "numInserts", "numUpdateWrites", "numDeletes")
    }
    only_inserts = pc.equal(pc.add(counts["numUpdateWrites"], counts["numDeletes"]), 0)
    all_new = pc.and_(only_inserts, pc.equal(counts["numWrites"], counts["numInserts"]))
    some_new = pc.and_(only_inserts, pc.greater(counts["numInserts"], 0))
    all_deleted = pc.and_(pc.equal(counts["numWrites"], 0), pc.greater(counts["numDeletes"], 0))
    if not deletes:
        all_deleted = pc.and_(all_deleted, False)
    return pc.case_when(
        pc.make_struct(logged, is_log, all_deleted, all_new, some_new),
        *(pa.scalar(str(c)) for c in (CdcInferenceCase.AS_IS, CdcInferenceCase.LOG_FILE)),
        *(pa.scalar(str(c)) for c in (CdcInferenceCase.BASE_FILE_DELETE, CdcInferenceCase.BASE_FILE_INSERT)),
        pa.scalar(str(CdcInferenceCase.INSERTED_ROWS)),
    )


def _change_logs(stats: pa.Table) -> pa.ListArray:
    """The CDC logs of each file: structs of path (``key``) and bytes (``value``)."""
    return contiguous(stats["cdcStats"]).cast(pa.list_(pa.struct([("key", pa.string()), ("value", pa.int64())])))


def _change_paths(stats: pa.Table) -> pa.ListArray:
    change_stats = _change_logs(stats)
    lengths = pc.fill_null(pc.list_value_length(change_stats), 0)
    offsets = pc.cumulative_sum(pa.concat_arrays([pa.array([0], pa.int32()), lengths.cast(pa.int32())]))
    return pa.ListArray.from_arrays(offsets, pc.struct_field(change_stats.flatten(), "key"))


def _change_bytes(stats: pa.Table) -> pa.Array:
    """Bytes of each CDC log."""
    sizes_by_log = _change_logs(stats)
    sizes = pa.table(
        {"row": pc.list_parent_indices(sizes_by_log), "size": pc.struct_field(sizes_by_log.flatten(), "value")}
    )
    summed = sizes.group_by("row").aggregate([("size", "sum")])
    at = pc.index_in(
        pa.array(range(len(sizes_by_log)), pa.int64()), value_set=contiguous(summed["row"]).cast(pa.int64())
    )
    return contiguous(summed["size_sum"]).cast(pa.int64()).take(at)


def _with_data(table: pa.Table, stats: pa.Table, is_log: pa.Array) -> pa.Table:
    """Drop log files that do not exist, because their writers had nothing to write."""
    size = pc.fill_null(contiguous(stats["fileSizeInBytes"]), 0)
    rows = pc.add(pc.fill_null(contiguous(stats["numWrites"]), 0), pc.fill_null(contiguous(stats["numDeletes"]), 0))
    return table.filter(pc.or_(pc.invert(is_log), pc.greater(pc.add(size, rows), 0)))


def _one_for_each_group(table: pa.Table) -> pa.Table:
    """Combine several log files of a file group to one change."""
    logs = table.filter(pc.equal(table["case"], CdcInferenceCase.LOG_FILE))
    if not logs.num_rows:
        return table
    flat = logs.select(["instant", "case", "partition", "file_id"]).append_column(
        "path", pc.list_flatten(logs["paths"])
    )
    keys = ["instant", "case", "partition", "file_id"]
    joined = flat.group_by(keys, use_threads=False).aggregate([("path", "list")])
    nothing = [pa.nulls(joined.num_rows, kind) for kind in (pa.string(), pa.int64())]
    columns = [*(joined[key] for key in keys), joined["path_list"], *nothing]
    others = table.filter(pc.not_equal(table["case"], CdcInferenceCase.LOG_FILE))
    return pa.concat_tables([others, pa.Table.from_arrays(columns, schema=CHANGED_FILES)])


def _replaced(instant: str, metadata: CommitMetadata) -> pa.Table:
    if metadata.replaced is None:
        return CHANGED_FILES.empty_table()
    replaced = metadata.replaced.filter(pc.is_valid(metadata.replaced["file_id"]))
    count = replaced.num_rows
    columns = [
        pa.repeat(instant, count),
        pa.repeat(str(CdcInferenceCase.REPLACE_COMMIT), count),
        replaced["partition"],
        replaced["file_id"],
        pa.array([[]] * count, pa.list_(pa.string())),
        pa.nulls(count, pa.string()),
        pa.nulls(count, pa.int64()),
    ]
    return pa.Table.from_arrays(columns, schema=CHANGED_FILES)
