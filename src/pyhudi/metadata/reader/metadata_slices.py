"""The file slices of the metadata table's partitions, and which blocks of their log files count.

Readers and compactions see the same: what the ``counted`` instants have written, which are those of the metadata
table's timeline as they see it (docs/format/metadata.md, section 6.3).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.merge.logs.valid_log_blocks import BlockView
from pyhudi.metadata.disable_metadata import METADATA_FOLDER
from pyhudi.metadata.reader.completeness import check_complete
from pyhudi.table.view.file_group_state import GROUP_INSTANT_SCHEMA, completions_of_archived, pending_slices
from pyhudi.table.view.file_listing import list_files
from pyhudi.table.view.file_system_view import FileSystemView

if TYPE_CHECKING:
    from pyhudi.storage import Storage
    from pyhudi.timeline.active_timeline import ActiveTimeline
    from pyhudi.timeline.timeline import Timeline


def current_slices(
    storage: Storage, active: ActiveTimeline, counted: Timeline, partition: str, version: int
) -> pa.Table:
    """The latest slice of each file group of a partition (:data:`pyhudi.table.view.file_system_view.SLICE_SCHEMA`,
    paths those of the table), in the order of file ids. One listing.

    Raises:
        MetadataTableError: files that instants have written are missing.
    """
    files, _ = list_files(storage, [f"{METADATA_FOLDER}/{partition}"])
    check_complete(storage, active, counted, partition, files)
    by_completion = version >= 8
    # with completion times a log file belongs to the slice of a compaction once that is completed; until then it
    # belongs to the slice before, and plans, which may be dropped meanwhile, need not be read
    pending = (
        GROUP_INSTANT_SCHEMA.empty_table() if by_completion else _with_folder(pending_slices(active, active.timeline))
    )
    view = FileSystemView(
        files,
        counted,
        pending=pending,
        by_completion=by_completion,
        archived=completions_of_archived(storage, active, files, counted) if by_completion else None,
    )
    return view.latest_slices().sort_by("file_id")


def block_view(counted: Timeline, version: int) -> BlockView:
    """Return the log blocks that count: all of them from version 8 on, where names tell what is committed."""
    return BlockView() if version >= 8 else BlockView(committed=_Counted(counted))


@dataclass(frozen=True, slots=True)
class _Counted:
    """The instants of a metadata table of version 6 whose blocks count."""

    timeline: Timeline

    def __contains__(self, instant: object) -> bool:
        return isinstance(instant, str) and self.timeline.contains_or_before_start(instant)


def _with_folder(pending: pa.Table) -> pa.Table:
    """Slices opened by compactions of a metadata table, in paths of the table."""
    return pending.set_column(0, "partition", pc.binary_join_element_wise(METADATA_FOLDER, pending["partition"], "/"))
