"""Files written in an incremental range, and whether file slices still contain them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.arrow.arrays import contiguous
from pyhudi.format.file_names import BASE, LOG, file_names_of, file_paths, parse_names
from pyhudi.read.selection.completed_writes import CompletedWrite
from pyhudi.storage.concurrent_reads import concurrent_map
from pyhudi.table.view.file_group_keys import group_keys, in_groups
from pyhudi.timeline.commit_metadata import REPLACED_SCHEMA

_WRITTEN_SCHEMA = pa.schema(
    [(name, pa.string()) for name in ("partition", "file_id", "path", "order", "kind", "instant")]
)


def written_files(writes: Sequence[CompletedWrite]) -> pa.Table:
    """Return the base and log files that the writes wrote: partition, file_id, path, ``order`` (the write's time),
    kind, and the instant in the file's name."""
    stats = concurrent_map(lambda w: w.read().stats, writes)
    table = pa.concat_tables([_files_of_write(t, w.time) for w, t in zip(writes, stats, strict=True)])
    names = file_names_of(table["path"])
    parsed = parse_names(names)
    table = table.append_column("kind", parsed["kind"]).append_column("instant", parsed["instant"])
    return table.filter(pc.is_in(table["kind"], value_set=pa.array([BASE, LOG]))).cast(_WRITTEN_SCHEMA)


def replaced_by(writes: Sequence[CompletedWrite]) -> pa.Table:
    """Return the file groups that the writes have replaced (`REPLACED_SCHEMA`)."""
    replaced = (write.read().replaced for write in writes)
    return pa.concat_tables([REPLACED_SCHEMA.empty_table(), *(groups for groups in replaced if groups is not None)])


def _files_of_write(stats: pa.Table, time: str) -> pa.Table:
    """Return the files of one write. If log writers had nothing to write, the metadata contain names of files that do
    not exist."""
    stats = stats.filter(pc.is_valid(stats["path"]))
    counts = (pc.fill_null(stats[name], 0) for name in ("fileSizeInBytes", "numWrites", "numDeletes"))
    size, writes, deletes = counts
    is_log = pc.starts_with(file_names_of(stats["path"]), ".")
    stats = stats.filter(pc.or_(pc.invert(is_log), pc.greater(pc.add(size, pc.add(writes, deletes)), 0)))
    columns = [stats["partitionPath"], stats["fileId"], stats["path"]]
    table = pa.Table.from_arrays(columns, names=["partition", "file_id", "path"])
    several = stats.filter(pc.greater(pc.list_value_length(stats["logFiles"]), 1))
    if several.num_rows:
        of = pc.list_parent_indices(several["logFiles"])
        folders = several["partitionPath"].take(of)
        names = pc.list_flatten(several["logFiles"])
        paths = file_paths(folders, names)
        more = pa.Table.from_arrays([folders, several["fileId"].take(of), paths], names=table.column_names)
        table = pa.concat_tables([table, more])
    return table.append_column("order", pa.array([time] * table.num_rows, pa.string()))


def lost_files(
    written: pa.Table,
    slices: pa.Table,
    completions: Callable[[pa.ChunkedArray], pa.Array] | None,
    compactions: Collection[str],
) -> str:
    """Describe the files that writes to the slices' file groups have written and that slices no longer contain; empty
    if there are none.

    A base file is lost if the newest one of its group is not the slice's, unless the slice's is of one of the
    ``compactions`` that were requested in the range and completed after it, which has all records up to its request. A
    log file is lost if it is not among the slice's and is not older than the slice's base file, which would include its
    records. ``completions`` returns the times that order log files among base files; None: the instants in their names
    do.
    """
    compacted_later = slices.filter(
        pc.is_in(slices["base_instant"], value_set=pa.array(sorted(compactions), pa.string()))
    )
    base = written.filter(pc.equal(written["kind"], BASE)).sort_by([("order", "ascending")])
    base = base.filter(pc.invert(in_groups(base, compacted_later)))
    newest = base.group_by(["partition", "file_id"], use_threads=False).aggregate([("path", "last")])["path_last"]
    missing = newest.filter(pc.invert(pc.is_in(newest, value_set=contiguous(slices["base_path"]))))
    if len(missing):
        return f"{len(missing)} of its files no longer exist, among them {missing[0].as_py()!r}"
    logs = written.filter(pc.equal(written["kind"], LOG))
    in_slices = pc.is_in(logs["path"], value_set=contiguous(pc.list_flatten(slices["log_paths"])))
    logs = logs.filter(pc.invert(in_slices))
    owner = pc.index_in(group_keys(logs), value_set=group_keys(slices))
    compacted = pc.if_else(pc.is_valid(slices["base_path"]), slices["base_instant"], pa.scalar(None, pa.string()))
    placed = logs["instant"] if completions is None else completions(logs["instant"])
    inside = pc.greater(contiguous(compacted).take(owner), contiguous(placed))
    logs = logs.filter(pc.invert(pc.fill_null(inside, False)))
    if not logs.num_rows:
        return ""
    example = logs.slice(0, 1).to_pylist()[0]
    return (
        f"log files of it no longer exist, among them those of {example['file_id']!r} in partition "
        f"{example['partition']!r}"
    )
