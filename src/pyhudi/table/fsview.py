"""The file-system view: which files make up a table, as of which instant. All columnar, no Python object per file.

A listing gives the files; the timeline says which of them count (``Timeline.contains_or_before_start``, cut at the
instant of a time travel); completed replacecommits hide file groups; what is left falls into file slices: a base file
and the log files that follow it.

A log file of table version 6 carries the base instant of its slice in its name. From version 8 on it carries the
instant of its delta commit and belongs to the newest base instant that is not after that commit's completion. A
pending compaction opens a slice without a base file, whose logs a reader merges with the slice before.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from pyhudi.format.filenames import BASE, LOG
from pyhudi.table.groups import (
    GROUP_SCHEMA,
    completions_of_archived,
    pending_slices,
    replaced_groups,
    without_leftovers,
)
from pyhudi.table.listing import FILE_SCHEMA, list_files
from pyhudi.timeline.timeline import Timeline

if TYPE_CHECKING:
    from pyhudi.storage.base import Storage
    from pyhudi.table.config import TableConfig
    from pyhudi.timeline.active import ActiveTimeline

BASE_FILE_SCHEMA = pa.schema(
    [
        ("partition", pa.string()),
        ("file_id", pa.string()),
        ("instant", pa.string()),
        ("token", pa.string()),
        ("path", pa.string()),
        ("size", pa.int64()),
    ]
)

SLICE_SCHEMA = pa.schema(
    [
        ("partition", pa.string()),
        ("file_id", pa.string()),
        ("base_instant", pa.string()),
        ("base_path", pa.string()),
        ("base_size", pa.int64()),
        ("log_paths", pa.list_(pa.string())),
        ("log_sizes", pa.list_(pa.int64())),
    ]
)
"""One row per file slice, sorted by partition, file id and base instant. ``base_path`` and ``base_size`` are null for
a slice of logs only; logs are in the order in which they are merged."""


Lister = Callable[["Storage", Sequence[str] | None], tuple[pa.Table, list[str]]]
"""Gives the files of a table, or of some partitions, and the partition paths, as `list_files` does."""


class OpenTable(Protocol):
    """What a view needs of a table: a ``TableMetaClient``, or one pinned to a moment."""

    @property
    def storage(self) -> Storage: ...
    @property
    def config(self) -> TableConfig: ...
    def active_timeline(self) -> ActiveTimeline: ...


class FileSystemView:
    """The files of a table (or of some partitions) and the slices they form.

    ``files`` has `FILE_SCHEMA`. ``replaced`` (partition, file_id, instant) names the file groups that each completed
    replacecommit took out of view, ``pending`` (same columns) the slices that pending compactions have opened.
    ``by_completion`` is set for table versions 8 and later; ``archived`` gives completion times of instants that have
    left the active timeline.
    """

    def __init__(
        self,
        files: pa.Table,
        timeline: Timeline,
        *,
        replaced: pa.Table | None = None,
        pending: pa.Table | None = None,
        by_completion: bool = True,
        archived: Mapping[str, str] | None = None,
        partitions: Sequence[str] = (),
    ) -> None:
        self.files = files
        self.timeline = timeline
        self.partitions = list(partitions)
        self._replaced = replaced if replaced is not None else GROUP_SCHEMA.empty_table()
        self._pending = pending if pending is not None else GROUP_SCHEMA.empty_table()
        self._by_completion = by_completion
        self._archived = archived or {}

    @classmethod
    def load(
        cls,
        client: OpenTable,
        timeline: Timeline | None = None,
        partitions: Sequence[str] | None = None,
        lister: Lister | None = None,
    ) -> FileSystemView:
        """List the table, or only the given partitions, and read what the timeline says about its files.

        ``timeline`` defaults to the client's active timeline, ``lister`` to listing the storage.
        """
        active = client.active_timeline()
        known = active.timeline if timeline is None else timeline
        files, found = (lister or list_files)(client.storage, partitions)
        files = without_leftovers(active, files)
        by_completion = client.config.version >= 8
        return cls(
            files,
            known,
            replaced=replaced_groups(active, known),
            pending=pending_slices(active, known),
            by_completion=by_completion,
            archived=completions_of_archived(client.storage, active, files, known) if by_completion else None,
            partitions=found,
        )

    def __repr__(self) -> str:
        return f"FileSystemView({self.files.num_rows} files in {len(self.partitions)} partitions)"

    # --- what is visible ---------------------------------------------------------------------------------------------

    def base_files(self, as_of: str | None = None, *, completed_by: str | None = None) -> pa.Table:
        """All committed base files of file groups that are not replaced (`BASE_FILE_SCHEMA`), older versions included.

        ``as_of`` cuts at a requested time, ``completed_by`` at a completion time, both inclusive.
        """
        counts = self._instant_counts(as_of, completed_by)
        base = self._committed(BASE, counts)
        return self._not_replaced(base, counts).select(BASE_FILE_SCHEMA.names)

    def latest_base_files(self, as_of: str | None = None, *, completed_by: str | None = None) -> pa.Table:
        """The newest committed base file of every visible file group: what a read-optimized query reads."""
        base = self.base_files(as_of, completed_by=completed_by)
        group = _group_codes(base)
        order = np.lexsort((_ranks(base["token"]), _ranks(base["instant"]), group))
        last = np.append(np.diff(group[order]) != 0, True) if len(order) else np.zeros(0, dtype=bool)
        return _sorted(base.take(pa.array(order[last])), "instant")

    def latest_slices(self, as_of: str | None = None, *, completed_by: str | None = None) -> pa.Table:
        """The newest slice of every visible file group (`SLICE_SCHEMA`), as a snapshot query merges it.

        Logs of a slice that a pending compaction has opened are part of the slice before, which they update.
        """
        slices = self._slices(as_of, completed_by, split_pending=False)
        group = _group_codes(slices)
        last = np.append(np.diff(group) != 0, True) if len(group) else np.zeros(0, dtype=bool)
        return slices.filter(pa.array(last))

    def all_slices(self, as_of: str | None = None, *, completed_by: str | None = None) -> pa.Table:
        """Every slice of the visible file groups (`SLICE_SCHEMA`), those opened by pending compactions included."""
        return self._slices(as_of, completed_by, split_pending=True)

    def replaced_groups(self, as_of: str | None = None, *, completed_by: str | None = None) -> pa.Table:
        """File groups hidden by replacecommits up to that time: partition, file_id, instant."""
        counts = self._instant_counts(as_of, completed_by)
        return self._replaced.filter(_where(self._replaced["instant"], counts))

    # --- how ---------------------------------------------------------------------------------------------------------

    def _instant_counts(self, as_of: str | None, completed_by: str | None) -> Callable[[str], bool]:
        timeline, archived = self.timeline, self._archived

        def counts(instant: str) -> bool:
            if as_of is not None and instant > as_of:
                return False
            if not timeline.contains_or_before_start(instant):
                return False
            if completed_by is None:
                return True
            done = timeline.completion_of(instant) or archived.get(instant) or instant
            return done <= completed_by

        return counts

    def _committed(self, kind: str, counts: Callable[[str], bool]) -> pa.Table:
        files = self.files.filter(pc.equal(self.files["kind"], kind))
        return files.filter(_where(files["instant"], counts))

    def _not_replaced(self, files: pa.Table, counts: Callable[[str], bool]) -> pa.Table:
        hidden = self._replaced.filter(_where(self._replaced["instant"], counts))
        if hidden.num_rows == 0 or files.num_rows == 0:
            return files
        return files.filter(pc.invert(pc.is_in(_group_keys(files), value_set=_group_keys(hidden))))

    def _logs(self, counts: Callable[[str], bool], as_of: str | None) -> pa.Table:
        """Visible log files with the column ``key``: what places them among the base instants of their group."""
        if self._by_completion:
            logs = self._committed(LOG, counts)
            done = self.timeline.completion_of
            key = _mapped(logs["instant"], lambda i: done(i) or self._archived.get(i) or i)
        else:
            # committed or not is told block by block: the name has the slice's base instant, not the writer's
            logs = self.files.filter(pc.equal(self.files["kind"], LOG))
            if as_of is not None:
                logs = logs.filter(pc.less_equal(logs["instant"], as_of))
            key = logs["instant"]
        return logs.append_column("key", key)

    def _slices(self, as_of: str | None, completed_by: str | None, *, split_pending: bool) -> pa.Table:
        counts = self._instant_counts(as_of, completed_by)
        base = self._committed(BASE, counts)
        events = [base.append_column("key", base["instant"]), self._logs(counts, as_of)]
        if split_pending and self._pending.num_rows:
            events.append(_pending_events(self._pending, as_of))
        files = self._not_replaced(pa.concat_tables(events), counts)
        if files.num_rows == 0:
            return SLICE_SCHEMA.empty_table()
        return _fold_slices(files)


def _fold_slices(files: pa.Table) -> pa.Table:
    """Cut files (`FILE_SCHEMA` plus ``key``; kind ``pending`` opens a slice without a file) into `SLICE_SCHEMA`.

    In the order of their keys within a group, every base file starts a slice and the logs after it are its own. Logs
    before the first base file of a group form a slice of logs.
    """
    is_log = _to_numpy(pc.equal(files["kind"], LOG))
    group = _group_codes(files)
    # the last of these counts most; a base file comes before logs of an equal key
    order = np.lexsort((_ranks(files["token"]), is_log, _ranks(files["key"]), group))
    is_log, group = is_log[order], group[order]
    files = files.take(pa.array(order))
    new_group = np.append(True, np.diff(group) != 0)
    # a retried write can leave two base files of one instant: the later token stands
    start = new_group | ~is_log
    twin = np.append((~is_log[:-1]) & (~is_log[1:]) & ~new_group[1:], False)
    if twin.any():
        instant = _ranks(files["instant"])
        twin[:-1] &= instant[:-1] == instant[1:]
        if twin.any():
            return _fold_slices(files.filter(pa.array(~twin)))
    heads = pa.array(np.flatnonzero(start))
    head = files.take(heads)
    has_base = pc.equal(head["kind"], BASE)
    none = pa.scalar(None, pa.string())
    slice_of = (np.cumsum(start) - 1)[is_log]
    logs = files.filter(pa.array(is_log))
    # completion times say which slice a log belongs to, the instants in the names in which order logs are merged
    version = _to_numpy(pc.fill_null(logs["log_version"], 0))
    logs = logs.take(pa.array(np.lexsort((_ranks(logs["token"]), version, _ranks(logs["instant"]), slice_of))))
    counts = np.bincount(slice_of, minlength=head.num_rows)
    offsets = pa.array(np.append(0, np.cumsum(counts)).astype(np.int32))
    lists = [pa.ListArray.from_arrays(offsets, _flat(logs[name])) for name in ("path", "size")]
    columns = [
        head["partition"],
        head["file_id"],
        head["instant"],
        pc.if_else(has_base, head["path"], none),
        pc.if_else(has_base, head["size"], pa.scalar(None, pa.int64())),
        *lists,
    ]
    return _sorted(pa.Table.from_arrays(columns, schema=SLICE_SCHEMA), "base_instant")


def _pending_events(pending: pa.Table, as_of: str | None) -> pa.Table:
    if as_of is not None:
        pending = pending.filter(pc.less_equal(pending["instant"], as_of))
    columns = {
        "kind": pa.array(["pending"] * pending.num_rows, pa.string()),
        "partition": pending["partition"],
        "file_id": pending["file_id"],
        "instant": pending["instant"],
        "key": pending["instant"],
    }
    schema = FILE_SCHEMA.append(pa.field("key", pa.string()))
    arrays = [columns.get(f.name, pa.nulls(pending.num_rows, f.type)) for f in schema]
    return pa.Table.from_arrays(arrays, schema=schema)


# --- Arrow helpers ---------------------------------------------------------------------------------------------------


def _where(instants: pa.ChunkedArray, keep: Callable[[str], bool]) -> pa.Array:
    """A mask from a question that is asked once for each different instant."""
    wanted = [instant for instant in pc.unique(instants).to_pylist() if keep(instant)]
    return pc.is_in(instants, value_set=pa.array(wanted, pa.string()))


def _mapped(instants: pa.ChunkedArray, convert: Callable[[str], str]) -> pa.Array:
    encoded = _flat(instants).dictionary_encode()
    mapped = pa.array([convert(i) for i in encoded.dictionary.to_pylist()], pa.string())
    return mapped.take(encoded.indices)


def _flat(column: pa.ChunkedArray | pa.Array) -> pa.Array:
    return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column


def _to_numpy(column: pa.ChunkedArray | pa.Array) -> NDArray[Any]:
    array: NDArray[Any] = _flat(column).to_numpy(zero_copy_only=False)
    return array


def _group_keys(table: pa.Table) -> pa.Array:
    return _flat(pc.binary_join_element_wise(table["partition"], table["file_id"], "\x00"))


def _group_codes(table: pa.Table) -> NDArray[Any]:
    """A number for each row's file group; equal groups have equal numbers, in the order of first appearance."""
    return _to_numpy(_group_keys(table).dictionary_encode().indices)


def _ranks(column: pa.ChunkedArray) -> NDArray[Any]:
    """Numbers that order as the texts do; null first."""
    encoded = _flat(pc.fill_null(column, "")).dictionary_encode()
    order = np.empty(len(encoded.dictionary), dtype=np.int64)
    order[_to_numpy(pc.sort_indices(encoded.dictionary))] = np.arange(len(encoded.dictionary))
    return order[_to_numpy(encoded.indices)] if len(encoded) else np.zeros(0, dtype=np.int64)


def _sorted(table: pa.Table, last: str) -> pa.Table:
    return table.sort_by([("partition", "ascending"), ("file_id", "ascending"), (last, "ascending")])
