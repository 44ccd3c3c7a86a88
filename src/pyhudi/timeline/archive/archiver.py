"""Archival of instants from the active timeline.

Instants are archived first and then removed from the active timeline. If the process is killed at any point, readers
see each instant in one or both of them, and the next run continues. The caller holds the lock of the table.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from pyhudi.config import Options, options
from pyhudi.config.enums import CleanPolicy
from pyhudi.errors import ConfigError
from pyhudi.storage.lock_primitives import DeferredReleaseLock
from pyhudi.timeline.active_timeline import ActiveTimeline
from pyhudi.timeline.archive import archive_log_writer
from pyhudi.timeline.archive.lsm_timeline_writer import BATCH, LsmTimelineWriter
from pyhudi.timeline.instant import Action, Instant, State
from pyhudi.timeline.timeline import Timeline
from pyhudi.timeline.timeline_layout import Layout


def archival_end(timeline: Timeline, *, min_commits: int, max_commits: int, before: Iterable[str]) -> str | None:
    """Return the instant up to which (exclusive) a timeline can be archived; None while it has at most ``max_commits``.

    Args:
        timeline: The active timeline.
        min_commits: Number of completed commits that are kept.
        max_commits: Number of completed commits above which archival starts.
        before: Instants that are kept, with all later ones.
    """
    commits = timeline.completed().writes()
    if len(commits) <= max(min_commits, max_commits):
        return None
    pending = timeline.pending().requested_times
    return min([commits.instants[-min_commits].requested, *before, *pending])


@dataclass(frozen=True, slots=True)
class ArchiveOptions:
    """Settings of the files of an archived timeline.

    Attributes:
        timezone: ``hoodie.table.timeline.timezone``.
        block_records: Number of records of a block (layout 1).
        merged_files: Number of files of a level that are merged (layout 2).
        small_files: Condition for merging files of layout 1; None: they are not merged.
    """

    timezone: str
    block_records: int = archive_log_writer.BATCH
    merged_files: int = BATCH
    small_files: archive_log_writer.SmallFiles | None = None

    @classmethod
    def from_options(
        cls, opts: Options, timezone: str, small_files: archive_log_writer.SmallFiles | None = None
    ) -> ArchiveOptions:
        """Create the settings from options of archival, for a table or its metadata table."""
        block, merged = opts.get_typed(options.ARCHIVE_BATCH), opts.get_typed(options.TIMELINE_COMPACTION_BATCH)
        return cls(timezone, block, merged, small_files)


def commits_to_keep(opts: Options) -> tuple[int, int]:
    """Return the number of commits that archival leaves, and the number at which it starts.

    Raises:
        ConfigError: The latter is not greater than the former, and cleaning retains commits. Apache Hudi refuses it,
            too, but not if cleaning retains hours or file versions.
    """
    min_commits, max_commits = opts.get_typed(options.KEEP_MIN_COMMITS), opts.get_typed(options.KEEP_MAX_COMMITS)
    if max_commits <= min_commits and opts.get_typed(options.CLEAN_POLICY) is CleanPolicy.KEEP_LATEST_COMMITS:
        raise ConfigError(
            f"{options.KEEP_MAX_COMMITS.key}={max_commits} must be greater than "
            f"{options.KEEP_MIN_COMMITS.key}={min_commits}; increase the former or lower the latter"
        )
    return min_commits, max_commits


def archive(
    active: ActiveTimeline, instants: Sequence[Instant], settings: ArchiveOptions, lock: DeferredReleaseLock
) -> None:
    """Move completed instants to the archived timeline (`pyhudi.timeline.archive.archived_timeline`). Index builds are
    only removed: Apache Hudi archives none, and its downgrade to version 6 fails on one in the archive.

    Args:
        active: The active timeline.
        instants: The instants.
        settings: Settings of the files.
        lock: Lock of the table, which the caller holds.

    Raises:
        CorruptInstantError: The manifest of the archived timeline, or (in layout 1) its newest file or the file of an
            instant, cannot be parsed.
        InstantNotFoundError: An instant has disappeared from the active timeline.
        LockError: The lock was lost; entries of another archival could be lost.
        TimelineError: The action of an instant is not archived (see `can_archive`).
    """
    storage, layout = active.storage, active.layout
    # First, because a run that continues after a kill would not know that they should have gone.
    _delete_archived(active, [i for i in instants if i.action == Action.INDEXING])
    instants = [i for i in instants if i.action != Action.INDEXING]
    already_archived = set(_archived(active, instants))  # By a killed run.
    new = sorted(i for i in instants if i not in already_archived)
    writer = LsmTimelineWriter(storage, layout, lock)
    if new and layout.version >= 2:
        writer.add(active, new)
    elif new:
        archive_log_writer.add(active, new, settings.timezone, lock, settings.block_records)
    _delete_archived(active, instants)
    if layout.version >= 2:
        writer.compact_and_clean(settings.merged_files)
    elif settings.small_files is not None:
        archive_log_writer.merge_small_files(storage, layout, settings.small_files, settings.block_records)


def can_archive(layout: Layout, instant: Instant) -> bool:
    """Return True if the archived timeline of the layout holds instants of this action."""
    return layout.version >= 2 or instant.family in archive_log_writer.ACTIONS


def finish_archival(active: ActiveTimeline) -> list[Instant]:
    """Remove instants from the active timeline that are already archived, left behind by a killed run. Return them.

    The caller holds the lock of the table.

    Raises:
        CorruptInstantError: The manifest of the archived timeline, or (in layout 1) its newest file, cannot be parsed.
    """
    left = _archived(active, active.timeline.completed().instants)
    _delete_archived(active, left)
    return left


def _archived(active: ActiveTimeline, instants: Sequence[Instant]) -> list[Instant]:
    if active.layout.version >= 2:
        return LsmTimelineWriter(active.storage, active.layout).archived(instants)
    return archive_log_writer.archived(active.storage, active.layout, instants)


def _delete_archived(active: ActiveTimeline, instants: Sequence[Instant]) -> None:
    """Delete the files of archived instants.

    Completed files go last, because the others would look like failed writes without them, and one by one: files of an
    instant that is missing after the start of the timeline count as uncommitted. Requested files go before inflight
    ones: without the latter a completed file looks like one that appeared after a rollback.
    """
    states = [state for instant in sorted(instants) for state in active.states(instant)]
    for pending in (State.REQUESTED, State.INFLIGHT):
        active.delete_states(state for state in states if state.state is pending)
    for state in states:
        if state.is_completed:
            active.delete_states([state])
