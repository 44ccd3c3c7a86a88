"""Services that a write to a merge-on-read table runs or plans after its commit."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from pyhudi.config import Options, options
from pyhudi.config.values import TableType
from pyhudi.errors import OptionWithoutEffectWarning, warn
from pyhudi.services.run import CompactionResult, Runner, run_pending
from pyhudi.services.schedule import pending_plans, schedule
from pyhudi.table.metaclient import TableMetaClient
from pyhudi.timeline.instants import Action

if TYPE_CHECKING:
    from pyhudi.config.option import Option
    from pyhudi.storage import Storage
    from pyhudi.table.config import TableConfig

_INLINE: tuple[Option[bool], ...] = (
    options.COMPACT_INLINE,
    options.COMPACT_SCHEDULE_INLINE,
    options.LOG_COMPACTION_INLINE,
)
_LEFT_TO_OTHERS = (options.COMPACT_SCHEDULE_INLINE, options.COMPACT_ASYNC)
_log = logging.getLogger(__name__)


def check_inline(config: TableConfig, opts: Options) -> None:
    """Warn OptionWithoutEffectWarning of inline compaction in a table that has nothing to compact."""
    if config.table_type is TableType.MERGE_ON_READ:
        return
    for option in _INLINE:
        if opts.get_typed(option):
            warn(
                f"{option.key}=true has no effect: the table is of type {config.table_type}, which has no log files",
                OptionWithoutEffectWarning,
            )


def after_deltacommit(storage: Storage, opts: Options, runner: Runner) -> tuple[CompactionResult, ...]:
    """What the options want done after a commit to a merge-on-read table: `hoodie.compact.inline` runs the plans that
    are pending and then, when one is due, a new one. Batch writes do so unless they are told not to, as those of Apache
    Hudi's data source. `hoodie.compact.schedule.inline` only makes a plan, when none is pending;
    `hoodie.log.compaction.inline` does with log compactions as the first.

    Plans that another writer is carrying out are left to it.

    The write is committed by then, whatever happens here. `hoodie.fail.writes.on.inline.table.service.exception` says
    whether an error is raised or logged.
    """
    wanted = [option for option in _INLINE if _is_wanted(option, opts)]
    if not wanted or not opts.get_typed(options.TABLE_SERVICES_ENABLED):
        return ()
    client = TableMetaClient.open(storage, opts)
    if client.config.table_type is not TableType.MERGE_ON_READ:
        return ()
    results: list[CompactionResult] = []
    try:
        if options.COMPACT_INLINE in wanted:
            results.append(_run_all(client, opts, runner, is_log=False))
        elif options.COMPACT_SCHEDULE_INLINE in wanted and not _pending(client):
            schedule(client, opts, only_if_due=True)
        if options.LOG_COMPACTION_INLINE in wanted:
            results.append(_run_all(client, opts, runner, is_log=True))
    except Exception as error:  # of whatever does the work, too
        if opts.get_typed(options.FAIL_ON_INLINE_SERVICE_ERROR):
            raise
        _log.warning("the write is committed, but a service after it failed: %s", error)
    return tuple(result for result in results if result)


def _is_wanted(option: Option[bool], opts: Options) -> bool:
    if option is options.COMPACT_INLINE and not opts.is_set(option):
        return not any(opts.is_set(other) and opts.get_typed(other) for other in _LEFT_TO_OTHERS)
    return opts.get_typed(option)


def _pending(client: TableMetaClient) -> bool:
    return bool(pending_plans(client.active_timeline(), Action.COMPACTION))


def _run_all(client: TableMetaClient, opts: Options, runner: Runner, *, is_log: bool) -> CompactionResult:
    done = run_pending(client, opts, runner, is_log=is_log, leave_others=True)
    plan = schedule(client, opts, is_log=is_log, only_if_due=True, to_run=True)
    if plan.instant is None:
        return done
    mine = run_pending(client, opts, runner, is_log=is_log, instant=plan.instant, leave_others=True)
    return done.and_(mine)
