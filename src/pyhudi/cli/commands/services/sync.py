"""``pyhudi sync``: the entries of a table in a Hive metastore or in AWS Glue."""

from __future__ import annotations

from dataclasses import asdict

import click
import pyarrow as pa

import pyhudi
from pyhudi.cli.columns import SYNCED_TABLES
from pyhudi.cli.output import Output
from pyhudi.cli.parameters import with_output, with_table
from pyhudi.cli.structure import Command


@click.command("sync", cls=Command, short_help="Sync a table to a Hive metastore or to AWS Glue.")
@with_table
@with_output
def sync(table: pyhudi.HudiTable, *, out: Output) -> None:
    """Sync a table to a Hive metastore or to AWS Glue, as the options hoodie.datasource.hive_sync.… say.

    Python: HudiTable.for_path(PATH).services.sync_catalog()
    """
    synced = table.services.sync_catalog().tables
    out.rows(pa.Table.from_pylist([asdict(one) for one in synced]), SYNCED_TABLES, limit=None, nothing="no tables")
