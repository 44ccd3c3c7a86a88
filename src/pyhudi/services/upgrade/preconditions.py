"""Reasons not to upgrade or downgrade a table, found before anything is touched. Each names a value and a cure."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

from pyhudi.config.enums import TableType
from pyhudi.errors import ConfigError, TransactionError, UnsupportedTableError
from pyhudi.metadata.indexes.expression_index_definition import is_expression
from pyhudi.metadata.indexes.index_definitions import load_definitions
from pyhudi.metadata.indexes.secondary_index_definition import is_secondary
from pyhudi.metadata.metadata_layout import BLOOM_FILTERS, COLUMN_STATS, FILES, PARTITION_STATS, RECORD_INDEX
from pyhudi.services.upgrade.table_properties import VERSIONS
from pyhudi.table.config.key_generator_type import KeyGenType
from pyhudi.table.config.merge_settings import PAYLOADS
from pyhudi.timeline.instant import Action

if TYPE_CHECKING:
    from pyhudi.storage import Storage
    from pyhudi.table.config.table_config import TableConfig
    from pyhudi.timeline.active_timeline import ActiveTimeline

_IN_VERSION_6 = frozenset({FILES, COLUMN_STATS, BLOOM_FILTERS, RECORD_INDEX})
_CURES = {
    Action.COMPACTION: "run it (services.run_compaction())",
    Action.LOG_COMPACTION: "run it (services.run_log_compaction())",
    Action.CLUSTERING: "run it (services.run_clustering())",
    Action.REPLACE_COMMIT: "run it (services.run_clustering())",
    Action.CLEAN: "finish it (services.clean())",
    Action.INDEXING: "run it (services.run_index()) or drop the index",
    Action.RESTORE: "finish it (services.restore())",
}


def check_target(config: TableConfig, to: int, *, downgrade: bool) -> None:
    """Refuse versions that there is no way to.

    Raises:
        ConfigError: it is no version, or lies in the other direction.
        UnsupportedTableError: keys of the table are made by Java code.
    """
    targets = VERSIONS[1:]
    if to not in targets:
        allowed = ", ".join(map(str, targets))
        raise ConfigError(f"there is no upgrade or downgrade to table version {to}; allowed: {allowed}")
    if downgrade and to > config.version:
        raise ConfigError(f"table {config.name!r} has version {config.version}; upgrade(to={to}) takes it to {to}")
    if not downgrade and to < config.version:
        raise ConfigError(f"table {config.name!r} has version {config.version}; downgrade(to={to}) takes it to {to}")
    if config.keygen is KeyGenType.USER_PROVIDED:
        raise UnsupportedTableError(
            f"table {config.name!r} makes its keys with the Java class {config.keygen_class}, and cannot be written "
            "here; let Apache Hudi change its version"
        )


def check_no_services(active: ActiveTimeline, root: str, failed: list[str], run: Collection[str]) -> None:
    """Refuse a table with plans that are not carried out.

    Args:
        active: the table's timeline.
        root: where the table is.
        failed: writes that are going to be rolled back.
        run: actions whose plans are going to be carried out.

    Raises:
        TransactionError: names the plan, and what to do with it.
    """
    for instant in active.timeline.pending():
        if instant.action == Action.ROLLBACK or instant.action in run or instant.requested in failed:
            continue
        cure = _CURES.get(instant.action, "finish it or roll it back (services.rollback(…))")
        raise TransactionError(
            f"the version of the table at {root} cannot be changed while {instant} is pending: {cure} first"
        )


def check_nothing_lost(storage: Storage, config: TableConfig, active: ActiveTimeline, to: int, *, lossy: bool) -> None:
    """Refuse a downgrade that takes something away which cannot be built again by itself.

    Args:
        storage: the table.
        config: its configuration.
        active: its timeline.
        to: the version that it is to get.
        lossy: indexes with a name, and older snapshots, may go.

    Raises:
        UnsupportedTableError: names what would be lost, and what to do.
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
                f"the table merges by the merger hoodie.record.merge.strategy.id={merging.strategy_id}; {version} know "
                "mergers by payload classes only: copy the rows into a new table"
            )
        savepoint = active.timeline.of_actions(Action.SAVEPOINT).first
        if config.table_type is TableType.MERGE_ON_READ and savepoint is not None:
            raise UnsupportedTableError(
                f"{version} cannot restore a merge-on-read table to the savepoint {savepoint.requested}, which newer "
                f"log files belong to: delete it first (services.delete_savepoint({savepoint.requested!r}))"
            )
        if config.table_type is TableType.MERGE_ON_READ and not lossy:
            raise UnsupportedTableError(
                f"{version} read older snapshots of this merge-on-read table wrongly, as their log files are named "
                "otherwise: downgrade with lossy=True, which compacts the table and deletes the files of snapshots "
                "before the last one"
            )
    named = [p for p in dropped_partitions(storage, config, to) if is_secondary(p) or is_expression(p)]
    if named and not lossy:
        raise UnsupportedTableError(
            f"{version} cannot have the indexes {', '.join(named)}: drop them first (services.drop_index), or "
            "downgrade with lossy=True"
        )


def dropped_partitions(storage: Storage, config: TableConfig, to: int) -> list[str]:
    """Return the partitions of the metadata table that a downgrade drops, as Apache Hudi does: those whose form came
    with a later version, and statistics of partitions together with those of files."""
    if to >= config.version:
        return []
    used = config.metadata_partitions
    found: set[str] = set()
    if config.version >= 9 > to:
        definitions = load_definitions(storage, config)
        found = {p for p in used if (definitions.get(p, {}).get("version") or "V1") != "V1"}
        options = definitions.get(RECORD_INDEX, {}).get("indexOptions") or {}
        if str(options.get("isPartitioned", "false")).lower() == "true":
            found.add(RECORD_INDEX)
        if COLUMN_STATS in found:
            found.add(PARTITION_STATS)
    if to < 8:
        found |= set(used) - _IN_VERSION_6
    return [p for p in used if p in found]


def _check_newest_features(config: TableConfig, version: str) -> None:
    merging = config.merging
    known = merging.legacy_payload in PAYLOADS if merging.legacy_payload else False
    own_order = bool(known and PAYLOADS[merging.legacy_payload or ""].ordering)
    if len(config.ordering_fields) > 1 and not own_order:
        raise UnsupportedTableError(
            f"hoodie.table.ordering.fields={','.join(config.ordering_fields)}: {version} order by one column only; "
            "copy the rows into a new table"
        )
    if merging.partial_update_mode is not None and not known:
        raise UnsupportedTableError(
            f"hoodie.table.partial.update.mode={merging.partial_update_mode}: {version} know partial updates by "
            "payload classes only; copy the rows into a new table"
        )
    if config.slash_dates:
        raise UnsupportedTableError(
            f"hoodie.datasource.write.slash.separated.date.partitioning=true: {version} do not know of it, and their "
            "writers would make other paths; copy the rows into a new table"
        )
