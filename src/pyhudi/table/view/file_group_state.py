"""State of file groups in the timeline: replaced groups, and files of lost tasks."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.format.file_names import BASE, LOG
from pyhudi.storage.concurrent_reads import concurrent_map
from pyhudi.table.view.file_slicing import is_sorted_by_unique_group
from pyhudi.timeline.active_timeline import ActiveTimeline
from pyhudi.timeline.archive.archived_timeline import archived_completions
from pyhudi.timeline.instant import ACTIONS, Action
from pyhudi.timeline.timeline import Timeline

GROUP_INSTANT_SCHEMA = pa.schema([("partition", pa.string()), ("file_id", pa.string()), ("instant", pa.string())])
"""File groups with the instant that affected them."""

_NO_COMPACTIONS = ACTIONS - {Action.COMMIT}


def replaced_groups(active: ActiveTimeline, timeline: Timeline) -> pa.Table:
    """Return the file groups replaced by completed replacecommits of the timeline: partition, file_id, instant.

    One file is read per replacecommit. Archived ones need not be read, because their file groups have been deleted.
    """
    done = [i for i in timeline if i.is_completed and i.action == Action.REPLACE_COMMIT]
    tables = [
        metadata.replaced.append_column("instant", pa.array([instant.requested] * metadata.replaced.num_rows))
        for instant, metadata in zip(done, concurrent_map(active.commit_metadata, done), strict=True)
        if metadata.replaced is not None and metadata.replaced.num_rows
    ]
    if not tables:
        return GROUP_INSTANT_SCHEMA.empty_table()
    table = pa.concat_tables(tables).cast(GROUP_INSTANT_SCHEMA)
    return table.filter(pc.is_valid(table["file_id"]))


def without_orphaned_files(active: ActiveTimeline, files: pa.Table) -> pa.Table:
    """Return the files without those left behind by a task that was considered lost, finished a file after its write
    had ended, and was killed before it could delete it.

    Such a file duplicates one of the commit: it has the same file group and instant (for log files also the same
    version), but another write token. The commit is read only if there are duplicates. In version 6 the names of log
    files do not identify their writer; there, duplicate records are merged.
    """
    if is_sorted_by_unique_group(files):
        return files
    candidates = files if active.layout.version >= 2 else files.filter(pc.equal(files["kind"], BASE))
    version = pc.fill_null(candidates["log_version"].cast(pa.string()), "")
    names = [candidates[name] for name in ("partition", "file_id", "instant", "kind")]
    texts = pc.binary_join_element_wise(*names, version, "\x00", null_handling="replace")
    codes = texts.combine_chunks().dictionary_encode().indices.to_numpy()
    counts = np.bincount(codes)
    if not len(counts) or counts.max() == 1:
        return files
    several = candidates.filter(pa.array(counts[codes] > 1))
    codes = codes[counts[codes] > 1]
    done = [active.timeline.find(i) for i in pc.unique(several["instant"]).to_pylist()]
    named = [active.commit_metadata(i).named_files() for i in done if i is not None and i.is_completed and i.is_write]
    if not named:
        return files
    is_named = pc.is_in(several["path"], value_set=pa.concat_arrays(named)).to_numpy()
    is_recorded = np.isin(codes, codes[is_named])
    leftovers = several["path"].filter(pa.array(is_recorded & ~is_named))
    return files.filter(pc.invert(pc.is_in(files["path"], value_set=leftovers.combine_chunks())))


def completions_of_archived(active: ActiveTimeline, files: pa.Table, timeline: Timeline) -> Mapping[str, str]:
    """Return completion times of archived delta commits whose log files still exist; there are few or none.

    Log files from before an upgrade from version 6 may have the instant of a compaction in their names, that of their
    slice. It is not among these: like its base file, they count from its requested time on.
    """
    logs = files.filter(pc.equal(files["kind"], LOG))
    archived = {i for i in pc.unique(logs["instant"]).to_pylist() if timeline.is_before_start(i)}
    return archived_completions(active.storage, active.layout, archived, _NO_COMPACTIONS) if archived else {}
