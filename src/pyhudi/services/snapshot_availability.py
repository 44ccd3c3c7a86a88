"""Retained history of a table: earlier snapshots whose files all exist."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.errors import TransactionError
from pyhudi.format.file_names import BASE, LOG, file_name_of, parse_names, split_paths
from pyhudi.services.cleaning.clean_planner import pending_cleans
from pyhudi.storage import Storage, join_path
from pyhudi.storage.concurrent_reads import read_ahead, read_each
from pyhudi.table.clean_retention import base_and_log_files, slices_with_files
from pyhudi.table.table_snapshot import TableSnapshot
from pyhudi.table.view.file_group_keys import group_keys, in_groups
from pyhudi.table.view.file_group_state import GROUP_INSTANT_SCHEMA
from pyhudi.table.view.file_listing import FILE_SCHEMA, list_files
from pyhudi.table.view.file_slicing import instant_mask
from pyhudi.table.view.file_system_view import FileSystemView
from pyhudi.timeline.active_timeline import ActiveTimeline
from pyhudi.timeline.archive.archived_timeline import read_archived_timeline
from pyhudi.timeline.commit_metadata import decode_commit
from pyhudi.timeline.instant import Action, Instant
from pyhudi.timeline.plans.clean_plan import paths_of


def slices_at(view: FileSystemView, instant: Instant) -> pa.Table:
    """Return the file slices (`SLICE_SCHEMA`) of the snapshot after a completed write."""
    if instant.completion is not None:
        return view.latest_slices(completed_by=instant.completion)
    return view.latest_slices(instant.requested)


def check_not_cleaned(table: TableSnapshot, instant: Instant, what: str, *, groups: pa.Table | None = None) -> None:
    """Raise an error if cleans have deleted files of an earlier snapshot, or are going to.

    Cleans may have been archived before the commits whose files they deleted, as Apache Hudi does if a savepoint or a
    pending instant retains these. So it is also checked that the files named by commits exist.

    Args:
        table: The table with its current timeline.
        instant: The completed write whose snapshot is needed.
        what: Start of the error message.
        groups: The file groups (partition, file_id) that are needed, whose partitions are listed; default: all of them.

    Raises:
        TransactionError: Files of the snapshot no longer exist.
    """
    deleted, named = deleted_since(table.active, instant), _named_slices(table.active, instant)
    if groups is not None:
        deleted, named = deleted.filter(in_groups(deleted, groups)), named.filter(in_groups(named, groups))
    if deleted.num_rows:
        _refuse_cleaned(table, instant, what, deleted)
    if named.num_rows:
        _refuse_missing(table, instant, what, named)


def _refuse_cleaned(table: TableSnapshot, instant: Instant, what: str, deleted: pa.Table) -> None:
    """Raise an error if the snapshot needs one of the deleted files."""

    def lister(storage: Storage, partitions: Sequence[str] | None) -> tuple[pa.Table, list[str]]:
        files, partition_paths = list_files(storage, partitions)
        back = deleted.filter(pc.invert(pc.is_in(deleted["path"], value_set=files["path"].combine_chunks())))
        return pa.concat_tables([files, back]), partition_paths

    view = FileSystemView.load(table, partitions=pc.unique(deleted["partition"]).to_pylist(), lister=lister)
    paths = deleted["path"].combine_chunks()
    slices = slices_at(view, instant)
    slices = slices.filter(pa.array(slices_with_files(slices, paths)))
    if slices.num_rows:
        slices = slices.filter(pc.invert(in_groups(slices, _replaced_by_archived(table, instant))))
    needed = paths_of(base_and_log_files(slices))
    missing = needed.filter(pc.is_in(needed, value_set=paths)).to_pylist()
    if missing:
        raise _lost_files(what, instant, len(missing), missing[0])


def _replaced_by_archived(table: TableSnapshot, instant: Instant) -> pa.Table:
    """Return the file groups (partition, file_id) that archived writes up to an instant have replaced.

    A view does not hide them, because there are no files of them any more.
    """
    active, until = table.active, instant.order_time
    archived = read_archived_timeline(active.storage, active.layout, up_to=until, actions=(Action.REPLACE_COMMIT,))
    done = archived.filter(pc.less_equal(pc.coalesce(archived["completion"], archived["requested"]), until))
    replaced = [decode_commit(data).replaced for data in done["metadata"].to_pylist() if data is not None]
    groups = [part.select(["partition", "file_id"]) for part in replaced if part is not None]
    return pa.concat_tables([GROUP_INSTANT_SCHEMA.empty_table().select(["partition", "file_id"]), *groups])


def _lost_files(what: str, instant: Instant, count: int, example: str) -> TransactionError:
    return TransactionError(
        f"{what}: cleaning has deleted {count} files of the snapshot of {instant.requested}, such as "
        f"{example!r}, or is going to. Choose a later instant; to retain snapshots, set savepoints, or retain "
        "more commits with hoodie.clean.commits.retained"
    )


def _refuse_missing(table: TableSnapshot, instant: Instant, what: str, named: pa.Table) -> None:
    """Raise an error if a slice of the snapshot that commits name (`GROUP_INSTANT_SCHEMA`) has no file."""
    files, _ = list_files(table.storage, pc.unique(named["partition"]).to_pylist())
    missing = named.filter(pc.invert(pc.is_in(_slice_keys(named), value_set=_slice_keys(files))))
    if missing.num_rows:
        first = missing.slice(0, 1).to_pylist()[0]
        example = f"{join_path(first['partition'], first['file_id'])} of {first['instant']}"
        raise _lost_files(what, instant, missing.num_rows, example)


def _named_slices(active: ActiveTimeline, instant: Instant) -> pa.Table:
    """Return the newest slice of each file group in a snapshot (`GROUP_INSTANT_SCHEMA`) as far as commits name it:
    earlier ones have written its base file, and later ones have updated it."""
    tables = [GROUP_INSTANT_SCHEMA.empty_table()]
    hidden = [GROUP_INSTANT_SCHEMA.empty_table().select(["partition", "file_id"])]
    writes = active.timeline.completed().writes().instants
    for write, metadata in read_each(active.commit_metadata, writes):
        if write.order_time > instant.order_time:
            tables.append(_updated_slices(active, metadata.stats, instant))
            continue
        tables.append(_written_slices(metadata.stats))
        if metadata.replaced is not None:
            hidden.append(metadata.replaced.select(["partition", "file_id"]))
    named, replaced = pa.concat_tables(tables), pa.concat_tables(hidden)
    named = named.filter(pc.invert(in_groups(named, replaced)))
    newest = named.group_by(["partition", "file_id"], use_threads=False).aggregate([("instant", "max")])
    return newest.rename_columns(GROUP_INSTANT_SCHEMA.names)


def _written_slices(stats: pa.Table) -> pa.Table:
    """Return the slices of the base files that a commit names."""
    folders, names = split_paths(stats["path"].drop_null())
    parsed = parse_names(names)
    columns = [folders, parsed["file_id"].combine_chunks(), parsed["instant"].combine_chunks()]
    slices = pa.Table.from_arrays(columns, schema=GROUP_INSTANT_SCHEMA)
    return slices.filter(pc.equal(parsed["kind"], BASE))


def _updated_slices(active: ActiveTimeline, stats: pa.Table, instant: Instant) -> pa.Table:
    """Return the slices, begun up to an instant, that a later commit has updated. A slice that a compaction has opened
    has no base file before it is completed."""
    slices = stats.select(["partitionPath", "fileId", "prevCommit"]).rename_columns(GROUP_INSTANT_SCHEMA.names)

    def begun(previous: str) -> bool:
        if not previous.isdigit() or previous > instant.requested:
            return False
        return active.timeline.completed().contains_or_before_start(previous)

    return slices.filter(instant_mask(slices["instant"], begun)).cast(GROUP_INSTANT_SCHEMA)


def _slice_keys(slices: pa.Table) -> pa.Array:
    return pc.binary_join_element_wise(group_keys(slices), slices["instant"].combine_chunks(), "\x00")


def deleted_since(active: ActiveTimeline, instant: Instant) -> pa.Table:
    """Return the files (`FILE_SCHEMA`) that cleans later than an instant have deleted, or are going to delete."""
    names: list[tuple[str, str]] = []
    cleans = active.timeline.completed().of_actions(Action.CLEAN).after(instant.requested)
    for record in read_ahead(active.completed_record, cleans):
        for partition, part in record["partitionMetadata"].items():
            names += [(partition, file_name_of(text)) for text in part["deletePathPatterns"]]
    for plan in pending_cleans(active):
        names += [(p, name) for p, file_names in plan.names_by_partition().items() for name in file_names]
    parsed = parse_names(pa.array([name for _, name in names], pa.string()))
    columns = {
        "partition": pa.array([p for p, _ in names], pa.string()),
        "path": pa.array([join_path(p, name) for p, name in names], pa.string()),
        "size": pa.array([0] * len(names), pa.int64()),
        **{name: parsed[name] for name in ("kind", "file_id", "token", "instant", "log_version")},
    }
    files = pa.Table.from_arrays([columns[f.name] for f in FILE_SCHEMA], schema=FILE_SCHEMA)
    return files.filter(pc.is_in(files["kind"], value_set=pa.array([BASE, LOG]))).combine_chunks()
