"""Table services that a write executes or plans after its commit."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial

from pyhudi.config import Options, options
from pyhudi.config.enums import BucketIndexEngine, IndexType, TableType
from pyhudi.config.option import Option
from pyhudi.errors import ConfigError, LockError, OptionWithoutEffectWarning, ServiceAfterCommitError, warn
from pyhudi.metadata.writer.initial_statistics import FileStatsReader
from pyhudi.services.archival.archival_plan import is_archival_due
from pyhudi.services.archival.archival_runner import archive_table
from pyhudi.services.cleaning.cleaner import Cleaner
from pyhudi.services.clustering.clustering_planner import (
    evaluate_clustering_trigger,
    pending_clusterings,
    schedule_clustering,
)
from pyhudi.services.clustering.clustering_runner import ClusteringResult, ClusteringRunner, run_clusterings
from pyhudi.services.clustering.plan_strategies import PlanStrategy
from pyhudi.services.compaction.compaction_planner import schedule_compaction
from pyhudi.services.compaction.compaction_runner import CompactionResult, CompactionRunner, run_compactions
from pyhudi.services.compaction.compaction_strategies import named_strategies
from pyhudi.services.compaction.compaction_triggers import evaluate_compaction_trigger, trigger_time
from pyhudi.services.service_plans import BusyPlans
from pyhudi.services.service_result import ServiceResult
from pyhudi.storage import Storage
from pyhudi.storage.lazy_property import lazy_property
from pyhudi.table.config.table_config import TableConfig
from pyhudi.table.meta_client import TableMetaClient
from pyhudi.table.partition_ttl import ttl_strategy
from pyhudi.table.table_snapshot import TableSnapshot
from pyhudi.timeline.instant import Action
from pyhudi.write.settings.write_settings import max_file_size

_INLINE: tuple[Option[bool], ...] = (
    options.COMPACT_INLINE,
    options.COMPACT_SCHEDULE_INLINE,
    options.LOG_COMPACTION_INLINE,
)
_CLUSTERING: tuple[Option[bool], ...] = (options.CLUSTERING_INLINE, options.CLUSTERING_SCHEDULE_INLINE)
_LEFT_TO_OTHERS = (options.COMPACT_SCHEDULE_INLINE, options.COMPACT_ASYNC)
_log = logging.getLogger(__name__)


def check_services_after_commit(config: TableConfig, opts: Options) -> None:
    """Check, before a write, the strategies of the services that may run after its commit, and issue
    OptionWithoutEffectWarning for inline compaction in a table that has nothing to compact.

    Raises:
        ConfigError: A strategy is unknown, or lacks an option; or clustering is enabled with the simple bucket index.
    """
    has_logs = config.table_type is TableType.MERGE_ON_READ
    if not has_logs:
        for option in filter(opts.get_typed, _INLINE):
            warn(
                f"{option.key}=true has no effect: the table has type {config.table_type}, which has no log files",
                OptionWithoutEffectWarning,
            )
    if not opts.get_typed(options.TABLE_SERVICES_ENABLED):
        return
    if has_logs and any(_is_wanted(option, opts) for option in _INLINE):
        named_strategies(opts)
    if any(map(opts.get_typed, _CLUSTERING)):
        _check_clusterable_index(opts)
        PlanStrategy.from_options(opts, max_file_size(opts, config.base_file_format))
    if opts.get_typed(options.TTL_INLINE):
        ttl_strategy(opts)


def _check_clusterable_index(opts: Options) -> None:
    in_buckets = opts.get_typed(options.INDEX_TYPE) is IndexType.BUCKET
    if in_buckets and opts.get_typed(options.BUCKET_ENGINE) is BucketIndexEngine.SIMPLE:
        option = next(filter(opts.get_typed, _CLUSTERING))
        raise ConfigError(
            f"{option.key}=true: the simple bucket index assigns each key to one file group, so clustering cannot move "
            f"rows to others; leave it out, or create the table with {options.BUCKET_ENGINE.key}="
            f"{BucketIndexEngine.CONSISTENT_HASHING}"
        )


@dataclass(frozen=True, slots=True)
class _Job:
    """A service to execute: its name, whether it runs concurrently with the write, and whether its errors are
    raised."""

    name: str
    runs_async: bool
    raises_errors: bool
    work: Callable[[], ServiceResult | None]

    def run(self) -> ServiceResult | None:
        try:
            return self.work()
        except LockError as error:
            _log.warning("%s is left to the next write: %s", self.name, error)
        except Exception as error:
            if self.raises_errors and not self.runs_async:
                raise _after_commit(self.name, error) from error
            _log.warning("the write is not affected, but %s during or after it failed: %s", self.name, error)
        return None


class PostCommitServices:
    """Table services after one commit to a table.

    Which ones are due is decided on one snapshot, taken when it is first needed: a service that finds work reads the
    table again under its lock, and what others commit meanwhile makes services due after their own commits.
    """

    def __init__(self, storage: Storage, opts: Options) -> None:
        self._storage, self._opts = storage, opts

    @lazy_property
    def _table(self) -> TableSnapshot:
        return TableSnapshot.load(TableMetaClient.open(self._storage, self._opts))

    @property
    def _client(self) -> TableMetaClient:
        return TableMetaClient(self._storage, self._table.config, self._opts)

    def clean_and_archive(self, stats_reader: FileStatsReader) -> tuple[ServiceResult, ...]:
        """Clean and archive, if enabled and due.

        `hoodie.clean.automatic` and `hoodie.archive.automatic` are enabled by default. Services that run concurrently
        with the write (`run_async`) are skipped. The write stays committed in any case, so errors are logged. If set to
        true, `hoodie.fail.writes.on.inline.table.service.exception` (for archival
        `hoodie.fail.on.timeline.archiving`) raises them, as ServiceAfterCommitError. A lock that another process holds
        for too long is only logged.
        """
        jobs = [job for job in self._maintenance(stats_reader) if not job.runs_async]
        return tuple(result for result in (job.run() for job in jobs) if result)

    @contextmanager
    def run_async(self, stats_reader: FileStatsReader) -> Iterator[None]:
        """Clean and archive in threads during the block, a write, if `hoodie.clean.async.enabled` and
        `hoodie.archive.async` are set, by what earlier commits have made due. The block ends when they are finished."""
        threads = [
            threading.Thread(target=job.run, daemon=True) for job in self._maintenance(stats_reader) if job.runs_async
        ]
        for thread in threads:
            thread.start()
        try:
            yield
        finally:
            for thread in threads:
                thread.join()

    def _maintenance(self, stats_reader: FileStatsReader) -> list[_Job]:
        opts = self._opts
        if not opts.get_typed(options.TABLE_SERVICES_ENABLED):
            return []
        jobs = []
        if opts.get_typed(options.AUTO_CLEAN):

            def clean_due() -> ServiceResult:
                return Cleaner(self._client, opts, stats_reader).run(self._table, only_if_due=True)

            raises_errors = _is_set(options.FAIL_ON_INLINE_SERVICE_ERROR, opts)
            jobs.append(_Job("cleaning", opts.get_typed(options.CLEAN_ASYNC), raises_errors, clean_due))
        if opts.get_typed(options.AUTO_ARCHIVE):

            def archive_due() -> ServiceResult | None:
                # Cleaning, which may have gone before, changes no number of commits.
                due = is_archival_due(self._table, opts)
                return archive_table(self._client, opts, stats_reader, only_if_due=True) if due else None

            raises_errors = _is_set(options.FAIL_ON_ARCHIVING, opts)
            jobs.append(_Job("archival", opts.get_typed(options.ARCHIVE_ASYNC), raises_errors, archive_due))
        return jobs

    def compact(self, runner: CompactionRunner) -> tuple[CompactionResult, ...]:
        """Execute the enabled services of a merge-on-read table.

        `hoodie.compact.inline` executes pending plans and then, if due, a new one; it is enabled by default for batch
        writes, as in Apache Hudi's data source. `hoodie.compact.schedule.inline` only makes a plan, if none is pending;
        `hoodie.log.compaction.inline` corresponds to the first for log compactions.

        Plans that another writer is executing are skipped.

        The write stays committed in any case, so errors are logged: a user who sees an exception would write the rows
        again. If set to true, `hoodie.fail.writes.on.inline.table.service.exception` raises them.
        """
        opts = self._opts
        enabled = [option for option in _INLINE if _is_wanted(option, opts)]
        if not enabled or not opts.get_typed(options.TABLE_SERVICES_ENABLED):
            return ()
        results: list[CompactionResult] = []
        with handle_service_failure("compaction", opts):
            table = self._table
            if table.config.table_type is not TableType.MERGE_ON_READ:
                return ()
            run_due = partial(run_compactions, self._client, opts, runner, only_if_due=True, busy=BusyPlans.LEAVE)
            has_plans = bool(table.active.timeline.pending().of_actions(Action.COMPACTION))
            is_due = bool(evaluate_compaction_trigger(table.active.timeline, trigger_time(table), opts))
            if options.COMPACT_INLINE in enabled:
                results += [run_due(action=Action.COMPACTION)] if has_plans or is_due else []
            elif options.COMPACT_SCHEDULE_INLINE in enabled and is_due and not has_plans:
                schedule_compaction(self._client, opts, only_if_due=True)
            if options.LOG_COMPACTION_INLINE in enabled:
                with handle_service_failure("log compaction", opts):
                    results.append(run_due(action=Action.LOG_COMPACTION))
        return tuple(result for result in results if result)

    def cluster(self, runner: ClusteringRunner) -> ClusteringResult | None:
        """Execute the enabled clustering.

        `hoodie.clustering.inline` executes pending plans or, if due, a new one; `hoodie.clustering.schedule.inline`
        only makes a plan, if due and none is pending. Errors, and plans that another writer is executing, are treated
        as in `compact`.
        """
        opts = self._opts
        inline, planned = opts.get_typed(options.CLUSTERING_INLINE), opts.get_typed(options.CLUSTERING_SCHEDULE_INLINE)
        if not (inline or planned) or not opts.get_typed(options.TABLE_SERVICES_ENABLED):
            return None
        with handle_service_failure("clustering", opts):
            active = self._table.active
            has_plans = bool(pending_clusterings(active))
            is_due = bool(evaluate_clustering_trigger(active.timeline, opts))
            if inline and (has_plans or is_due):
                return run_clusterings(self._client, opts, runner, only_if_due=True, busy=BusyPlans.LEAVE)
            if is_due and not has_plans:
                schedule_clustering(self._client, opts, only_if_due=True)
        return None


def _is_set(option: Option[bool], opts: Options) -> bool:
    """Return True if a user has set an option to true, regardless of its default."""
    return opts.is_set(option) and opts.get_typed(option)


@contextmanager
def handle_service_failure(what: str, opts: Options) -> Iterator[None]:
    """Log the errors of a service that runs after the write is committed; raise them if the user has enabled this."""
    try:
        yield
    except ServiceAfterCommitError:
        raise
    except Exception as error:  # Including errors of the engine.
        if _is_set(options.FAIL_ON_INLINE_SERVICE_ERROR, opts):
            raise _after_commit(what, error) from error
        _log.warning("the write is committed, but %s after it failed: %s", what, error)


def _after_commit(what: str, error: Exception) -> ServiceAfterCommitError:
    return ServiceAfterCommitError(f"the write is committed, do not run it again; {what} after it failed: {error}")


def _is_wanted(option: Option[bool], opts: Options) -> bool:
    if option is options.COMPACT_INLINE and not opts.is_set(option):
        return not any(opts.is_set(other) and opts.get_typed(other) for other in _LEFT_TO_OTHERS)
    return opts.get_typed(option)
