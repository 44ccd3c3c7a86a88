"""``pyhudi metadata``: the metadata table."""

from __future__ import annotations

import click

import pyhudi
from pyhudi.cli.columns import METADATA_DIFFERENCES, METADATA_PARTITIONS
from pyhudi.cli.effects import Confirmation, with_confirmation, with_spark
from pyhudi.cli.failures import FAILED
from pyhudi.cli.output import Output
from pyhudi.cli.parameters import with_limit, with_output, with_table
from pyhudi.cli.structure import noun

metadata = noun("metadata", "The metadata table: list, validate, create, delete.")


@metadata.command("list")
@with_table
@with_output
def list_partitions(table: pyhudi.HudiTable, *, out: Output) -> None:
    """List the partitions of the metadata table with the numbers and sizes of their files.

    Python: HudiTable.for_path(PATH).inspect.metadata_partitions()
    """
    out.rows(table.inspect.metadata_partitions(), METADATA_PARTITIONS, nothing="no metadata table")


@metadata.command("validate")
@with_table
@click.option("--indexes", is_flag=True, help="Also compare the indexes of keys with the rows, which needs --spark.")
@with_limit
@with_spark
@with_output
def validate(table: pyhudi.HudiTable, *, out: Output, indexes: bool, limit: int | None) -> None:
    """Compare the metadata table with the storage. The exit code is 1 if they differ.

    Python: HudiTable.for_path(PATH).validate_metadata()
    """
    differences = table.validate_metadata(indexes=indexes)
    has_metadata = bool(table.config.metadata_partitions)
    nothing = "the metadata table lists the files of the storage" if has_metadata else "no metadata table"
    out.rows(differences, METADATA_DIFFERENCES, limit=limit, nothing=nothing)
    if differences.num_rows:
        click.get_current_context().exit(FAILED)


@metadata.command("create")
@with_table
@with_spark
@with_output
def create(table: pyhudi.HudiTable, *, out: Output) -> None:
    """Build the metadata table with the indexes that the options enable.

    Python: HudiTable.for_path(PATH).services.create_metadata_table()
    """
    out.facts({"partitions": list(table.services.create_metadata_table())})


@metadata.command("delete")
@with_table
@with_confirmation
@with_output
def delete(table: pyhudi.HudiTable, *, out: Output, confirmation: Confirmation) -> None:
    """Disable the metadata table, and delete it with all indexes.

    Python: HudiTable.for_path(PATH).services.delete_metadata_table()
    """

    def show(plan_out: Output) -> bool:
        partitions = list(table.config.metadata_partitions)
        plan_out.facts({"partitions": partitions or "no metadata table"})
        return bool(partitions)

    if confirmation.ask("Delete the metadata table?", show, out):
        out.facts({"deleted partitions": list(table.services.delete_metadata_table())})
