"""File slices of the metadata table's partitions, and the valid blocks of their log files.

Readers and compactions see the same files: those of the ``effective`` instants in the metadata table's timeline as they
see it (docs/format/metadata.md, section 6.3).
"""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.format.file_names import BASE
from pyhudi.merge.logs.valid_log_blocks import BlockView
from pyhudi.metadata.reader.file_completeness_check import check_complete
from pyhudi.storage.table_paths import METADATA_FOLDER
from pyhudi.table.view.file_group_state import GROUP_INSTANT_SCHEMA, completions_of_archived
from pyhudi.table.view.file_listing import files_of_listing
from pyhudi.table.view.file_system_view import FileInstants, FileSystemView
from pyhudi.table.view.pending_file_groups import pending_compaction_groups
from pyhudi.timeline.active_timeline import ActiveTimeline
from pyhudi.timeline.archive.archived_timeline import archived_writes
from pyhudi.timeline.instant import Instant, State
from pyhudi.timeline.timeline import Timeline


def current_slices(active: ActiveTimeline, effective: Timeline, partition: str, version: int) -> pa.Table:
    """Return the latest slice of each file group of a partition
    (:data:`pyhudi.table.view.file_slicing.SLICE_SCHEMA`, with paths relative to the table), ordered by file id,
    with the times at which its files were modified (``modified``, epoch milliseconds: of the base file if there is one,
    then of the log files). Costs one listing.

    Raises:
        MetadataTableError: Files written by instants are missing.
    """
    storage = active.storage
    listing = storage.list(f"{METADATA_FOLDER}/{partition}")
    files = files_of_listing(listing)
    check_complete(active, effective, partition, files)
    effective = _with_archived(active, effective, files)
    by_completion = version >= 8
    # With completion times, a log file belongs to the slice of a compaction once that is completed. Until then it
    # belongs to the previous slice, and plans, which may be dropped, need not be read.
    pending = GROUP_INSTANT_SCHEMA.empty_table() if by_completion else _with_folder(pending_compaction_groups(active))
    archived = completions_of_archived(active, files, effective) if by_completion else {}
    instants = FileInstants(effective, pending=pending, by_completion=by_completion, archived=archived)
    return _with_times(FileSystemView(files, instants).latest_slices().sort_by("file_id"), listing)


def _with_times(slices: pa.Table, listing: pa.Table) -> pa.Table:
    times = dict(zip(listing["path"].to_pylist(), listing["mtime_ms"].to_pylist(), strict=True))
    paths = zip(slices["base_path"].to_pylist(), slices["log_paths"].to_pylist(), strict=True)
    modified = [[times[path] for path in (base, *logs) if path is not None] for base, logs in paths]
    return slices.append_column("modified", pa.array(modified, pa.list_(pa.int64())))


def metadata_block_view(effective: Timeline, version: int) -> BlockView:
    """Return the valid log blocks: all of them from version 8 on, where names identify committed files. Before, an
    attempt at a plan has the instant of those that were rolled back."""
    return BlockView() if version >= 8 else BlockView(committed=_EffectiveInstants(effective), retries=True)


@dataclass(frozen=True, slots=True)
class _EffectiveInstants:
    """Instants of a metadata table of version 6 whose blocks are valid."""

    timeline: Timeline

    def __contains__(self, instant: object) -> bool:
        return isinstance(instant, str) and self.timeline.contains_or_before_start(instant)


def _with_archived(active: ActiveTimeline, effective: Timeline, files: pa.Table) -> Timeline:
    """Return the timeline with the archived instants of base files that are later than its start, if there are any.

    Earlier versions of pyhudi could keep the build of an index first on the timeline, while they archived compactions
    after it. The archive is read only if there are such base files, which failed writes may have left, too.
    """
    instants = pc.unique(files.filter(pc.equal(files["kind"], BASE))["instant"]).to_pylist()
    unknown = {i for i in instants if i not in effective and not effective.is_before_start(i)}
    if not unknown:
        return effective
    archived = archived_writes(active.storage, active.layout, after=min(unknown)[:-1], up_to=max(unknown)).to_pylist()
    found = [
        Instant(row["requested"], row["action"], State.COMPLETED, row["completion"], "")
        for row in archived
        if row["requested"] in unknown
    ]
    return Timeline([*effective, *found]) if found else effective


def _with_folder(pending: pa.Table) -> pa.Table:
    """Return slices opened by compactions of a metadata table, with paths relative to the table."""
    return pending.set_column(0, "partition", pc.binary_join_element_wise(METADATA_FOLDER, pending["partition"], "/"))
