"""Execution of a bootstrap: creates the table, and commits the remaining part of the plan."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import replace
from types import MappingProxyType

import pyarrow as pa

from pyhudi.config.property_keys import BOOTSTRAP_UNFINISHED
from pyhudi.errors import HudiError, NotAHudiTableError, UnsupportedTableError
from pyhudi.metadata.writer.initial_statistics import FileStatsReader
from pyhudi.services.bootstrap.bootstrap_plan import BootstrapPlan, remaining_bootstrap
from pyhudi.services.bootstrap.metadata_bootstrap import Runner, bootstrap_metadata
from pyhudi.table.config.new_table_properties import bootstrap_properties
from pyhudi.table.config.table_config import TableConfig
from pyhudi.table.meta_client import TableMetaClient
from pyhudi.transaction.single_writer_locks import in_process_writer_lock
from pyhudi.transaction.table_overwrite.table_removal import remove_empty_table
from pyhudi.write.settings.write_target import WriteTarget
from pyhudi.write.write_result import WriteResult

_log = logging.getLogger(__name__)

FullBootstrap = Callable[[BootstrapPlan, TableMetaClient], WriteResult]
"""Writes the rows of a plan's files for a full-record bootstrap."""


def run_bootstrap(
    plan: BootstrapPlan, run: Runner, full: FullBootstrap | None, stats_reader: FileStatsReader
) -> WriteResult:
    """Execute a plan in a table, which is created if needed. A created table without any write is removed after a
    failure.

    Metadata-only files are committed first, then the others. From the creation of the table until then a property of
    the table says that rows are missing, and other writes are refused. After an interruption, running the same
    bootstrap again continues with the rest.

    Args:
        plan: The plan.
        run: Writes skeleton files.
        full: Writes the rows of full-record bootstraps; None: not supported.
        stats_reader: Reads files to build the metadata table.

    Raises:
        TableExistsError: The table has been written to.
        UnsupportedTableError: A full-record bootstrap is required, but not supported.
    """
    with in_process_writer_lock(plan.target.storage, plan.target.opts):
        return _run(plan, run, full, stats_reader)


def _run(plan: BootstrapPlan, run: Runner, full: FullBootstrap | None, stats_reader: FileStatsReader) -> WriteResult:
    try:
        client = TableMetaClient.open(plan.target.storage, plan.target.opts)
    except NotAHudiTableError:
        client = None
    created = client is None
    if client is not None:
        plan = remaining_bootstrap(client, plan)
        client = _begun(client, plan)
        plan = replace(plan, target=replace(plan.target, config=client.config))
    if plan.full.num_rows and full is None:
        raise UnsupportedTableError(
            f"{plan.full.num_rows:,} files require a full-record bootstrap, which needs Spark: pass a session, or "
            "use metadata-only bootstrap for all partitions"
        )
    if client is None:
        client = _create(plan.target)
    results = []
    try:
        if plan.metadata_only.num_rows:
            results.append(bootstrap_metadata(client, plan, run, stats_reader))
        if plan.full.num_rows and full is not None:
            results.append(full(plan, client.reload()))
    except BaseException:
        if created:
            _remove_created(plan.target)
        elif not client.active_timeline().timeline.writes().completed():
            _remove_mark(client)
        raise
    warnings = _remove_mark(client)
    if not results:
        return WriteResult(plan.target.storage.uri(), "BOOTSTRAP", warnings=warnings)
    return replace(
        results[-1],
        operation="BOOTSTRAP",
        created_table=created,
        stats=pa.concat_tables([result.stats for result in results]),
        warnings=(*(text for result in results for text in result.warnings), *warnings),
    )


def _create(target: WriteTarget) -> TableMetaClient:
    """Create the table, with the mark that rows of it are missing."""
    properties = {**target.config.properties, BOOTSTRAP_UNFINISHED: "true"}
    return TableMetaClient.create(target.storage, TableConfig(MappingProxyType(properties)), target.opts)


def _remove_created(target: WriteTarget) -> None:
    """Remove a created table without any write; a failure is logged, because the first error is the one to report."""
    try:
        remove_empty_table(target.storage, target.opts)
    except HudiError as failure:
        _log.warning("the empty table at %s was not removed: %s", target.storage.uri(), failure)


def _remove_mark(client: TableMetaClient) -> tuple[str, ...]:
    """Remove the property that says that rows are missing, because all are committed, or none. Return a warning if that
    fails."""
    try:
        client.config.updated(client.storage, remove=(BOOTSTRAP_UNFINISHED,))
    except HudiError as failure:
        text = (
            f"other writes are refused until the bootstrap is run again, because the property {BOOTSTRAP_UNFINISHED} "
            f"could not be removed: {failure}"
        )
        _log.warning("%s", text)
        return (text,)
    return ()


def _begun(client: TableMetaClient, plan: BootstrapPlan) -> TableMetaClient:
    """Return the table with its source recorded, also in an empty one that was created without it, and with the mark
    that rows of it are missing."""
    properties = bootstrap_properties(plan.target.opts, client.config.version)
    properties |= {BOOTSTRAP_UNFINISHED: "true"}
    missing = {key: value for key, value in properties.items() if key not in client.config.properties}
    return client.with_config(client.config.updated(client.storage, set=missing)) if missing else client
