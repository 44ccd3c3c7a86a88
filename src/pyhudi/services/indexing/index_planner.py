"""Scheduling of an index build that runs concurrently with writers, by the indexing action."""

from __future__ import annotations

from pyhudi.config import Options
from pyhudi.metadata.indexes.index_declarations import define_indexes
from pyhudi.metadata.metadata_layout import COLUMN_STATS, PARTITION_STATS
from pyhudi.metadata.writer.enabled_partitions import build_enabled_partitions
from pyhudi.metadata.writer.initial_statistics import LOCAL, FileStatsReader
from pyhudi.metadata.writer.locked_table import LockedTable
from pyhudi.services.indexing.index_builder import columns_of, existing_index, lock_table
from pyhudi.services.indexing.index_requests import IndexRequest, build_options, check_metadata_enabled
from pyhudi.services.indexing.index_support import check_supported
from pyhudi.table.meta_client import TableMetaClient
from pyhudi.timeline.active_timeline import ActiveTimeline
from pyhudi.timeline.instant import Action
from pyhudi.timeline.plans.index_plan import IndexPlan


def schedule_index(
    client: TableMetaClient,
    opts: Options,
    request: IndexRequest,
    *,
    dry_run: bool,
    stats_reader: FileStatsReader = LOCAL,
) -> IndexPlan:
    """Add the plan of an index to the timeline. Nothing is built, and nobody maintains the index, before the plan is
    executed. A missing or corrupt metadata table is built immediately; ``stats_reader`` reads files for it.

    Raises:
        ConfigError: The index exists or is planned, or the request is invalid.
        UnsupportedTableError: The table does not support it.
    """
    check_metadata_enabled(opts)
    with lock_table(client, opts, stats_reader) as table:
        existing = existing_index(table, request)
        if existing is not None:
            return IndexPlan(reason=existing)
        check_supported(request, table.snapshot, columns_of(table))
        upto = last_contiguous_write(table.active)
        if upto is None:
            return IndexPlan(reason="the table has no completed write, so there is nothing to index")
        if dry_run:
            return IndexPlan(_partitions(table, request), upto)
        with_options = table.with_options(opts.merged(build_options(request, opts)))
        config = build_enabled_partitions(with_options, only_if_none=True)
        if request.partition in config.metadata_partitions:
            return IndexPlan(reason="the table had no metadata table; it was built now, including this index")
        definition = request.definition(config.version)
        if definition is not None:  # First, because the plan itself does not contain the indexed columns.
            config = define_indexes(table.storage, config, {request.partition: definition})
        plan = IndexPlan(_partitions(table.with_config(config), request), upto)
        instant = table.new_time()
        table.active.create_requested(Action.INDEXING, instant, plan.encode(config.version))
        return plan.scheduled(instant)


def _partitions(table: LockedTable, request: IndexRequest) -> tuple[str, ...]:
    """Return the partitions to build: partition statistics are built together with column statistics."""
    if request.kind == PARTITION_STATS and COLUMN_STATS not in table.config.metadata_partitions:
        return (COLUMN_STATS, PARTITION_STATS)
    return (request.partition,)


def last_contiguous_write(active: ActiveTimeline) -> str | None:
    """Return the last completed write before which none is pending; None without one."""
    last = None
    for instant in active.timeline.writes():
        if not instant.is_completed:
            break
        last = instant.requested
    return last
