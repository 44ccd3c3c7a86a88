"""Plans of change data queries: for each commit and file group, the files with its changes, and how to read them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.arrow.arrays import contiguous
from pyhudi.config import Options
from pyhudi.config.enums import CdcMode
from pyhudi.errors import QueryError
from pyhudi.format.file_names import BASE, CDC, LOG
from pyhudi.read.cdc.cdc_inference import CHANGED_FILES, CdcInferenceCase, cdc_files
from pyhudi.read.cdc.retained_images import earliest_retained_image
from pyhudi.read.execution.file_slice_reader import column_names, slice_context
from pyhudi.read.query.query import Query
from pyhudi.read.schema.partition_values import PathColumns, decode_paths, partition_column_values
from pyhudi.read.schema.table_columns import path_columns, query_columns, resolve_table_schema
from pyhudi.read.selection.incremental_query import completed_compactions, data_writes
from pyhudi.read.selection.table_files import TableFiles
from pyhudi.schema.meta_columns import is_meta_column
from pyhudi.storage.concurrent_reads import concurrent_map
from pyhudi.table.view.file_group_keys import group_keys
from pyhudi.table.view.file_slicing import has_logs_named_by_slice
from pyhudi.table.view.file_system_view import SLICE_SCHEMA, FileSystemView
from pyhudi.timeline.archive.archived_timeline import completions_after

if TYPE_CHECKING:
    from pyhudi.merge.file_slice import SliceContext
    from pyhudi.read.selection.incremental_files import Write
    from pyhudi.storage import Storage
    from pyhudi.table.config.table_config import TableConfig
    from pyhudi.table.table_snapshot import TableSnapshot

CHANGES_SCHEMA = pa.schema([(name, pa.string()) for name in ("op", "ts_ms", "before", "after")])
"""Rows of a change data query: ``i``, ``u`` or ``d``; instant of the commit; the record before and after as JSON."""

_SLICE = pa.struct(list(SLICE_SCHEMA))
_CHECKED_ONE_BY_ONE, _ASKED_AT_A_TIME = 64, 16
_BEFORE = (CdcInferenceCase.BASE_FILE_DELETE, CdcInferenceCase.REPLACE_COMMIT, CdcInferenceCase.LOG_FILE)


@dataclass(frozen=True, slots=True)
class CdcPlan:
    """Plan of a change data query.

    ``tasks``: one row per file group that a commit changed, with the columns of CHANGED_FILES and the file slices
    ``before`` and ``after`` the commit, if they are read. ``reading``: settings for reading slices. ``images``: columns
    of images that are built from slices. ``values``: partition path → values of columns that are not in files.
    ``by_completion``: slices are selected by completion times, otherwise their blocks by requested times.
    ``completions``: completion times of writes, by instant, where slices have log files with blocks of several writes,
    which are selected by them; None: there are no such files.
    """

    tasks: pa.Table
    mode: CdcMode
    reading: SliceContext
    images: tuple[str, ...]
    values: dict[str, dict[str, Any]]
    by_completion: bool
    completions: Mapping[str, str] | None = None

    @property
    def output_schema(self) -> pa.Schema:
        """Columns of the result."""
        return CHANGES_SCHEMA

    def explain(self) -> str:
        """Describe the files to read in a few lines of text."""
        counts = pc.value_counts(self.tasks["case"]).to_pylist()
        return "\n".join(f"{count['values']:<18}{count['counts']}" for count in counts) or "no changes"


def plan_cdc(table: TableSnapshot, query: Query, opts: Options | None = None) -> CdcPlan:
    """Plan the files with the changes of a range of commits; ``opts`` are those of the read.

    Raises:
        QueryError: The table logs no changes, files of the range no longer exist, or a commit of it logged none.
    """
    opts = opts or Options.parse({})
    config = table.config
    _check_supported(config, query)
    writes = sorted(data_writes(table, query), key=lambda write: write.time)
    tasks = _changed_files(writes, query)
    schema = resolve_table_schema(table, None)
    columns = pa.schema([]) if schema is None else query_columns(table, schema.schema, partitions_from_path=False)
    from_path = path_columns(table, columns, partitions_from_path=False)
    reading = slice_context(table, columns, path_columns=from_path, names=column_names(table, columns), opts=opts)
    images = tuple(name for name in columns.names if not is_meta_column(name))
    plan = CdcPlan(_NO_TASKS, config.cdc_mode, reading, images, {}, query.instants.by_completion)
    if not tasks.num_rows:
        return plan
    values = decode_paths(config, columns, pc.unique(tasks["partition"]).to_pylist())
    by_partition = PathColumns(
        values, from_path, partition_column_values(config, columns, values, from_path)
    ).by_partition()
    _check_keys(plan, tasks, populated=config.populate_meta_fields)
    tasks = _with_slices(table, plan, tasks, writes, opts)
    return replace(plan, tasks=tasks, values=by_partition, completions=_completions(table, plan, tasks))


def _check_supported(config: TableConfig, query: Query) -> None:
    """Refuse tables without change data capture, and restrictions of a query that these queries do not have."""
    if not config.cdc_enabled:
        raise QueryError(
            "the table logs no changes (hoodie.table.cdc.enabled=false), so change data queries are not "
            "supported; leave out hoodie.datasource.query.incremental.format for the latest state of changed "
            "records"
        )
    if query.incremental.path_glob or query.incremental.sql_filters:
        raise QueryError("a change data query supports neither a path glob nor SQL filters; filter its rows instead")


def _changed_files(writes: Sequence[Write], query: Query) -> pa.Table:
    """Return the file groups of the query that the writes changed (CHANGED_FILES), in the order of the writes."""
    changed = (cdc_files(write.requested, write.read()) for write in writes)
    return pa.concat_tables([CHANGED_FILES.empty_table(), *(_within(files, query) for files in changed)])


def _completions(table: TableSnapshot, plan: CdcPlan, tasks: pa.Table) -> dict[str, str] | None:
    """Return the completion times by which log blocks are selected; None: all blocks of the slices are read."""
    slices = [contiguous(tasks[name]).drop_null() for name in ("before", "after")]
    if not plan.by_completion or not any(has_logs_named_by_slice(pa.Table.from_struct_array(rows)) for rows in slices):
        return None
    return completions_after(table.active, min(tasks["earlier"].to_pylist()))


def _within(files: pa.Table, query: Query) -> pa.Table:
    if not query.subpath:
        return files
    return files.filter(pc.starts_with(pc.binary_join_element_wise(files["partition"], "", "/"), query.subpath + "/"))


def _check_keys(plan: CdcPlan, tasks: pa.Table, *, populated: bool) -> None:
    cases = set(pc.unique(tasks["case"]).to_pylist())
    by_key = CdcInferenceCase.LOG_FILE in cases or (
        CdcInferenceCase.AS_IS in cases and plan.mode is not CdcMode.DATA_BEFORE_AFTER
    )
    if by_key and not populated:
        raise QueryError(
            "these changes are identified by record key, which the files of the table do not store "
            "(hoodie.populate.meta.fields=false)"
        )


# --- the slices before and after a commit ----------------------------------------------------------------------------

_NO_TASKS = pa.schema(
    [*CHANGED_FILES, pa.field("before", _SLICE), pa.field("after", _SLICE), pa.field("earlier", pa.string())]
).empty_table()


def _with_slices(table: TableSnapshot, plan: CdcPlan, tasks: pa.Table, writes: list[Write], opts: Options) -> pa.Table:
    read_files = _files_read(plan, tasks)
    view = None
    if read_files.num_rows <= _CHECKED_ONE_BY_ONE and not any(pc.any(needs).as_py() for needs in _needs(plan, tasks)):
        present = _present(table.storage, read_files["path"].to_pylist())
    else:
        partitions = sorted(pc.unique(tasks["partition"]).to_pylist())
        files = TableFiles(table, opts, (BASE, LOG, CDC))
        # the cleaner may have removed what they compacted
        commits = table.active.timeline.writes().completed()
        done = completed_compactions(table.active, commits) if plan.by_completion else frozenset()
        changing = set(pc.unique(tasks["instant"]).to_pylist())
        times = {w.requested: w.time for w in writes if w.requested in changing} if plan.by_completion else None
        view = FileSystemView.load(table, partitions=partitions, lister=files.list, compactions=done, archived=times)
        present = view.files["path"]
    _check_files_exist(read_files, present)
    parts = []
    for write in writes:
        write_tasks = tasks.filter(pc.equal(tasks["instant"], write.requested))
        if not write_tasks.num_rows:
            continue
        needs_before, needs_after = _needs(plan, write_tasks)
        earlier, now = _previous_time(write.time), write.time
        key = "completed_by" if plan.by_completion else "as_of"
        before = _slices(view, write_tasks, needs_before, {key: earlier})
        after = _slices(view, write_tasks, needs_after, {key: now})
        if retained := earliest_retained_image(
            table, write, _read_before(write_tasks, needs_before, before, after), by_completion=plan.by_completion
        ):
            raise _missing_files_error(write.requested, f"the cleaner has removed files from before {retained}")
        after = pc.if_else(contiguous(pc.is_valid(write_tasks["written"])), _written(write_tasks), after)
        parts.append(
            write_tasks.append_column("before", before)
            .append_column("after", after)
            .append_column("earlier", pa.repeat(earlier, write_tasks.num_rows))
        )
    return pa.concat_tables(parts).combine_chunks() if parts else _NO_TASKS


def _needs(plan: CdcPlan, tasks: pa.Table) -> tuple[pa.Array, pa.Array]:
    """Return which tasks read the slice before, and the one after the commit, if the commit itself has not written
    it."""
    before = [*_BEFORE, *([CdcInferenceCase.AS_IS] if plan.mode is CdcMode.OP_KEY_ONLY else [])]
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


def _files_read(plan: CdcPlan, tasks: pa.Table) -> pa.Table:
    """Return the files of the range that a query reads, with the instants of their commits."""
    plain = tasks.filter(pc.not_equal(tasks["case"], CdcInferenceCase.BASE_FILE_DELETE))
    written = contiguous(plain["written"])
    if plan.mode is CdcMode.DATA_BEFORE_AFTER:
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


def _previous_time(time: str) -> str:
    """Return the greatest time of the same length before a time, which consists of digits."""
    return str(int(time) - 1).zfill(len(time))
