"""File-system view: the visible files of a table as of an instant. Columnar, without a Python object per file.

A listing returns the files. The timeline determines which of them are visible (``Timeline.contains_or_before_start``,
restricted to the instant of a time travel), and completed replacecommits hide file groups. The remaining files are
grouped into file slices: a base file and the log files that follow it.

The name of a log file of table version 6 contains the base instant of its slice. From version 8 on it contains the
instant of its delta commit, and the file belongs to the newest base instant that is not later than the completion of
that commit. A pending compaction opens a slice without a base file, whose logs a reader merges with the previous slice.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field
from functools import partial
from typing import Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.format.file_names import BASE, LOG
from pyhudi.storage import Storage
from pyhudi.table.config.table_config import TableConfig
from pyhudi.table.view.file_group_keys import in_groups
from pyhudi.table.view.file_group_state import (
    GROUP_INSTANT_SCHEMA,
    completions_of_archived,
    replaced_groups,
    without_orphaned_files,
)
from pyhudi.table.view.file_listing import list_files
from pyhudi.table.view.file_slicing import (
    SLICE_SCHEMA,
    filtered,
    fold_slices,
    group_codes,
    instant_mask,
    is_sorted_by_unique_group,
    map_instants,
    pending_events,
    sorted_by_group,
    text_ranks,
)
from pyhudi.table.view.pending_file_groups import pending_compaction_groups
from pyhudi.timeline.active_timeline import ActiveTimeline
from pyhudi.timeline.timeline import Timeline

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


Lister = Callable[[Storage, Sequence[str] | None], tuple[pa.Table, list[str]]]
"""Lists the files of a table, or of some partitions, and the partition paths, like `list_files`."""


class OpenTable(Protocol):
    """Table as required by a view: a ``TableMetaClient``, or a pinned one."""

    @property
    def storage(self) -> Storage: ...
    @property
    def config(self) -> TableConfig: ...
    def active_timeline(self) -> ActiveTimeline: ...


@dataclass(frozen=True, slots=True)
class FileInstants:
    """The instants that determine which files of a table are visible and which slices they form.

    Attributes:
        timeline: The timeline of the table.
        replaced: File groups replaced by each completed replacecommit: partition, file_id, instant.
        pending: Slices that pending compactions have opened (same columns).
        by_completion: Log files belong to slices by completion time, as from table version 8 on.
        archived: Completion times of archived instants.
        compactions: Completed compactions whose base files are visible from their requested time on if views are
            restricted to a completion time, because they hold only changes that had completed before they were
            requested.
    """

    timeline: Timeline
    replaced: pa.Table = field(default_factory=GROUP_INSTANT_SCHEMA.empty_table)
    pending: pa.Table = field(default_factory=GROUP_INSTANT_SCHEMA.empty_table)
    by_completion: bool = True
    archived: Mapping[str, str] = field(default_factory=dict)
    compactions: frozenset[str] = frozenset()

    def completion(self, instant: str) -> str:
        """Return the completion time of an instant, or its requested time if unknown."""
        return self.timeline.completion_of(instant) or self.archived.get(instant) or instant

    def is_visible(self, instant: str, as_of: str | None, completed_by: str | None) -> bool:
        """Return True if an instant is completed and not later than the limits of its requested and completion time."""
        if as_of is not None and instant > as_of:
            return False
        if not self.timeline.contains_or_before_start(instant):
            return False
        if completed_by is None:
            return True
        return (instant if instant in self.compactions else self.completion(instant)) <= completed_by


class FileSystemView:
    """The files of a table (or of some partitions) and the slices that they form.

    Args:
        files: The files (`FILE_SCHEMA`).
        instants: State of the files in the timeline.
        partitions: Paths of the partitions.
    """

    def __init__(self, files: pa.Table, instants: FileInstants, partitions: Sequence[str] = ()) -> None:
        self.files = files
        self.timeline = instants.timeline
        self.partitions = list(partitions)
        self._instants = instants

    @classmethod
    def load(
        cls,
        client: OpenTable,
        timeline: Timeline | None = None,
        *,
        partitions: Sequence[str] | None = None,
        lister: Lister | None = None,
        compactions: frozenset[str] = frozenset(),
        archived: Mapping[str, str] | None = None,
    ) -> FileSystemView:
        """List the table, or only the given partitions, and read the state of its files in the timeline.

        ``timeline`` defaults to the client's active timeline, ``lister`` to listing the storage. ``archived`` are
        completion times of archived instants, in addition to those with log files; the others count from their
        requested time on.
        """
        active = client.active_timeline()
        timeline_of_view = active.timeline if timeline is None else timeline
        files, partition_paths = (lister or list_files)(client.storage, partitions)
        files = without_orphaned_files(active, files)
        by_completion = client.config.version >= 8
        times = completions_of_archived(active, files, timeline_of_view) if by_completion else {}
        instants = FileInstants(
            timeline_of_view,
            replaced_groups(active, timeline_of_view),
            pending_compaction_groups(active, timeline_of_view),
            by_completion,
            {**times, **(archived or {})},
            compactions,
        )
        return cls(files, instants, partition_paths)

    def with_files(self, files: pa.Table) -> FileSystemView:
        """Return the view of other files (`FILE_SCHEMA`) at the same timeline."""
        view = copy(self)
        view.files = files
        return view

    def __repr__(self) -> str:
        return f"FileSystemView({self.files.num_rows} files in {len(self.partitions)} partitions)"

    # --- visibility ---------------------------------------------------------------------------------------------------

    def base_files(self, as_of: str | None = None) -> pa.Table:
        """Return all committed base files of file groups that are not replaced (`BASE_FILE_SCHEMA`), including older
        versions. ``as_of`` limits the requested time (inclusive)."""
        counts = self._is_visible(as_of, None)
        base = self._committed(BASE, counts)
        return self._not_replaced(base, counts).select(BASE_FILE_SCHEMA.names)

    def latest_base_files(self, as_of: str | None = None) -> pa.Table:
        """Return the newest committed base file of every visible file group, as read by a read-optimized query."""
        base = self.base_files(as_of)
        group = group_codes(base)
        order = np.lexsort((text_ranks(base["token"]), text_ranks(base["instant"]), group))
        last = np.append(np.diff(group[order]) != 0, True) if len(order) else np.zeros(0, dtype=bool)
        return sorted_by_group(base.take(pa.array(order[last])), "instant")

    def latest_slices(self, as_of: str | None = None, *, completed_by: str | None = None) -> pa.Table:
        """Return the newest slice of every visible file group (`SLICE_SCHEMA`), as merged by a snapshot query.

        Logs of a slice that a pending compaction has opened are part of the previous slice, which they update.
        """
        slices = self._slices(as_of, completed_by, split_pending=False)
        if is_sorted_by_unique_group(slices):
            return slices
        group = group_codes(slices)
        return slices.filter(pa.array(np.append(np.diff(group) != 0, True)))

    def all_slices(self, as_of: str | None = None) -> pa.Table:
        """Return all slices of the visible file groups (`SLICE_SCHEMA`), including those opened by pending
        compactions."""
        return self._slices(as_of, None, split_pending=True)

    def replaced_groups(self, as_of: str | None = None, *, completed_by: str | None = None) -> pa.Table:
        """Return file groups hidden by replacecommits up to that time: partition, file_id, instant."""
        counts = self._is_visible(as_of, completed_by)
        return self._instants.replaced.filter(instant_mask(self._instants.replaced["instant"], counts))

    def completions(self, instants: pa.ChunkedArray) -> pa.Array:
        """Return the completion times of instants, or their requested times if unknown."""
        return map_instants(instants, self._instants.completion)

    def replaced_slices(self, before: str | None) -> pa.Table:
        """Return all slices (`SLICE_SCHEMA`) of file groups replaced by replacecommits.

        ``before`` restricts them to replacecommits that were requested earlier.
        """
        counts = self._is_visible(None, None)
        replaced = self._instants.replaced.filter(
            instant_mask(self._instants.replaced["instant"], lambda i: counts(i) and (before is None or i < before))
        )
        if not replaced.num_rows:
            return SLICE_SCHEMA.empty_table()
        base = self._committed(BASE, counts)
        events = pa.concat_tables([base.append_column("key", base["instant"]), self._logs(counts, None)])
        files = events.filter(in_groups(events, replaced))
        return fold_slices(files) if files.num_rows else SLICE_SCHEMA.empty_table()

    # --- helpers ------------------------------------------------------------------------------------------------------

    def _is_visible(self, as_of: str | None, completed_by: str | None) -> Callable[[str], bool]:
        return partial(self._instants.is_visible, as_of=as_of, completed_by=completed_by)

    def _committed(self, kind: str, counts: Callable[[str], bool]) -> pa.Table:
        files = filtered(self.files, pc.equal(self.files["kind"], kind))
        return filtered(files, instant_mask(files["instant"], counts))

    def _not_replaced(self, files: pa.Table, counts: Callable[[str], bool]) -> pa.Table:
        hidden = self._instants.replaced.filter(instant_mask(self._instants.replaced["instant"], counts))
        if hidden.num_rows == 0 or files.num_rows == 0:
            return files
        return files.filter(pc.invert(in_groups(files, hidden)))

    def _logs(self, counts: Callable[[str], bool], as_of: str | None) -> pa.Table:
        """Return visible log files with the column ``key``, which positions them among the base instants of their
        group."""
        if self._instants.by_completion:
            logs = self._committed(LOG, counts)
            key = self.completions(logs["instant"])
        else:
            # Visibility is determined block by block, because the name contains the base instant of the slice, not that
            # of the writer. But the slice must have begun: during a pending resize, Apache Hudi writes the same rows to
            # the old and the new buckets.
            logs = self.files.filter(pc.equal(self.files["kind"], LOG))
            opened = frozenset(self._instants.pending["instant"].to_pylist())
            visible = self.timeline.contains_or_before_start
            logs = filtered(logs, instant_mask(logs["instant"], lambda instant: instant in opened or visible(instant)))
            if as_of is not None:
                logs = logs.filter(pc.less_equal(logs["instant"], as_of))
            key = logs["instant"]
        return logs.append_column("key", key)

    def _slices(self, as_of: str | None, completed_by: str | None, *, split_pending: bool) -> pa.Table:
        counts = self._is_visible(as_of, completed_by)
        base = self._committed(BASE, counts)
        events = [base.append_column("key", base["instant"]), self._logs(counts, as_of)]
        if split_pending and self._instants.pending.num_rows:
            events.append(pending_events(self._instants.pending, as_of))
        files = self._not_replaced(pa.concat_tables(events), counts)
        if files.num_rows == 0:
            return SLICE_SCHEMA.empty_table()
        return fold_slices(files)
