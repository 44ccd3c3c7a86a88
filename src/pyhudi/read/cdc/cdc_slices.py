"""File slices before and after the commits of a change data query."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.arrow.arrays import contiguous
from pyhudi.config import Options
from pyhudi.config.enums import CdcMode
from pyhudi.errors import QueryError
from pyhudi.format.file_names import BASE, CDC, LOG
from pyhudi.read.cdc.cdc_context import CdcContext
from pyhudi.read.cdc.cdc_inference import CHANGED_FILES, CdcInferenceCase
from pyhudi.read.cdc.retained_images import earliest_retained_image
from pyhudi.read.selection.completed_writes import CompletedWrite, completed_compactions
from pyhudi.read.selection.table_files import TableFiles
from pyhudi.storage import Storage
from pyhudi.storage.concurrent_reads import concurrent_map
from pyhudi.table.table_snapshot import TableSnapshot
from pyhudi.table.view.file_group_keys import group_keys
from pyhudi.table.view.file_slicing import SLICE_SCHEMA
from pyhudi.table.view.file_system_view import FileSystemView
from pyhudi.timeline.instant import just_before

_SLICE = pa.struct(list(SLICE_SCHEMA))
TASKS_SCHEMA = pa.schema(
    [*CHANGED_FILES, pa.field("before", _SLICE), pa.field("after", _SLICE), pa.field("earlier", pa.string())]
)
"""One row per file group that a commit changed: its files, the slices before and after the commit, null where they are
not read, and the time before that of the commit."""
_CHECKED_ONE_BY_ONE, _ASKED_AT_A_TIME = 64, 16
_BEFORE = (CdcInferenceCase.BASE_FILE_DELETE, CdcInferenceCase.REPLACE_COMMIT, CdcInferenceCase.LOG_FILE)


def with_slices(
    table: TableSnapshot, context: CdcContext, tasks: pa.Table, writes: list[CompletedWrite], opts: Options
) -> pa.Table:
    """Return changed files with the slices before and after their commits.

    Args:
        table: The table.
        context: How images are read.
        tasks: The changed files (CHANGED_FILES), at least one.
        writes: The writes of the range, ordered by time.
        opts: Options of the read.

    Returns:
        The tasks (TASKS_SCHEMA) in the order of the writes.

    Raises:
        QueryError: Files of the range no longer exist.
    """
    read_files = _files_read(context, tasks)
    if read_files.num_rows <= _CHECKED_ONE_BY_ONE and not any(pc.any(need).as_py() for need in _needs(context, tasks)):
        view, present = None, _present(table.storage, read_files["path"].to_pylist())
    else:
        view = _load_view(table, context, tasks, writes, opts)
        present = view.files["path"]
    _check_files_exist(read_files, present)
    by_write = ((write, tasks.filter(pc.equal(tasks["instant"], write.requested))) for write in writes)
    parts = [_of_write(table, context, view, write, changed) for write, changed in by_write if changed.num_rows]
    return pa.concat_tables(parts).combine_chunks() if parts else TASKS_SCHEMA.empty_table()


def _load_view(
    table: TableSnapshot, context: CdcContext, tasks: pa.Table, writes: list[CompletedWrite], opts: Options
) -> FileSystemView:
    """List the partitions of the changed files."""
    partitions = sorted(pc.unique(tasks["partition"]).to_pylist())
    lister = TableFiles(table, opts, (BASE, LOG, CDC)).list
    if not context.by_completion:
        return FileSystemView.load(table, partitions=partitions, lister=lister, compactions=frozenset())
    # the cleaner may have removed what they compacted
    done = completed_compactions(table.active, table.active.timeline.writes().completed())
    changing = set(pc.unique(tasks["instant"]).to_pylist())
    times = {write.requested: write.time for write in writes if write.requested in changing}
    return FileSystemView.load(table, partitions=partitions, lister=lister, compactions=done, archived=times)


def _of_write(
    table: TableSnapshot, context: CdcContext, view: FileSystemView | None, write: CompletedWrite, changed: pa.Table
) -> pa.Table:
    """Return the files that one write has changed with their slices."""
    needs_before, needs_after = _needs(context, changed)
    earlier, key = just_before(write.time), "completed_by" if context.by_completion else "as_of"
    before = _slices(view, changed, needs_before, {key: earlier})
    after = _slices(view, changed, needs_after, {key: write.time})
    if retained := earliest_retained_image(
        table, write, _read_before(changed, needs_before, before, after), by_completion=context.by_completion
    ):
        raise _missing_files_error(write.requested, f"the cleaner has removed files from before {retained}")
    after = pc.if_else(contiguous(pc.is_valid(changed["written"])), _written(changed), after)
    changed = changed.append_column("before", before).append_column("after", after)
    return changed.append_column("earlier", pa.repeat(earlier, changed.num_rows))


def _needs(context: CdcContext, tasks: pa.Table) -> tuple[pa.Array, pa.Array]:
    """Return which tasks read the slice before, and the one after the commit, if the commit itself has not written
    it."""
    before = [*_BEFORE, *([CdcInferenceCase.AS_IS] if context.mode is CdcMode.OP_KEY_ONLY else [])]
    return (
        pc.is_in(tasks["case"], value_set=pa.array([str(case) for case in before])),
        pc.equal(tasks["case"], CdcInferenceCase.LOG_FILE),
    )


def _read_before(tasks: pa.Table, needed: pa.Array, before: pa.Array, after: pa.Array) -> pa.Table:
    """Return which files a commit has appended to, and the slices of it that are read (`earliest_retained_image`)."""
    appended = contiguous(pc.equal(tasks["case"], CdcInferenceCase.LOG_FILE))
    return pa.table({"appended": appended, "before": before, "after": after}).filter(needed)


def _slices(view: FileSystemView | None, tasks: pa.Table, is_needed: pa.Array, cut: dict[str, str]) -> pa.Array:
    """Return the slice of each task's file group at a time; null if it is not needed or did not exist."""
    if view is None or not pc.any(is_needed).as_py():
        return pa.nulls(tasks.num_rows, _SLICE)
    slices = view.latest_slices(**cut).select([field.name for field in _SLICE]).combine_chunks()
    at = pc.index_in(group_keys(tasks), value_set=group_keys(slices))
    at = pc.if_else(is_needed, at, pa.scalar(None, pa.int32()))
    whole = slices.to_struct_array()
    whole = (whole.combine_chunks() if isinstance(whole, pa.ChunkedArray) else whole).cast(_SLICE)
    at = at.combine_chunks() if isinstance(at, pa.ChunkedArray) else at
    return whole.take(at)


def _written(tasks: pa.Table) -> pa.Array:
    """Return the base file that each task's commit has written, as a slice."""
    none = pa.array([[]] * tasks.num_rows, pa.list_(pa.string()))
    sizes = pa.array([[]] * tasks.num_rows, pa.list_(pa.int64()))
    columns = [tasks[name].combine_chunks() for name in ("partition", "file_id", "instant", "written")]
    return pa.StructArray.from_arrays(
        [*columns, pa.nulls(tasks.num_rows, pa.int64()), none, sizes], fields=list(_SLICE)
    )


def _files_read(context: CdcContext, tasks: pa.Table) -> pa.Table:
    """Return the files of the range that a query reads, with the instants of their commits."""
    plain = tasks.filter(pc.not_equal(tasks["case"], CdcInferenceCase.BASE_FILE_DELETE))
    written = contiguous(plain["written"])
    if context.mode is CdcMode.DATA_BEFORE_AFTER:
        logged = contiguous(pc.equal(plain["case"], CdcInferenceCase.AS_IS))  # The log has both images.
        written = pc.if_else(logged, pa.scalar(None, pa.string()), written)
    files = pa.table(
        {
            "instant": pa.concat_arrays([_instants(plain), _listed(plain)]),
            "path": pa.concat_arrays([written, contiguous(pc.list_flatten(plain["paths"]))]),
        }
    )
    return files.filter(pc.is_valid(files["path"]))


def _present(storage: Storage, paths: list[str]) -> pa.Array:
    """Return which of a few files exist, without listing their partitions."""
    exists = concurrent_map(storage.exists, paths, threads=_ASKED_AT_A_TIME)
    return pa.array(paths, pa.string()).filter(pa.array(exists, pa.bool_()))


def _check_files_exist(read_files: pa.Table, present: pa.ChunkedArray | pa.Array) -> None:
    """Raise an error for a range whose files no longer exist."""
    missing = read_files.filter(pc.invert(pc.is_in(read_files["path"], value_set=present)))
    if missing.num_rows:
        example = missing.slice(0, 1).to_pylist()[0]
        raise _missing_files_error(
            example["instant"],
            f"{missing.num_rows} files of the range have been removed, among them {example['path']!r}",
        )


def _instants(tasks: pa.Table) -> pa.Array:
    return contiguous(tasks["instant"])


def _listed(tasks: pa.Table) -> pa.Array:
    return _instants(tasks).take(contiguous(pc.list_parent_indices(tasks["paths"])))


def _missing_files_error(instant: str, why: str) -> QueryError:
    return QueryError(
        f"the changes of the commit {instant} are no longer available: {why}. Begin later, or retain more commits "
        "with hoodie.clean.commits.retained"
    )
