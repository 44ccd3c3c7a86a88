"""Compaction plans as Avro records of the timeline, for tables and metadata tables.

Apache Hudi executes pending plans of any writer, and requires all metrics of an operation (``HoodieCompactor``): a
missing one fails its compaction. Operations are encoded column by column, and so are large plans decoded.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.arrow.arrays import contiguous
from pyhudi.errors import FormatError
from pyhudi.format.avro.container import container_of, load_schema, schema_json
from pyhudi.format.avro.encoder import RecordEncoder
from pyhudi.format.avro.type_tree import record_type
from pyhudi.format.file_names import file_name_of, file_names_of
from pyhudi.timeline.action_avro import schema_name
from pyhudi.timeline.encoding.commit_avro import decode_single_record
from pyhudi.timeline.instant import State

PLAN_VERSION = 2
"""Version of plans whose operations name files without folders."""
_OPERATION_FIELDS = frozenset(
    {"partitionPath", "fileId", "baseInstantTime", "dataFilePath", "deltaFilePaths", "metrics"}
)
"""Fields of an operation that are read."""
_METRICS = ("TOTAL_LOG_FILES", "TOTAL_IO_MB", "TOTAL_IO_READ_MB", "TOTAL_LOG_FILES_SIZE", "TOTAL_IO_WRITE_MB")


def encode_plan(
    action: str,
    operations: pa.Table,
    table_version: int,
    *,
    strategy: Mapping[str, Any] | None,
    preserve_metadata: bool,
    missing: Sequence[str],
) -> bytes:
    """Return the content of the requested file of a plan.

    Args:
        action: Compaction or log compaction.
        operations: `pyhudi.timeline.plans.compaction_plan.OPERATION_SCHEMA`.
        table_version: Version of the table.
        strategy: Record of the strategy, for plans that name one.
        preserve_metadata: Records keep their commit times.
        missing: Partitions with slices left for the next plan (from version 8 on).
    """
    others = {
        "extraMetadata": [] if table_version >= 8 else None,
        "version": PLAN_VERSION,
        "strategy": strategy,
        "preserveHoodieMetadata": preserve_metadata,
        "missingSchedulePartitions": list(missing),
    }
    text = schema_json(load_schema(schema_name(action, State.REQUESTED, table_version)))
    record, encoder = record_type(text), RecordEncoder(1)
    for (name, avro), arrow in zip(record.fields, record.arrow, strict=True):
        column = _operation_list(operations) if name == "operations" else pa.array([others[name]], arrow.type)
        encoder.value(avro, column, name)
    return container_of(text, [encoder.rows.joined()[0].as_py()])


def _operation_list(operations: pa.Table) -> pa.ListArray:
    """Return one list of all operations, with the fields of the format in their order."""
    columns = {name: contiguous(operations[name]) for name in operations.column_names}
    members = {
        "baseInstantTime": columns["base_instant"],
        "deltaFilePaths": columns["log_files"],
        "dataFilePath": columns["base_file"],
        "fileId": columns["file_id"],
        "partitionPath": columns["partition"],
        "metrics": _metrics(columns),
        "bootstrapFilePath": pa.nulls(operations.num_rows, pa.string()),
    }
    structs = pa.StructArray.from_arrays(list(members.values()), list(members))
    return pa.ListArray.from_arrays(pa.array([0, len(structs)], pa.int32()), structs)


def _metrics(columns: Mapping[str, pa.Array]) -> pa.MapArray:
    values = (
        pc.list_value_length(columns["log_files"]),
        pc.add(columns["read_mb"], columns["write_mb"]),
        columns["read_mb"],
        columns["log_bytes"],
        columns["write_mb"],
    )
    rows = np.column_stack([each.to_numpy() for each in values]).astype(np.float64)
    offsets = pa.array(np.arange(0, rows.size + 1, len(_METRICS)), pa.int32())
    return pa.MapArray.from_arrays(offsets, pa.array(_METRICS * len(rows), pa.string()), pa.array(rows.ravel()))


def decode_large_plan(data: bytes) -> tuple[list[pa.Array], tuple[str, ...]]:
    """Return the columns of `pyhudi.timeline.plans.compaction_plan.OPERATION_SCHEMA` of a plan, and its partitions with
    slices left for the next plan. Of paths, which old releases wrote, only the names are used.

    Raises:
        FormatError: The bytes are not a complete plan.
    """
    fields = decode_single_record(data)
    operations = fields.get("operations")
    if (
        operations is None
        or not pa.types.is_list(operations.type)
        or not pa.types.is_struct(operations.type.value_type)
    ):
        raise FormatError("a compaction plan lacks its operations")
    structs = operations.flatten()
    members = dict(zip((f.name for f in structs.type), structs.flatten(), strict=True))
    absent = _OPERATION_FIELDS - members.keys()
    if absent:
        raise FormatError(f"operations of a compaction plan lack {', '.join(sorted(absent))}")
    base, logs = members["dataFilePath"], members["deltaFilePaths"]
    counts = pc.fill_null(pc.list_value_length(logs), 0).to_numpy()
    offsets = pa.array(np.append(0, np.cumsum(counts)), pa.int32())
    columns = [
        pc.fill_null(members["partitionPath"], ""),
        members["fileId"],
        members["baseInstantTime"],
        pc.if_else(pc.equal(base, ""), pa.scalar(None, pa.string()), file_names_of(base)),
        pa.ListArray.from_arrays(offsets, file_names_of(logs.flatten())),
        *(
            _metric(members["metrics"], name)
            for name in ("TOTAL_LOG_FILES_SIZE", "TOTAL_IO_READ_MB", "TOTAL_IO_WRITE_MB")
        ),
    ]
    missing = fields.get("missingSchedulePartitions")
    return columns, () if missing is None else tuple(missing[0].as_py() or ())


def _metric(metrics: pa.MapArray, name: str) -> pa.Int64Array:
    return pc.fill_null(pc.map_lookup(metrics, name, "first"), 0).cast(pa.int64(), safe=False)


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
