"""State of asynchronous builds of metadata table partitions: announcement, visibility to other processes, and recovery
after a crash.

A builder announces a partition (``hoodie.table.metadata.partitions.inflight``) under the lock of the table, after
creating its file groups, and builds its base files from all data completed by then. Writes that complete later update
the partition as if it were declared. When the base files exist, the builder adds its delta commit with the indexing
instant to the metadata table's timeline, completes the indexing instant, and declares the partition. Until the indexing
instant is completed the base files are not visible. See docs/format/metadata.md, section 6.4.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import pyarrow.compute as pc

from pyhudi.errors import CorruptInstantError
from pyhudi.format.file_names import file_names_of, parse_names
from pyhudi.metadata.file_groups.delta_commit_writer import GroupFiles
from pyhudi.metadata.indexes.expression_index_definition import is_expression
from pyhudi.metadata.indexes.index_declarations import (
    declare_inflight_partitions,
    declare_partitions,
    drop_inflight_partitions,
    drop_partitions,
)
from pyhudi.metadata.indexes.index_definitions import Definitions
from pyhudi.metadata.indexes.pending_index_plans import pending_index_plans, read_index_plan
from pyhudi.metadata.indexes.secondary_index_definition import is_secondary
from pyhudi.metadata.metadata_layout import load_metadata_timeline
from pyhudi.metadata.writer.initialize_partitions import prepare_folder
from pyhudi.metadata.writer.rollback.instant_deletion import delete_instant
from pyhudi.storage import Storage
from pyhudi.storage.table_paths import METADATA_FOLDER
from pyhudi.table.config.table_config import TableConfig
from pyhudi.table.table_snapshot import TableSnapshot
from pyhudi.timeline.active_timeline import ActiveTimeline
from pyhudi.timeline.instant import Action

_log = logging.getLogger(__name__)


def begin_index_build(
    storage: Storage,
    config: TableConfig,
    instant: str,
    groups: dict[str, Sequence[str]],
    definitions: Definitions,
) -> TableConfig:
    """Announce partitions with these file groups, to be built at an inflight indexing instant. Return the table's
    configuration. Leftovers of earlier attempts must have been removed.

    The metadata table's timeline has no entry yet, because writers of Apache Hudi roll back pending instants there.
    """
    for partition, ids in groups.items():
        prepare_folder(GroupFiles(storage, partition, instant, config.version), ids)
    return declare_inflight_partitions(storage, config, list(groups), definitions)


def rollback_index_build(storage: Storage, config: TableConfig, instant: str, partitions: Sequence[str]) -> TableConfig:
    """Remove all files of an attempt at building partitions, except their definitions and the plan. Return the table's
    configuration."""
    config = drop_inflight_partitions(storage, config, [p for p in partitions if p not in config.metadata_partitions])
    active = load_metadata_timeline(storage, config.version)
    delta_commit = active.timeline.find(instant, Action.DELTA_COMMIT)
    if delta_commit is not None and not is_in_use(storage, config, instant, partitions):
        delete_instant(active, config, instant)
    return config


def files_exist(storage: Storage, stats: Sequence[Mapping[str, Any]]) -> bool:
    """Return True if the files of these write stats still exist; another process may drop and recreate a partition."""
    partitions = {str(stat["partitionPath"]) for stat in stats}
    paths = {path for p in partitions for path in storage.list(f"{METADATA_FOLDER}/{p}")["path"].to_pylist()}
    return all(f"{METADATA_FOLDER}/{stat['path']}" in paths for stat in stats)


def is_in_use(storage: Storage, config: TableConfig, instant: str, partitions: Sequence[str]) -> bool:
    """Return True if one of the partitions is declared and has files of the indexing instant."""
    declared = [p for p in partitions if p in config.metadata_partitions]
    return any(instant in _instants(storage, partition) for partition in declared)


def recover_index_builds(table: TableSnapshot) -> TableConfig:
    """Recover announced partitions whose builder was killed: completed ones are declared, those without a plan are
    removed. Return the table's configuration. The caller holds the lock of the table."""
    storage, config, active = table.storage, table.config, table.active
    if not config.metadata_partitions_inflight:
        return config
    try:
        named = {name for plan in pending_index_plans(active) for name in plan.partitions}
    except CorruptInstantError as unknown:
        _log.warning("index builds are not recovered: %s", unknown)
        return config
    left = [p for p in config.metadata_partitions_inflight if p not in named]
    if not left:
        return config
    built = [p for p in left if _is_built(active, p)]
    if built:
        config = declare_partitions(storage, config, built)
    incomplete = [p for p in left if p not in built]
    if incomplete:
        _log.warning(
            "removing incomplete builds of %s in the metadata table of %s", ", ".join(incomplete), storage.root
        )
        config = drop_partitions(storage, config, incomplete)
    return config


def delete_undeclared_indexes(table: TableSnapshot, definitions: Definitions) -> None:
    """Delete the files of secondary and expression indexes that are defined, but neither declared nor planned: what an
    interrupted DROP INDEX leaves. Apache Hudi goes by definitions and files, and would look rows up in them that writes
    no longer maintain. The definitions are kept. The caller holds the lock of the table.

    Args:
        table: The table.
        definitions: Its definitions of indexes.
    """
    kept = table.config.metadata_partitions_kept
    undeclared = [n for n in definitions if n not in kept and (is_secondary(n) or is_expression(n))]
    if not undeclared:
        return
    try:
        planned = {name for plan in pending_index_plans(table.active) for name in plan.partitions}
    except CorruptInstantError as unknown:
        _log.warning("files of indexes that are not declared are kept: %s", unknown)
        return
    for name in undeclared:
        if name not in planned:
            table.storage.delete_tree(f"{METADATA_FOLDER}/{name}")


def _is_built(active: ActiveTimeline, partition: str) -> bool:
    """Return True if the partition's files are those of a completed indexing instant."""
    instants = _instants(active.storage, partition)
    done = active.timeline.completed().of_actions(Action.INDEXING)
    return any(i.requested in instants and partition in read_index_plan(active, i).partitions for i in done)


def _instants(storage: Storage, partition: str) -> set[str]:
    """Return the instants in the names of a partition's files."""
    names = file_names_of(storage.list(f"{METADATA_FOLDER}/{partition}")["path"])
    return set(pc.unique(parse_names(names)["instant"]).drop_null().to_pylist())


def cancel_index_plans(active: ActiveTimeline, partitions: Collection[str]) -> None:
    """Delete the pending plans of one of the partitions. The caller withdraws their announcements."""
    for plan in pending_index_plans(active):
        if plan.instant is not None and set(plan.partitions) & set(partitions):
            active.delete_pending(plan.instant, Action.INDEXING)
