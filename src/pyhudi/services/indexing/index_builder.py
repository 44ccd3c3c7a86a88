"""Builds and drops of indexes of the metadata table, independent of writes, under the lock of the table.

Nobody commits in the meantime, so an index built from the completed instants is complete when it is declared. A pending
write then updates the index when it commits, or removes it if it cannot.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import pyarrow as pa

from pyhudi.config import Options
from pyhudi.config.enums import TableType
from pyhudi.errors import ConfigError, MetadataTableWarning, UnsupportedTableError, warn
from pyhudi.metadata.indexes.index_declarations import declare_partitions, drop_partitions
from pyhudi.metadata.indexes.indexed_columns import check_listed_columns
from pyhudi.metadata.indexes.pending_index_plans import pending_index_plans
from pyhudi.metadata.indexes.secondary_index_definition import SECONDARY, is_secondary
from pyhudi.metadata.metadata_layout import COLUMN_STATS, RECORD_INDEX
from pyhudi.metadata.writer.enabled_partitions import build_enabled_partitions
from pyhudi.metadata.writer.index_build_state import cancel_index_plans
from pyhudi.metadata.writer.initial_statistics import LOCAL, FileStatsReader
from pyhudi.metadata.writer.locked_table import LockedTable
from pyhudi.metrics.progress import Progress, report_progress
from pyhudi.read.schema.table_columns import resolve_table_schema
from pyhudi.services.indexing.index_names import indexes_of, partitions_to_drop
from pyhudi.services.indexing.index_requests import IndexRequest, build_options, check_metadata_enabled
from pyhudi.services.indexing.index_support import check_supported
from pyhudi.table.config.table_config import TableConfig
from pyhudi.table.meta_client import TableMetaClient
from pyhudi.transaction.locks.lock_factory import make_time_generator
from pyhudi.transaction.table_checks import current_snapshot

PROGRESS = "build indexes"
"""Name of the work in calls of `pyhudi.metrics.progress.Progress`."""
Builder = Callable[[LockedTable, IndexRequest], TableConfig]
"""Builds the record index, a secondary index or an expression index with an engine. Returns the table's configuration.
A record index is declared then, the others are not."""


@dataclass(frozen=True, slots=True)
class IndexResult:
    """Result of an index build or drop, or with ``dry_run`` its preview: the ``partitions`` of the metadata table that
    are built or dropped; none, with a ``reason``, if there is nothing to do."""

    partitions: tuple[str, ...] = ()
    reason: str = ""


@contextmanager
def lock_table(client: TableMetaClient, opts: Options, stats_reader: FileStatsReader = LOCAL) -> Iterator[LockedTable]:
    """Hold the lock of the table.

    Raises:
        LockError: The lock could not be acquired.
        TransactionError: A restore is pending.
    """
    storage = client.storage
    with make_time_generator(storage, opts, client.config.timezone).reserve() as reserved:
        yield LockedTable(current_snapshot(storage, client.config), opts, reserved, stats_reader)


def columns_of(table: LockedTable) -> pa.Schema:
    """Return the table's columns; none before its first write."""
    columns = resolve_table_schema(table.snapshot)
    return pa.schema([]) if columns is None else columns.schema


@dataclass(frozen=True, slots=True)
class IndexEngine:
    """Engine that builds indexes.

    Attributes:
        builder: Builds indexes that require an engine; None: they are not built.
        stats_reader: Reads files for the others.
    """

    builder: Builder | None
    stats_reader: FileStatsReader


def build_index(
    client: TableMetaClient,
    opts: Options,
    request: IndexRequest,
    engine: IndexEngine,
    *,
    dry_run: bool,
    progress: Progress | None = None,
) -> IndexResult:
    """Build an index.

    Raises:
        ConfigError: The index exists, or the request is invalid.
        UnsupportedTableError: The table does not support it.
    """
    check_metadata_enabled(opts)
    with lock_table(client, opts.merged(build_options(request, opts)), engine.stats_reader) as table:
        existing = existing_index(table, request)
        if existing is not None:
            return IndexResult(reason=existing)
        columns = columns_of(table)
        check_supported(request, table.snapshot, columns)
        if request.partition == COLUMN_STATS:
            check_listed_columns(columns, opts)
        if dry_run:
            return IndexResult((request.partition,))
        report_progress(progress, PROGRESS, 0, 1)
        built = tuple(_build(table, request, engine.builder))
    report_progress(progress, PROGRESS, 1, 1)
    return IndexResult(built)


def existing_index(table: LockedTable, request: IndexRequest) -> str | None:
    """Return the reason why nothing is to be created: the index exists, or is planned; None if it does not.

    Raises:
        ConfigError: It does, and the request has no ``if_not_exists``.
    """
    partition = request.partition
    if partition in table.config.metadata_partitions:
        reason = f"the index {partition} exists"
    else:
        plan = next((p for p in pending_index_plans(table.active) if partition in p.partitions), None)
        if plan is None:
            return None
        reason = f"the index {partition} is planned by the indexing {plan.instant}, which run_index executes"
    if not request.if_not_exists:
        raise ConfigError(f"{reason}; drop it first, or pass if_not_exists=True")
    return reason


def _build(table: LockedTable, request: IndexRequest, builder: Builder | None) -> Sequence[str]:
    storage, before = table.storage, table.config
    config = build_enabled_partitions(table, only_if_none=request.needs_spark)
    if request.needs_spark:
        assert builder is not None
        table = table.with_config(config)
        if request.kind == SECONDARY and RECORD_INDEX not in config.metadata_partitions:
            check_supported(
                request, table.snapshot, columns_of(table)
            )  # It was removed together with a corrupt metadata table.
        config = builder(table, request)
    definition = request.definition(config.version)
    if definition is not None:
        config = declare_partitions(storage, config, [request.partition], {request.partition: definition})
    if request.partition not in config.metadata_partitions:
        raise UnsupportedTableError(
            f"{request.kind} cannot be built for this table, because its columns are not known yet"
        )
    return sorted(set(config.metadata_partitions) - set(before.metadata_partitions))


def drop_index(client: TableMetaClient, opts: Options, name: str, *, if_exists: bool, dry_run: bool) -> IndexResult:
    """Remove and delete an index, or its plan with the files built so far. Secondary indexes are removed with the
    record index; their definitions are kept, so that they can be dropped or rebuilt.

    Raises:
        ConfigError: The index does not exist, or a planned one requires it.
    """
    with lock_table(client, opts) as table:
        planned = [partition for plan in pending_index_plans(table.active) for partition in plan.partitions]
        dropped = partitions_to_drop(table.storage, table.config, name, planned)
        if not dropped:
            existing = ", ".join(indexes_of(table.storage, table.config)) or "none"
            if if_exists:
                return IndexResult(reason=f"the table has no index {name!r}")
            raise ConfigError(f"the table has no index {name!r}; it has {existing}")
        needing = [p for p in table.config.metadata_partitions if is_secondary(p)] if RECORD_INDEX in dropped else []
        if not dry_run:
            cancel_index_plans(table.active, dropped)  # First, so that its builder detects it.
            _drop(table, dropped, needing)
        return IndexResult((*dropped, *needing))


def _drop(table: LockedTable, partitions: Sequence[str], needing: Sequence[str]) -> None:
    config = table.config
    if needing:  # First, because they cannot be used without the record index.
        config = drop_partitions(table.storage, config, needing, keep_definitions=True)
        warn(
            f"without record_index, {', '.join(needing)} cannot be used; drop it as well, or create both again",
            MetadataTableWarning,
        )
    config = drop_partitions(table.storage, config, partitions)
    left = [name for name in config.metadata_partitions_kept if is_secondary(name)]
    if len(left) == 1 and config.table_type is TableType.MERGE_ON_READ and any(map(is_secondary, partitions)):
        warn(
            f"queries use {left[0]} from now on, which lacks updates that Apache Hudi has written while the table had "
            "several secondary indexes; if it has written, drop the index and create it again",
            MetadataTableWarning,
        )
