"""Contents of log files, from commit metadata: whether a lookup in base files alone would miss keys or deletes."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.format.file_names import file_names_of, parse_names
from pyhudi.table.view.file_group_keys import group_keys
from pyhudi.timeline.active_timeline import ActiveTimeline
from pyhudi.timeline.archive.archived_timeline import archived_completions, read_archived_timeline
from pyhudi.timeline.commit_metadata import CommitMetadata, decode_commit
from pyhudi.timeline.instant import Action
from pyhudi.timeline.operation_types import LOG_COMPACT

_READ_THREADS = 16


@dataclass(frozen=True, slots=True)
class LogContents:
    """Contents of log files that a lookup in base files alone would miss.

    ``new_keys``: they may contain keys that are in no base file. This is the case if records were written with an index
    that finds keys in log files, as by Flink and with the in-memory index: then a slice has no base file, or commit
    metadata record inserts into log files. It is also the case if a write ran concurrently with the compaction that
    created the base file: if a delete in the logs removed a record of the previous file, such a write may have written
    it as an update. ``deletes``: they may have deleted keys of base files.
    """

    new_keys: bool = False
    deletes: bool = False

    @classmethod
    def load(cls, active: ActiveTimeline, slices: pa.Table) -> LogContents:
        """Return the contents of the log files of slices (SLICE_SCHEMA) according to commit metadata, including
        archived commits."""
        lists = slices["log_paths"].combine_chunks()
        names = file_names_of(lists.flatten())
        logs = parse_names(names)["instant"].combine_chunks()
        instants = frozenset(pc.unique(logs).to_pylist())
        if not instants:
            return cls()
        by_write = active.layout.version >= 2
        new_keys = bool(slices["base_path"].null_count)
        if by_write and not new_keys:
            earlier = pc.less(logs, _completions(active, slices["base_instant"]).take(pc.list_parent_indices(lists)))
            new_keys = bool(pc.any(earlier).as_py())
        deletes = False
        for metadata in _written_by(active, instants, by_write=by_write):
            if metadata is None:
                return cls(True, True)
            stats = metadata.stats.filter(pc.is_valid(metadata.stats["logFiles"]))
            deletes = deletes or _any_above_zero(stats["numDeletes"])
            new_keys = new_keys or _any_above_zero(stats["numInserts"])
            if not by_write and metadata.operation != LOG_COMPACT:
                new_keys = new_keys or _has_earlier_base(stats, slices)
        return cls(new_keys, deletes)


def _completions(active: ActiveTimeline, instants: pa.ChunkedArray) -> pa.Array:
    """Return completion times of instants; null if unknown."""
    encoded = instants.combine_chunks().dictionary_encode()
    texts: list[str] = encoded.dictionary.to_pylist()
    archived = archived_completions(
        active.storage, active.layout, [i for i in texts if active.timeline.is_before_start(i)]
    )
    done = [active.timeline.completion_of(i) or archived.get(i) for i in texts]
    return pa.array(done, pa.string()).take(encoded.indices)


def _written_by(
    active: ActiveTimeline, instants: Collection[str], *, by_write: bool
) -> Iterator[CommitMetadata | None]:
    """Return the metadata of the delta commits that may have written log files with these instants: those of the
    writes, or (not ``by_write``) of their slices, which includes all later writes. None for unknown instants."""
    oldest = min(instants)
    wrote = [
        instant
        for instant in active.timeline.completed().of_actions(Action.DELTA_COMMIT)
        if (instant.requested in instants if by_write else instant.requested >= oldest)
    ]
    with ThreadPoolExecutor(_READ_THREADS) as pool:
        yield from pool.map(active.commit_metadata, wrote)
    active_instants = {instant.requested for instant in wrote}
    unknown = set(instants) - active_instants if by_write else set()
    if not unknown and (by_write or not active.timeline.is_before_start(oldest)):
        return
    delta_commits = (Action.DELTA_COMMIT,)
    archived = read_archived_timeline(active.storage, active.layout, after=oldest[:-1], actions=delta_commits)
    for requested, data in zip(archived["requested"].to_pylist(), archived["metadata"].to_pylist(), strict=True):
        if data is not None and requested not in active_instants and (requested in unknown or not by_write):
            unknown.discard(requested)
            yield decode_commit(data)
    if unknown:
        yield None


def _any_above_zero(counts: pa.ChunkedArray) -> bool:
    return bool(pc.any(pc.greater(counts, 0)).as_py())


def _has_earlier_base(stats: pa.Table, slices: pa.Table) -> bool:
    """Return True if a write to a version 6 table (the stats of its log files) added to these slices while their base
    files were being created: it records other base files."""
    groups = stats.select(["partitionPath", "fileId"]).rename_columns(["partition", "file_id"])
    at = pc.index_in(group_keys(groups), value_set=group_keys(slices))
    current = file_names_of(slices["base_path"]).take(at)
    is_of_slice = pc.equal(stats["prevCommit"], slices["base_instant"].take(at))
    other = pc.not_equal(pc.fill_null(stats["baseFile"], ""), current)
    return bool(pc.any(pc.and_kleene(is_of_slice, other)).as_py())
