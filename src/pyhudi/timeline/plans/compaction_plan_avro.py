"""Compaction plans as Avro records of the timeline, for tables and metadata tables.

Apache Hudi executes pending plans of any writer, and requires all metrics of an operation (``HoodieCompactor``): a
missing one fails its compaction.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pyhudi.format.file_names import file_name_of

PLAN_VERSION = 2
"""Version of plans whose operations name files without folders."""


def plan_record(
    operations: Sequence[Mapping[str, Any]],
    table_version: int,
    *,
    strategy: Mapping[str, Any] | None,
    preserve_metadata: bool,
    missing: Sequence[str],
) -> dict[str, Any]:
    """Return the Avro record of a plan.

    Args:
        operations: Rows of `pyhudi.timeline.plans.compaction_plan.OPERATION_SCHEMA`.
        table_version: Version of the table.
        strategy: Record of the strategy, for plans that name one.
        preserve_metadata: Records keep their commit times.
        missing: Partitions with slices left for the next plan (from version 8 on).
    """
    record: dict[str, Any] = {
        "operations": [operation_record(row) for row in operations],
        "extraMetadata": {} if table_version >= 8 else None,
        "version": PLAN_VERSION,
        "strategy": strategy,
        "preserveHoodieMetadata": preserve_metadata,
    }
    return record | ({"missingSchedulePartitions": list(missing)} if table_version >= 8 else {})


def operation_record(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return the Avro record of an operation."""
    metrics = {
        "TOTAL_LOG_FILES": len(row["log_files"]),
        "TOTAL_IO_MB": row["read_mb"] + row["write_mb"],
        "TOTAL_IO_READ_MB": row["read_mb"],
        "TOTAL_LOG_FILES_SIZE": row["log_bytes"],
        "TOTAL_IO_WRITE_MB": row["write_mb"],
    }
    return {
        "baseInstantTime": row["base_instant"],
        "deltaFilePaths": list(row["log_files"]),
        "dataFilePath": row["base_file"],
        "fileId": row["file_id"],
        "partitionPath": row["partition"],
        "metrics": {name: float(value) for name, value in metrics.items()},
        "bootstrapFilePath": None,
    }


def operation_row(record: Mapping[str, Any]) -> dict[str, Any]:
    """Return the row of an operation record. Of paths, which old releases wrote, only the names are used."""
    metrics = record["metrics"] or {}
    base = record["dataFilePath"]
    return {
        "partition": record["partitionPath"] or "",
        "file_id": record["fileId"],
        "base_instant": record["baseInstantTime"],
        "base_file": file_name_of(base) if base else None,
        "log_files": [file_name_of(name) for name in record["deltaFilePaths"] or ()],
        "log_bytes": int(metrics.get("TOTAL_LOG_FILES_SIZE", 0)),
        "read_mb": int(metrics.get("TOTAL_IO_READ_MB", 0)),
        "write_mb": int(metrics.get("TOTAL_IO_WRITE_MB", 0)),
    }
