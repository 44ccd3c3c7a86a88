"""Procedures that repair metadata, and duplicate rows, of a table, and delete markers that were left."""

from __future__ import annotations

from pyspark.sql import SparkSession

from pyhudi.config import Options
from pyhudi.errors import TransactionError
from pyhudi.services.repair.corrupted_clean_repair import repair_clean_files
from pyhudi.services.repair.duplicate_keys import DedupeType
from pyhudi.services.repair.partition_metadata_migration import migrate_partition_metadata
from pyhudi.services.repair.partition_metadata_repair import repair_partition_metadata
from pyhudi.services.repair.properties_repair import repair_properties
from pyhudi.spark.read.load_table import session_settings
from pyhudi.spark.services.spark_deduplication import deduplicate, preview_deduplication
from pyhudi.spark.sql.procedures.arguments import Arguments, Procedure, Rows
from pyhudi.spark.sql.session_config import session_options
from pyhudi.storage import open_storage
from pyhudi.table.config.properties_text import parse_properties
from pyhudi.timeline.markers import Markers


def repair_add_partition_meta(spark: SparkSession, arguments: Arguments) -> Rows:
    """Show which partitions have their metadata files; write those that are lost, unless it is a ``dry_run``."""
    repaired = repair_partition_metadata(arguments.client(spark), dry_run=arguments.flag("dry_run"))
    return [
        (row["partition"], "Yes" if row["is_present"] else "No", "Repaired" if row["is_repaired"] else "None")
        for row in repaired.to_pylist()
    ]


def repair_migrate_partition_meta(spark: SparkSession, arguments: Arguments) -> Rows:
    """Keep metadata files of partitions as base files, unless it is a ``dry_run``."""
    client, opts = arguments.opened(spark)
    migrated = migrate_partition_metadata(client, opts, dry_run=arguments.flag("dry_run"))
    return [
        (
            row["partition"],
            str(row["has_text"]).lower(),
            str(row["has_base"]).lower(),
            "MIGRATED" if row["is_migrated"] else "MIGRATE" if row["has_text"] else "NONE",
        )
        for row in migrated.to_pylist()
    ]


def repair_corrupted_clean_files(spark: SparkSession, arguments: Arguments) -> Rows:
    """Delete pending cleans whose plans cannot be read."""
    client, opts = arguments.opened(spark)
    repair_clean_files(client, opts, dry_run=False)
    return [(True,)]


def repair_overwrite_hoodie_props(spark: SparkSession, arguments: Arguments) -> Rows:
    """Replace the properties of the table by those of a file."""
    properties = parse_properties(arguments.file(spark, "new_props_file_path"))
    location = arguments.location(spark)
    opts = Options.parse({**session_settings(spark, location), **session_options(spark)})
    changed = repair_properties(open_storage(location, opts), properties, opts, dry_run=False)
    return [
        tuple("null" if row[name] is None else row[name] for name in ("property", "old_value", "new_value"))
        for row in changed.to_pylist()
    ]


def repair_deduplicate(spark: SparkSession, arguments: Arguments) -> Rows:
    """Remove duplicate rows of a partition; a ``dry_run`` writes the remaining rows to
    ``repaired_output_path``."""
    kind = DedupeType.from_text(str(arguments.text("dedupe_type")))
    partition, output = (str(arguments.text(n)) for n in ("duplicated_partition_path", "repaired_output_path"))
    client, opts = arguments.opened(spark)
    if arguments.flag("dry_run"):
        preview_deduplication(spark, client, opts, partition=partition, kind=kind, output=output)
        return [(f"Deduplicated files placed in: {output}.",)]
    deduplicate(spark, client, opts, partition, kind)
    return [(f"Deduplicated files placed in: {partition}.",)]


def delete_marker(spark: SparkSession, arguments: Arguments) -> Rows:
    """Delete the markers of a write that has completed or was rolled back.

    Raises:
        TransactionError: It is pending, so that its rollback needs them.
    """
    client, requested = arguments.client(spark), str(arguments.text("instant_time"))
    pending = client.active_timeline().timeline.pending().find(requested)
    if pending is not None:
        raise TransactionError(f"{pending} is pending, and its rollback needs its markers: roll it back instead")
    Markers(client.storage, requested).delete()
    return [(True,)]


PROCEDURES: dict[str, Procedure] = {
    "delete_marker": delete_marker,
    "repair_add_partition_meta": repair_add_partition_meta,
    "repair_migrate_partition_meta": repair_migrate_partition_meta,
    "repair_corrupted_clean_files": repair_corrupted_clean_files,
    "repair_overwrite_hoodie_props": repair_overwrite_hoodie_props,
    "repair_deduplicate": repair_deduplicate,
}
