"""Runs a bootstrap: makes the table, and commits what is left of the plan."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

import pyarrow as pa

from pyhudi.errors import HudiError, NotAHudiTableError, UnsupportedTableError
from pyhudi.services.bootstrap.bootstrap_plan import BootstrapPlan, remaining
from pyhudi.services.bootstrap.metadata_bootstrap import Runner, bootstrap_metadata
from pyhudi.table.config.new_table_properties import bootstrap_properties
from pyhudi.table.meta_client import TableMetaClient
from pyhudi.transaction.table_overwrite.created_table_removal import remove_empty_table
from pyhudi.write.write_result import WriteResult

if TYPE_CHECKING:
    from pyhudi.metadata.writer.file_stats_reader import FileStatsReader

_log = logging.getLogger(__name__)

FullBootstrap = Callable[[BootstrapPlan, TableMetaClient], WriteResult]
"""Writes the rows of the files of a plan that are to be bootstrapped whole."""


def run_bootstrap(
    plan: BootstrapPlan, run: Runner, full: FullBootstrap | None, stats_reader: FileStatsReader
) -> WriteResult:
    """Carry out a plan, in a table that is made if there is none; one that stays without any write is removed.

    Metadata-only files are committed first, then the others. If that is cut off in between, the same bootstrap again
    goes on with the others.

    Args:
        plan: The plan.
        run: Writes skeleton files.
        full: Writes the rows of files that are bootstrapped whole; None: nothing here can.
        stats_reader: Reads files where the metadata table is built of them.

    Raises:
        TableExistsError: the table has been written to.
        UnsupportedTableError: files are to be bootstrapped whole, and nothing here can.
    """
    try:
        client = TableMetaClient.open(plan.storage, plan.opts)
    except NotAHudiTableError:
        client = None
    created = client is None
    if client is not None:
        plan = remaining(plan, client)
        client = _with_source(plan, client)
        plan = replace(plan, config=client.config)
    if plan.full.num_rows and full is None:
        raise UnsupportedTableError(
            f"{plan.full.num_rows:,} files are to be bootstrapped whole, which needs Spark: pass a session, or let all "
            "partitions be bootstrapped by metadata only"
        )
    if client is None:
        client = TableMetaClient.create(plan.storage, plan.config, plan.opts)
    results = []
    try:
        if plan.metadata_only.num_rows:
            results.append(bootstrap_metadata(plan, client, run, stats_reader))
        if plan.full.num_rows and full is not None:
            results.append(full(plan, client.reload()))
    except BaseException:
        if created:
            try:
                remove_empty_table(plan.storage, plan.opts)
            except HudiError as failure:  # what went wrong first is what the caller has to know
                _log.warning("the empty table at %s is left behind: %s", plan.storage.uri(), failure)
        raise
    if not results:
        return WriteResult(plan.storage.uri(), "BOOTSTRAP")
    last = results[-1]
    return replace(
        last,
        operation="BOOTSTRAP",
        created_table=created,
        stats=pa.concat_tables([result.stats for result in results]),
        warnings=tuple(text for result in results for text in result.warnings),
    )


def _with_source(plan: BootstrapPlan, client: TableMetaClient) -> TableMetaClient:
    """The table, which knows its source; an empty one that was made without one is told."""
    wanted = bootstrap_properties(plan.opts, client.config.version)
    missing = {key: value for key, value in wanted.items() if key not in client.config.properties}
    return client.with_config(client.config.updated(client.storage, set=missing)) if missing else client
