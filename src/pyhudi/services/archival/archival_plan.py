"""Archival plan: the instants of a table to archive, by Apache Hudi's rules.

The following stay active: a minimum of commits, more if the cleaner retains more; everything from the last commit
before a pending instant on; from the first savepoint on; instants that the metadata table has not compacted yet; those
that count for the next compaction; and replacecommits whose replaced files still exist, because nothing else hides
these.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import accumulate

import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.config import Options, options
from pyhudi.config.enums import CompactionTrigger, TableType
from pyhudi.metadata.metadata_layout import FILES, load_metadata_timeline
from pyhudi.metadata.reader.restored_writes import undone_since_built
from pyhudi.services.cleaning.clean_progress import LastClean
from pyhudi.storage.clock import now_ms
from pyhudi.table.clean_retention import CleanRetention, earliest_instant_to_retain
from pyhudi.table.table_snapshot import TableSnapshot
from pyhudi.table.view.file_group_keys import in_groups
from pyhudi.table.view.file_group_state import replaced_groups
from pyhudi.table.view.file_listing import list_files
from pyhudi.timeline.active_timeline import ActiveTimeline
from pyhudi.timeline.archive.archiver import archival_end, commits_to_keep
from pyhudi.timeline.delta_commits import delta_commits_since_compaction
from pyhudi.timeline.instant import Action, Instant
from pyhudi.timeline.operation_types import REWRITING_OPERATIONS

_COUNTING = (CompactionTrigger.NUM_COMMITS, CompactionTrigger.NUM_AND_TIME)


@dataclass(frozen=True, slots=True)
class ArchivalPlan:
    """Instants to archive, oldest first; ``reason`` explains why there are none."""

    instants: tuple[Instant, ...] = ()
    reason: str = ""

    def __len__(self) -> int:
        return len(self.instants)

    def __repr__(self) -> str:
        if not self.instants:
            return f"archival: nothing to do; {self.reason}"
        first, last = self.instants[0].requested, self.instants[-1].requested
        return f"archival: {len(self.instants):,} instants from {first} to {last}"


def numbers_to_keep(table: TableSnapshot, opts: Options) -> tuple[int, int]:
    """Return the number of commits that archival leaves, and the number at which it starts: more than the cleaner
    retains.

    Raises ConfigError if the options contradict each other.
    """
    min_commits, max_commits = commits_to_keep(opts)
    earliest = earliest_instant_to_retain(
        table.active.timeline, CleanRetention.from_options(opts), now_ms(), table.config.timezone
    )
    if earliest is None:
        return min_commits, max_commits
    retained = sum(i.requested > earliest.requested for i in table.active.timeline.completed().writes()) + 2
    return (retained, retained + max_commits - min_commits) if min_commits < retained else (min_commits, max_commits)


def is_archival_due(table: TableSnapshot, opts: Options) -> bool:
    """Return True if there are more commits than archival leaves, according to the timeline only."""
    return len(table.active.timeline.completed().writes()) > opts.get_typed(options.KEEP_MAX_COMMITS)


def make_archival_plan(table: TableSnapshot, opts: Options, *, only_if_due: bool) -> ArchivalPlan:
    """Return the instants to archive now, without writing anything.

    Args:
        table: The table with its current timeline.
        opts: Options of archival and cleaning.
        only_if_due: Archive nothing unless there are more than `hoodie.keep.max.commits` commits.

    Raises:
        ConfigError: `hoodie.keep.max.commits` is not greater than `hoodie.keep.min.commits`, and cleaning
            retains commits.
        CorruptInstantError: The timeline cannot be read.
    """
    timeline = table.active.timeline
    min_commits, max_commits = numbers_to_keep(table, opts)
    count = len(timeline.completed().writes())
    kept = max_commits if only_if_due else min_commits
    if count <= kept:
        return ArchivalPlan(reason=f"there are {count} commits, and at least {kept} are kept")
    limits = _limits(table, opts)
    if limits is None:
        return ArchivalPlan(reason="the metadata table has not been compacted yet")
    saved = set(timeline.of_actions(Action.SAVEPOINT).requested_times)
    if saved and not _passes_savepoints(table, opts):
        limits.append(min(saved))
    end = archival_end(timeline, min_commits=min_commits, max_commits=kept, before=limits)
    if end is None:
        return ArchivalPlan(reason="there are not enough commits")
    commits = [i for i in timeline.completed().writes() if i.requested < end and i.requested not in saved]
    commits = _without_late_completions(table.active, without_uncleaned(table, commits), 2 * max_commits)
    if not commits:
        return ArchivalPlan(reason=f"everything from {end} on is needed")
    return ArchivalPlan(tuple(sorted([*commits, *_other_instants(table, commits[-1].requested)])))


def _without_late_completions(active: ActiveTimeline, commits: list[Instant], limit: int) -> list[Instant]:
    """Return the first commits, without those that completed after one that would stay; all commits if otherwise more
    than ``limit`` would stay, because long writes may overlap without end.

    Compactions and clusterings do not count, because they change no rows.
    """
    writes = active.timeline.completed().writes()
    if not commits:
        return commits
    later = (i.order_time for i in writes if i.requested > commits[-1].requested)
    first_after = min(later, default=commits[-1].order_time)
    ends = []
    for instant in reversed(commits):
        late = instant.order_time > first_after
        counts = late and active.commit_metadata(instant).operation not in REWRITING_OPERATIONS
        ends.append((first_after, instant.order_time if counts else instant.requested))
        first_after = min(first_after, instant.order_time)
    ends.reverse()
    latest = accumulate((time for _, time in ends), max)
    possible = [n for n, (time, (first, _)) in enumerate(zip(latest, ends, strict=True), 1) if time <= first]
    count = max(possible, default=0)
    return commits if len(writes) - count > limit else commits[:count]


def _passes_savepoints(table: TableSnapshot, opts: Options) -> bool:
    """Return True if writes beyond the first savepoint, which stays with its commit, are archived."""
    return opts.get_typed(options.ARCHIVE_BEYOND_SAVEPOINT) and not leaves_nothing_older(table)


def _other_instants(table: TableSnapshot, last: str) -> list[Instant]:
    """Return the other instants to archive, those before the last archived commit: cleans and rollbacks, and where
    nothing older may stay, restores and index builds. Otherwise the last clean stays, too, where it is quicker to find
    than in the archive."""
    completed = table.active.timeline.completed()
    older = completed.filter(lambda i: i.requested < last and not i.is_write and i.action != Action.SAVEPOINT)
    if leaves_nothing_older(table):
        return list(older)
    last_clean = completed.of_actions(Action.CLEAN).last
    return [i for i in older.of_actions(Action.CLEAN, Action.ROLLBACK) if i is not last_clean]


def leaves_nothing_older(table: TableSnapshot) -> bool:
    """Return True if no instant that is older than archived ones may stay on the active timeline.

    Apache Hudi takes an archived delta commit for a pending one if it is later than the first instant of the active
    timeline: its compaction leaves out the log files, and its readers base files of compactions (docs/format/core.md,
    10, 33 and 58). In layout 1 log files belong to slices by their names.
    """
    return table.config.table_type is TableType.MERGE_ON_READ and table.active.layout.version >= 2


def _limits(table: TableSnapshot, opts: Options) -> list[str] | None:
    """Return instants from which everything is kept; None if nothing can be archived."""
    timeline = table.active.timeline
    commits = timeline.completed().writes()
    limits = []
    pending = timeline.pending().first
    if pending is not None:
        before = [i.requested for i in commits if i.requested < pending.requested]
        limits.append(max(before, default=pending.requested))
    if table.config.table_type is TableType.MERGE_ON_READ and opts.get_typed(options.COMPACT_TRIGGER) in _COUNTING:
        counted = delta_commits_since_compaction(timeline)
        if counted is not None and counted.count < opts.get_typed(options.COMPACT_MAX_DELTA_COMMITS):
            limits.append(counted.since)
    if opts.get_typed(options.ARCHIVE_BLOCK_ON_CLEAN):
        last = LastClean.load(table.active)
        limits += [last.earliest] if last is not None and last.earliest else []
    if FILES in table.config.metadata_partitions:
        metadata = load_metadata_timeline(table.storage, table.config.version)
        compaction = metadata.timeline.completed().of_actions(Action.COMMIT).last
        if compaction is None:
            return None
        limits += [i.requested for i in commits if i.order_time > compaction.requested][:1]
        if leaves_nothing_older(table) and undone_since_built(metadata, table.active):
            # Readers need the restores, which would go, to find that out.
            limits += timeline.of_actions(Action.RESTORE).requested_times
    return limits


def without_uncleaned(table: TableSnapshot, commits: list[Instant]) -> list[Instant]:
    """Return the commits before the first replacecommit whose replaced files still exist. Once it were archived,
    nothing would hide these."""
    replacing = [i for i in commits if i.action == Action.REPLACE_COMMIT]
    if not replacing:
        return commits
    groups = replaced_groups(table.active, table.active.timeline)
    groups = groups.filter(pc.is_in(groups["instant"], value_set=pa.array([i.requested for i in replacing])))
    if not groups.num_rows:
        return commits
    files, _ = list_files(table.storage, pc.unique(groups["partition"]).to_pylist())
    existing = groups.filter(in_groups(groups, files))
    first = pc.min(existing["instant"]).as_py()
    return commits if first is None else [i for i in commits if i.requested < first]
