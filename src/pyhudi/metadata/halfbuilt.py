"""Partitions of the metadata table that are being built while writers go on: what is announced of them, what others
find who come upon them, and what is left when their builder has died.

A builder announces a partition (``hoodie.table.metadata.partitions.inflight``) under the table's lock, with its file
groups in place, and builds its base files of what was completed by then; writes that complete later tell the partition
what they have done, as if it was declared. When the base files are there, the builder puts its delta commit on the
metadata table's timeline, which bears the indexing instant, completes the indexing instant, and declares the partition.
Until the indexing instant is completed nobody counts the base files. Docs/format/metadata.md, section 6.4.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow.compute as pc

from pyhudi.errors import CorruptInstantError, MetadataTableError
from pyhudi.format.filenames import parse_names, split_paths
from pyhudi.metadata.declare import announce_partitions, declare_partitions, drop_partitions, withdraw_partitions
from pyhudi.metadata.definitions import Definitions
from pyhudi.metadata.deltas import GroupFiles
from pyhudi.metadata.detach import METADATA_FOLDER
from pyhudi.metadata.home import metadata_timeline
from pyhudi.metadata.initialize import prepare_folder
from pyhudi.metadata.undo import forget
from pyhudi.timeline.indexing import pending_index_plans, read_index_plan
from pyhudi.timeline.instants import Action, State

if TYPE_CHECKING:
    from pyhudi.storage import Storage
    from pyhudi.table.config import TableConfig
    from pyhudi.timeline.active import ActiveTimeline

_log = logging.getLogger(__name__)


def begin_build(
    storage: Storage,
    config: TableConfig,
    instant: str,
    groups: dict[str, Sequence[str]],
    definitions: Definitions,
) -> TableConfig:
    """Announce partitions with these file groups, to be built at an indexing instant that is inflight; returns the
    table's configuration. What an earlier attempt has left must be gone.

    The metadata table's timeline says nothing of it yet: writers of Apache Hudi roll back what is pending there.
    """
    for partition, ids in groups.items():
        prepare_folder(GroupFiles(storage, partition, instant, config.version), ids)
    return announce_partitions(storage, config, list(groups), definitions)


def undo_build(storage: Storage, config: TableConfig, instant: str, partitions: Sequence[str]) -> TableConfig:
    """Leave nothing of an attempt at building partitions, apart from their definitions and the plan; returns the
    table's configuration."""
    config = withdraw_partitions(storage, config, [p for p in partitions if p not in config.metadata_partitions])
    active = metadata_timeline(storage, config.version)
    known = active.timeline.find(instant, Action.DELTA_COMMIT)
    if known is not None and not is_of_use(storage, config, instant, partitions):
        forget(storage, active, instant, config)
    return config


def are_there(storage: Storage, stats: Sequence[Mapping[str, Any]]) -> bool:
    """Whether the files of these write stats are still there; others may take a partition away, and make it anew."""
    partitions = {str(stat["partitionPath"]) for stat in stats}
    paths = {path for p in partitions for path in storage.list(f"{METADATA_FOLDER}/{p}")["path"].to_pylist()}
    return all(f"{METADATA_FOLDER}/{stat['path']}" in paths for stat in stats)


def is_of_use(storage: Storage, config: TableConfig, instant: str, partitions: Sequence[str]) -> bool:
    """Whether one of the partitions is declared, and has files of the indexing instant."""
    declared = [p for p in partitions if p in config.metadata_partitions]
    return any(instant in _instants(storage, partition) for partition in declared)


def settle_builds(storage: Storage, config: TableConfig, data: ActiveTimeline) -> TableConfig:
    """Look after announced partitions whose builder is gone: one that has completed its work is declared, one that is
    on no plan (any more) is taken away. The table's lock is held."""
    if not config.metadata_partitions_inflight:
        return config
    try:
        named = {name for plan in pending_index_plans(data) for name in plan.partitions}
    except CorruptInstantError as unknown:
        _log.warning("what is being built stays as it is: %s", unknown)
        return config
    left = [p for p in config.metadata_partitions_inflight if p not in named]
    if not left:
        return config
    built = [p for p in left if _is_built(storage, data, p)]
    if built:
        config = declare_partitions(storage, config, built)
    gone = [p for p in left if p not in built]
    if gone:
        _log.warning("%s of the metadata table of %s were left half-built", ", ".join(gone), storage.root)
        config = drop_partitions(storage, config, gone)
    return config


def _is_built(storage: Storage, data: ActiveTimeline, partition: str) -> bool:
    """Whether the partition's files are those of an indexing instant that is completed."""
    instants = _instants(storage, partition)
    done = data.timeline.completed().of_actions(Action.INDEXING)
    return any(i.requested in instants and partition in read_index_plan(data, i).partitions for i in done)


def _instants(storage: Storage, partition: str) -> set[str]:
    """The instants that files of a partition bear."""
    names = split_paths(storage.list(f"{METADATA_FOLDER}/{partition}")["path"])[1]
    return set(pc.unique(parse_names(names)["instant"]).drop_null().to_pylist())


def half_built(data: ActiveTimeline) -> Collection[str]:
    """Partitions that somebody is building, or has begun to build and died: not to be read, even if they are declared.
    (Apache Hudi declares a partition before it completes the indexing instant, without which nobody counts its base
    files.)

    Raises:
        MetadataTableError: a plan cannot be read.
    """
    try:
        plans = [plan for plan in pending_index_plans(data) if plan.state is State.INFLIGHT]
    except CorruptInstantError as unknown:
        raise MetadataTableError(f"which indexes are being built cannot be told: {unknown}") from unknown
    return frozenset(name for plan in plans for name in plan.partitions)


def take_off_plans(data: ActiveTimeline, partitions: Collection[str]) -> None:
    """Delete the pending plans that name one of the partitions; what they have announced is the caller's to take
    away."""
    for plan in pending_index_plans(data):
        if plan.instant is not None and set(plan.partitions) & set(partitions):
            data.delete_pending(plan.instant, Action.INDEXING)
