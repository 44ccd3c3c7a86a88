"""Preconditions of upgrades and downgrades, checked before anything is changed. Each error names the
value and the solution."""

from __future__ import annotations

from collections.abc import Collection

from pyhudi.config import Options, property_keys
from pyhudi.config.enums import TableType
from pyhudi.errors import ConfigError, TransactionError, UnsupportedTableError
from pyhudi.merge.mergers.merger_registry import registered
from pyhudi.metadata.indexes.expression_index_definition import is_expression
from pyhudi.metadata.indexes.index_definitions import load_definitions
from pyhudi.metadata.indexes.record_index_definition import is_partitioned
from pyhudi.metadata.indexes.secondary_index_definition import is_secondary
from pyhudi.metadata.metadata_layout import BLOOM_FILTERS, COLUMN_STATS, FILES, PARTITION_STATS, RECORD_INDEX
from pyhudi.services.upgrade.property_conversion import VERSIONS
from pyhudi.storage import Storage
from pyhudi.table.config.payload_classes import PAYLOADS
from pyhudi.table.config.table_config import TableConfig
from pyhudi.timeline.active_timeline import ActiveTimeline
from pyhudi.timeline.instant import Action

_IN_VERSION_6 = frozenset({FILES, COLUMN_STATS, BLOOM_FILTERS, RECORD_INDEX})
_CURES = {
    Action.COMPACTION: "run it (services.run_compaction())",
    Action.LOG_COMPACTION: "run it (services.run_log_compaction())",
    Action.CLUSTERING: "run it (services.run_clustering())",
    Action.REPLACE_COMMIT: "run it (services.run_clustering())",
    Action.CLEAN: "complete it (services.clean())",
    Action.INDEXING: "run it (services.run_index()) or drop the index",
    Action.RESTORE: "complete it (services.restore())",
    Action.SAVEPOINT: "create it again (services.savepoint(…)) or delete it (services.delete_savepoint(…))",
}


def check_target(config: TableConfig, to: int, *, downgrade: bool) -> None:
    """Refuse unsupported target versions.

    Raises:
        ConfigError: The version does not exist, or is in the other direction.
    """
    targets = VERSIONS[1:]
    if to not in targets:
        allowed = ", ".join(map(str, targets))
        raise ConfigError(f"table version {to!r} is not supported; allowed: {allowed}")
    if downgrade and to > config.version:
        raise ConfigError(f"table {config.name!r} has version {config.version}; use upgrade(to={to})")
    if not downgrade and to < config.version:
        raise ConfigError(f"table {config.name!r} has version {config.version}; use downgrade(to={to})")


def check_payload_class(config: TableConfig, opts: Options, to: int) -> None:
    """Refuse a payload class of the options that a table of version 6 would be given, but whose merger is missing.

    Raises:
        UnsupportedTableError: The class is no known one, and no merger with its name is registered.
    """
    stored = config.properties.get(property_keys.PAYLOAD_CLASS)
    merging = config.merging_of_write(opts)
    if config.version < 8 <= to and not stored and merging.computes_values:
        registered(merging)


def check_no_pending_plans(active: ActiveTimeline, root: str, failed: list[str], run: Collection[str]) -> None:
    """Refuse a table with pending plans.

    Args:
        active: Timeline of the table.
        root: Root of the table.
        failed: Writes that are going to be rolled back.
        run: Actions whose plans are going to be executed.

    Raises:
        TransactionError: The message has the plan, and the solution.
    """
    savepoints = active.timeline.of_actions(Action.SAVEPOINT).filter(lambda i: not i.is_completed)
    for instant in (*active.timeline.pending(), *savepoints):
        if instant.action == Action.ROLLBACK or instant.action in run or instant.requested in failed:
            continue
        cure = _CURES.get(instant.action, "complete it or roll it back (services.rollback(…))")
        raise TransactionError(
            f"the version of the table at {root} cannot be changed while {instant} is pending: {cure} first"
        )


def check_lossless(active: ActiveTimeline, config: TableConfig, to: int, *, lossy: bool) -> None:
    """Refuse a downgrade that would lose something that is not rebuilt automatically.

    Args:
        active: Timeline of the table.
        config: Its configuration.
        to: The target version.
        lossy: Named indexes, and older snapshots, may be lost.

    Raises:
        UnsupportedTableError: The message has the loss, and the solution.
    """
    if to >= config.version:
        return
    version = f"tables of version {to}"
    if to < 9 <= config.version:
        _check_newest_features(config, version)
    if to < 8 <= config.version:
        merging = config.merging
        if merging.payload_class is None and str(merging.mode) == "CUSTOM":
            raise UnsupportedTableError(
                f"the table uses the merger hoodie.record.merge.strategy.id={merging.strategy_id}; {version} "
                "support payload classes only: copy the rows into a new table"
            )
        savepoint = active.timeline.of_actions(Action.SAVEPOINT).first
        if config.table_type is TableType.MERGE_ON_READ and savepoint is not None:
            raise UnsupportedTableError(
                f"{version} cannot restore a merge-on-read table to the savepoint {savepoint.requested}, to which "
                f"newer log files belong: delete it first (services.delete_savepoint({savepoint.requested!r}))"
            )
        if config.table_type is TableType.MERGE_ON_READ and not lossy:
            raise UnsupportedTableError(
                f"{version} read older snapshots of this merge-on-read table incorrectly, because their log files "
                "have different names: downgrade with lossy=True, which compacts the table and deletes the files "
                "of all snapshots except the last one"
            )
    named = [p for p in dropped_partitions(active.storage, config, to) if is_secondary(p) or is_expression(p)]
    if named and not lossy:
        raise UnsupportedTableError(
            f"{version} do not support the indexes {', '.join(named)}: drop them first (services.drop_index), or "
            "downgrade with lossy=True"
        )


def dropped_partitions(storage: Storage, config: TableConfig, to: int) -> list[str]:
    """Return the partitions of the metadata table that a downgrade drops, as in Apache Hudi: those whose form was
    introduced by a later version, and partition statistics together with column statistics."""
    if to >= config.version:
        return []
    used = config.metadata_partitions
    partitions: set[str] = set()
    if config.version >= 9 > to:
        definitions = load_definitions(storage, config)
        partitions = {p for p in used if (definitions.get(p, {}).get("version") or "V1") != "V1"}
        if is_partitioned(definitions):
            partitions.add(RECORD_INDEX)
        if COLUMN_STATS in partitions:
            partitions.add(PARTITION_STATS)
    if to < 8:
        partitions |= set(used) - _IN_VERSION_6
    return [p for p in used if p in partitions]


def _check_newest_features(config: TableConfig, version: str) -> None:
    merging = config.merging
    is_known = merging.legacy_payload in PAYLOADS if merging.legacy_payload else False
    own_order = bool(is_known and PAYLOADS[merging.legacy_payload or ""].ordering)
    if len(config.ordering_fields) > 1 and not own_order:
        raise UnsupportedTableError(
            f"hoodie.table.ordering.fields={','.join(config.ordering_fields)}: {version} support one ordering "
            "column only; copy the rows into a new table"
        )
    if merging.partial_update_mode is not None and not is_known:
        raise UnsupportedTableError(
            f"hoodie.table.partial.update.mode={merging.partial_update_mode}: {version} support partial updates "
            "by payload classes only; copy the rows into a new table"
        )
    if config.slash_dates:
        raise UnsupportedTableError(
            f"hoodie.datasource.write.slash.separated.date.partitioning=true: {version} do not support it, and "
            "their writers would create other paths; copy the rows into a new table"
        )
