"""Retention of file slices: the slices that a cleaning policy expires, computed on Arrow tables without I/O.

Tables and their metadata tables are cleaned by the same rules.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from pyhudi.arrow.arrays import numpy_mask
from pyhudi.config import Options, options
from pyhudi.config.enums import CleanPolicy
from pyhudi.format.file_names import file_names_of
from pyhudi.table.view.file_group_keys import group_keys
from pyhudi.table.view.file_slicing import SLICE_SCHEMA, group_codes
from pyhudi.timeline.instant import Instant, instant_hours_before
from pyhudi.timeline.plans.clean_plan import EXPIRED_SCHEMA
from pyhudi.timeline.timeline import Timeline

NEEDED_SCHEMA = pa.schema([("partition", pa.string()), ("file_id", pa.string()), ("base_instant", pa.string())])
"""File groups of a pending plan, and the base instant from which it needs their slices."""


@dataclass(frozen=True, slots=True)
class CleanRetention:
    """A cleaning policy with its parameters; only that of the policy is used."""

    policy: CleanPolicy = CleanPolicy.KEEP_LATEST_COMMITS
    commits: int = 10
    versions: int = 3
    hours: int = 24

    @classmethod
    def from_options(cls, opts: Options) -> CleanRetention:
        """Create the retention from the options."""
        return cls(
            opts.get_typed(options.CLEAN_POLICY),
            opts.get_typed(options.CLEAN_COMMITS_RETAINED),
            opts.get_typed(options.CLEAN_FILE_VERSIONS_RETAINED),
            opts.get_typed(options.CLEAN_HOURS_RETAINED),
        )

    @property
    def by_versions(self) -> bool:
        """True if file versions are counted rather than commits or hours."""
        return self.policy is CleanPolicy.KEEP_LATEST_FILE_VERSIONS

    def __str__(self) -> str:
        number = {
            CleanPolicy.KEEP_LATEST_COMMITS: f"{self.commits} commits",
            CleanPolicy.KEEP_LATEST_FILE_VERSIONS: f"{self.versions} versions of each file",
            CleanPolicy.KEEP_LATEST_BY_HOURS: f"{self.hours} hours",
        }
        return number[self.policy]


def earliest_instant_to_retain(
    timeline: Timeline, retention: CleanRetention, now: int, timezone: str
) -> Instant | None:
    """Return the first completed write whose snapshot remains readable; None if nothing is to be cleaned.

    It is never later than the last write that completed before the first pending one, because a pending write may still
    read older slices or be rolled back to them.

    Args:
        timeline: The active timeline.
        retention: The policy. One by versions has no such instant.
        now: Current time in epoch milliseconds.
        timezone: Time zone of the timeline (``hoodie.table.timeline.timezone``).
    """
    writes = timeline.writes()
    done = writes.completed().instants
    if retention.policy is CleanPolicy.KEEP_LATEST_COMMITS:
        if len(done) <= retention.commits:
            return None
        earliest = done[len(done) - retention.commits]
    elif retention.policy is CleanPolicy.KEEP_LATEST_BY_HOURS:
        since = instant_hours_before(now, retention.hours, timezone)
        recent = [i for i in done if i.requested >= since]
        if not recent:
            return None
        earliest = recent[0]
    else:
        return None
    pending = writes.pending().first
    if pending is not None and earliest.requested > pending.requested:
        return next((i for i in reversed(done) if i.requested < pending.requested), None)
    return earliest


def expired_by_instant(slices: pa.Table, earliest: str) -> NDArray[np.bool_]:
    """Return a mask of the slices that no snapshot from ``earliest`` on reads.

    The last slice of a group that began before ``earliest`` is still read then, and is kept.

    Args:
        slices: All slices of visible file groups (`SLICE_SCHEMA`, in its order).
        earliest: Earliest instant to retain.
    """
    if not slices.num_rows:
        return np.zeros(0, dtype=bool)
    before = numpy_mask(pc.less(slices["base_instant"], earliest))
    follows = np.append(np.diff(group_codes(slices)) == 0, False)
    expired: NDArray[np.bool_] = before & follows & np.append(before[1:], False)
    return expired


def expired_by_version(
    slices: pa.Table, versions: int, retained: NDArray[np.bool_], planned: NDArray[np.bool_]
) -> NDArray[np.bool_]:
    """Return a mask of the slices older than the newest ``versions`` of their file group.

    Args:
        slices: All slices of visible file groups (`SLICE_SCHEMA`, in its order).
        versions: Number of slices to retain.
        retained: Mask of slices that are not counted and retained.
        planned: Mask of the slices of groups of a pending compaction, which counts as one version.
    """
    if not slices.num_rows:
        return np.zeros(0, dtype=bool)
    group = group_codes(slices)
    counted = (~retained).astype(np.int64)
    ends = np.flatnonzero(np.append(np.diff(group) != 0, True))
    number = np.repeat(np.arange(len(ends)), np.diff(np.append(-1, ends)))
    up_to = np.cumsum(counted)
    newer = up_to[ends][number] - up_to
    expired: NDArray[np.bool_] = (newer >= versions - planned.astype(np.int64)) & ~retained
    return expired


def needed_by_plans(slices: pa.Table, needed: pa.Table) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Return masks of the slices that pending plans need, and of all slices of their file groups.

    Args:
        slices: `SLICE_SCHEMA`.
        needed: `NEEDED_SCHEMA`.
    """
    if not needed.num_rows or not slices.num_rows:
        nothing = np.zeros(slices.num_rows, dtype=bool)
        return nothing, nothing
    keys = group_keys(needed)
    first = pa.table({"key": keys, "base": needed["base_instant"]}).group_by("key").aggregate([("base", "min")])
    at = pc.index_in(group_keys(slices), value_set=first["key"].combine_chunks())
    base = first["base_min"].combine_chunks().take(at)
    is_needed = pc.greater_equal(slices["base_instant"].combine_chunks(), base)
    return numpy_mask(pc.fill_null(is_needed, False)), numpy_mask(pc.is_valid(at))


def slices_with_files(slices: pa.Table, paths: pa.Array) -> NDArray[np.bool_]:
    """Return a mask of the slices (`SLICE_SCHEMA`) with a base or log file at one of these ``paths``.

    Names do not suffice: files of the bucket index may have the same name in several partitions.
    """
    if not len(paths) or not slices.num_rows:
        return np.zeros(slices.num_rows, dtype=bool)
    base = numpy_mask(pc.is_in(pc.fill_null(slices["base_path"], ""), value_set=paths))
    logs = slices["log_paths"].combine_chunks()
    saved = numpy_mask(pc.is_in(logs.flatten(), value_set=paths))
    base[np.unique(pc.list_parent_indices(logs).to_numpy()[saved])] = True
    return base


def slices_opened_by(slices: pa.Table, instants: Sequence[str]) -> NDArray[np.bool_]:
    """Return a mask of the slices that pending compactions with these ``instants`` have opened."""
    is_opened = pc.is_in(slices["base_instant"], value_set=pa.array(list(instants), pa.string()))
    return numpy_mask(pc.and_(is_opened, pc.is_null(slices["base_path"])))


def base_and_log_files(slices: pa.Table) -> pa.Table:
    """Return the base and log files of slices (`SLICE_SCHEMA`) as `EXPIRED_SCHEMA`, in the order of the slices."""
    has_base = slices.filter(pc.is_valid(slices["base_path"]))
    logs = slices["log_paths"].combine_chunks()
    parents = pc.list_parent_indices(logs)
    paths = pa.concat_arrays([has_base["base_path"].combine_chunks(), logs.flatten()])
    columns = [
        pa.concat_arrays([has_base["partition"].combine_chunks(), slices["partition"].combine_chunks().take(parents)]),
        file_names_of(paths),
        pa.concat_arrays([has_base["base_size"].combine_chunks(), slices["log_sizes"].combine_chunks().flatten()]),
    ]
    return pa.Table.from_arrays(columns, schema=EXPIRED_SCHEMA)


@dataclass(frozen=True, slots=True)
class ProtectedFiles:
    """Files that pending plans and savepoints protect from a clean.

    Attributes:
        planned: Slices that pending plans need (`NEEDED_SCHEMA`).
        saved: Paths of the files of savepoints.
        compactions: Instants of pending compactions.
    """

    planned: pa.Table = field(default_factory=NEEDED_SCHEMA.empty_table)
    saved: pa.Array = field(default_factory=lambda: pa.array([], pa.string()))
    compactions: Sequence[str] = ()


def expired_files(
    slices: pa.Table,
    replaced: pa.Table,
    retention: CleanRetention,
    earliest: str | None,
    protected: ProtectedFiles | None = None,
) -> pa.Table:
    """Return the files that a policy expires (`EXPIRED_SCHEMA`, sorted by partition).

    Args:
        slices: All slices of the visible file groups (`SLICE_SCHEMA`), including those opened by pending compactions.
        replaced: All slices of file groups that are not visible from ``earliest`` on.
        retention: The policy.
        earliest: Earliest instant to retain; ignored by a policy that counts versions.
        protected: Files that must be retained regardless of the policy.
    """
    protected = protected or ProtectedFiles()
    retained, planned = needed_by_plans(slices, protected.planned)
    if retention.by_versions:
        retained = retained | slices_opened_by(slices, protected.compactions)
        expired = expired_by_version(slices, retention.versions, retained, planned)
    else:
        expired = expired_by_instant(slices, earliest or "")
    expired_slices = slices.filter(pa.array(expired & ~retained & ~slices_with_files(slices, protected.saved)))
    in_plans, _ = needed_by_plans(replaced, protected.planned)
    hidden = replaced.filter(pa.array(~in_plans & ~slices_with_files(replaced, protected.saved)))
    slices_to_delete = pa.concat_tables([SLICE_SCHEMA.empty_table(), expired_slices, hidden]).combine_chunks()
    return base_and_log_files(slices_to_delete).sort_by("partition")
