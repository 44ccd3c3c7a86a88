"""``pyhudi repair``: repairs of a table. Writers should be stopped."""

from __future__ import annotations

from pathlib import Path

import click
import pyarrow as pa
from click import UsageError

import pyhudi
from pyhudi.cli.columns import ORPHANS
from pyhudi.cli.effects import Confirmation, with_confirmation, with_spark
from pyhudi.cli.output import Output
from pyhudi.cli.parameters import InstantTime, as_known_pairs, properties_of, with_output, with_path, with_table
from pyhudi.cli.results import print_affected, print_result
from pyhudi.cli.structure import noun
from pyhudi.report.row_table import ShownColumn, text_column

repair = noun("repair", "Repairs of files, properties and rows of a table.")
_CLEAN_FILES = (text_column("instant", is_whole=True), text_column("file"), text_column("is_repaired", "deleted"))
_PARTITION_METADATA = (
    text_column("partition"),
    text_column("is_present", "present"),
    text_column("is_repaired", "repaired"),
)
_MIGRATED = (
    text_column("partition"),
    text_column("has_text", "text file"),
    text_column("has_base", "base file"),
    text_column("is_migrated", "migrated"),
)
_PROPERTIES = (text_column("property"), text_column("old_value", "before"), text_column("new_value", "after"))
_DUPLICATES: tuple[ShownColumn, ...] = (
    text_column("partition"),
    text_column("file_id", "file group"),
    text_column("keys", "duplicate keys"),
)


@repair.command("orphans")
@with_table
@click.option("--partition", "partitions", multiple=True, metavar="PARTITION", help="Only in it; may be repeated.")
@with_confirmation
@with_output
def orphans(table: pyhudi.HudiTable, *, out: Output, partitions: tuple[str, ...], confirmation: Confirmation) -> None:
    """Delete data files that belong to no write of the timeline.

    Python: HudiTable.for_path(PATH).services.delete_orphan_files(partitions=…, dry_run=…)
    """
    named = list(partitions) or None

    def show(plan_out: Output) -> bool:
        rows = table.services.delete_orphan_files(partitions=named, dry_run=True)
        return print_affected(rows, ORPHANS, plan_out, "all data files belong to writes")

    if confirmation.ask("Delete these files?", show, out):
        out.rows(table.services.delete_orphan_files(partitions=named, dry_run=False), ORPHANS)


@repair.command("clean-files")
@with_table
@with_confirmation
@with_output
def clean_files(table: pyhudi.HudiTable, *, out: Output, confirmation: Confirmation) -> None:
    """Delete pending cleans whose plans cannot be read.

    Python: HudiTable.for_path(PATH).services.repair_clean_files(dry_run=…)
    """

    def show(plan_out: Output) -> bool:
        rows = table.services.repair_clean_files(dry_run=True)
        return print_affected(rows, _CLEAN_FILES, plan_out, "all plans can be read")

    if confirmation.ask("Delete these plans?", show, out):
        out.rows(table.services.repair_clean_files(), _CLEAN_FILES)


@repair.command("partition-metadata")
@with_table
@with_confirmation
@with_output
def partition_metadata(table: pyhudi.HudiTable, *, out: Output, confirmation: Confirmation) -> None:
    """Write missing .hoodie_partition_metadata files.

    Python: HudiTable.for_path(PATH).services.repair_partition_metadata(dry_run=…)
    """

    def show(plan_out: Output) -> bool:
        rows = table.services.repair_partition_metadata(dry_run=True)
        plan_out.rows(rows, _PARTITION_METADATA, limit=None)
        return False in rows["is_present"].to_pylist()

    if confirmation.ask("Write the missing files?", show, out):
        out.rows(table.services.repair_partition_metadata(), _PARTITION_METADATA, limit=None)


@repair.command("migrate-partition-metadata")
@with_table
@with_confirmation
@with_output
def migrate_partition_metadata(table: pyhudi.HudiTable, *, out: Output, confirmation: Confirmation) -> None:
    """Convert .hoodie_partition_metadata files from text to Parquet.

    Python: HudiTable.for_path(PATH).services.migrate_partition_metadata(dry_run=…)
    """

    def show(plan_out: Output) -> bool:
        rows = table.services.migrate_partition_metadata(dry_run=True)
        plan_out.rows(rows, _MIGRATED, limit=None)
        return True in rows["has_text"].to_pylist()

    if confirmation.ask("Convert these files?", show, out):
        out.rows(table.services.migrate_partition_metadata(), _MIGRATED, limit=None)


@repair.command("properties")
@with_path
@click.option(
    "--from",
    "file",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    metavar="FILE",
    help="File with all properties of the table, without the checksum, also if hoodie.properties is corrupt or "
    "missing.",
)
@click.option(
    "--set",
    "put",
    multiple=True,
    metavar="KEY=VALUE",
    callback=as_known_pairs,
    help="Set a property, and leave the others; may be repeated.",
)
@click.option("--unset", "remove", multiple=True, metavar="KEY", help="Remove a property; may be repeated.")
@with_confirmation
@with_output
def properties(
    path: str,
    *,
    options: dict[str, str],
    out: Output,
    file: Path | None,
    put: dict[str, str],
    remove: tuple[str, ...],
    confirmation: Confirmation,
) -> None:
    """Set or remove properties of a table (hoodie.properties), or replace all of them.

    No file of the table is rewritten: what the properties say of the files, as the key fields, has to stay true.

    Python: HudiTable.for_path(PATH).services.change_properties(…), or pyhudi.overwrite_properties(PATH, properties)
    """
    if (file is None) == (not put and not remove):
        raise UsageError("pass --set KEY=VALUE or --unset KEY to change some properties, or --from FILE to replace all")
    wanted = {} if file is None else properties_of(file)

    def change(*, dry_run: bool) -> pa.Table:
        if file is None:
            return pyhudi.HudiTable.for_path(path, options).services.change_properties(put, remove, dry_run=dry_run)
        return pyhudi.overwrite_properties(path, wanted, options, dry_run=dry_run)

    def show(plan_out: Output) -> bool:
        return print_affected(change(dry_run=True), _PROPERTIES, plan_out, "the table has these properties already")

    question = "Change these properties?" if file is None else "Replace the properties?"
    if confirmation.ask(question, show, out):
        out.rows(change(dry_run=False), _PROPERTIES, nothing="the table has these properties already")


@repair.command("deduplicate")
@with_table
@click.option("--partition", required=True, metavar="PARTITION", help="Path of the partition.")
@click.option(
    "--type",
    "dedupe_type",
    type=click.Choice(["insert_type", "update_type", "upsert_type"]),
    default="insert_type",
    show_default=True,
    help="Cause of the duplicates, which determines the row to keep.",
)
@with_confirmation
@with_spark
@with_output
def deduplicate(
    table: pyhudi.HudiTable, *, out: Output, partition: str, dedupe_type: str, confirmation: Confirmation
) -> None:
    """Remove rows with duplicate record keys from a partition. Requires --spark.

    Python: HudiTable.for_path(PATH).services.deduplicate(PARTITION, dedupe_type=…, dry_run=…)
    """

    def show(plan_out: Output) -> bool:
        duplicates = table.services.deduplicate(partition, dedupe_type=dedupe_type, dry_run=True)
        plan_out.rows(duplicates.groups, _DUPLICATES, nothing="no duplicate keys")
        return bool(duplicates.num_keys)

    if confirmation.ask("Remove the surplus rows?", show, out):
        print_result(table.services.deduplicate(partition, dedupe_type=dedupe_type), out)


@repair.command("markers")
@with_table
@click.argument("instant", type=InstantTime())
@with_output
def markers(table: pyhudi.HudiTable, *, out: Output, instant: str) -> None:
    """Delete the markers that the finished write INSTANT has left.

    Python: HudiTable.for_path(PATH).services.delete_markers(INSTANT)
    """
    table.services.delete_markers(instant)
    out.line(f"the markers of {instant} are deleted")
