"""Commit metadata: the written files and statistics of a commit, deltacommit or replacecommit.

In memory they are Arrow (one row per written file), on disk JSON in layout 1 and an Avro container with one record in
layout 2.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.errors import FormatError
from pyhudi.format.avro.container import is_container, read_container
from pyhudi.format.avro.decoder import has_fast_decoder
from pyhudi.storage import join_path
from pyhudi.timeline.encoding.commit_avro import LARGE, decode_commit_record, encode_commit_record
from pyhudi.timeline.encoding.jackson_json import pretty
from pyhudi.timeline.encoding.write_stat_json import stats_by_partition
from pyhudi.timeline.instant import Action, completed_action

NEW_FILE_GROUP = "null"
"""``prevCommit`` of the first file of a new file group: the text "null", not a null."""

_RUNTIME = pa.struct([("totalScanTime", pa.int64()), ("totalUpsertTime", pa.int64()), ("totalCreateTime", pa.int64())])

WRITE_STAT_SCHEMA = pa.schema(
    [
        ("fileId", pa.string()),
        ("path", pa.string()),
        ("cdcStats", pa.map_(pa.string(), pa.int64())),
        ("prevCommit", pa.string()),
        ("numWrites", pa.int64()),
        ("numDeletes", pa.int64()),
        ("numUpdateWrites", pa.int64()),
        ("numInserts", pa.int64()),
        ("totalWriteBytes", pa.int64()),
        ("totalWriteErrors", pa.int64()),
        ("tempPath", pa.string()),
        ("partitionPath", pa.string()),
        ("totalLogRecords", pa.int64()),
        ("totalLogFilesCompacted", pa.int64()),
        ("totalLogSizeCompacted", pa.int64()),
        ("totalUpdatedRecordsCompacted", pa.int64()),
        ("totalLogBlocks", pa.int64()),
        ("totalCorruptLogBlock", pa.int64()),
        ("totalRollbackBlocks", pa.int64()),
        ("fileSizeInBytes", pa.int64()),
        ("minEventTime", pa.int64()),
        ("maxEventTime", pa.int64()),
        ("runtimeStats", _RUNTIME),
        ("logVersion", pa.int32()),
        ("logOffset", pa.int64()),
        ("baseFile", pa.string()),
        ("logFiles", pa.list_(pa.string())),
        ("prevBaseFile", pa.string()),
        ("totalLogReadTimeMs", pa.int64()),
        ("numUpdates", pa.int64()),
        ("totalLogFiles", pa.int64()),
    ]
)
"""One row per written file, with Hudi's field names. Counts are rows, sizes bytes, times milliseconds.

``partitionPath`` is never null (``""`` without partitions), and ``path`` is relative to the root of the table. A row
without ``path`` belongs to a workload profile: the plan of an inflight write, by partition and file id.
"""
WriteStat = dict[str, Any]
"""One written file, as a row of `WRITE_STAT_SCHEMA`. Those of write tasks have the bounds of its columns, too (a value
of `pyhudi.format.base_file.column_bounds.bounds_type`)."""

REPLACED_SCHEMA = pa.schema([("partition", pa.string()), ("file_id", pa.string())])
"""File groups replaced by a replacecommit."""

_JSON_FIELDS = tuple(WRITE_STAT_SCHEMA.names[:23])
_JSON_LOG_FIELDS = ("logVersion", "logOffset", "baseFile", "logFiles")
_MAYBE_NULL = frozenset(
    {"path", "cdcStats", "tempPath", "minEventTime", "maxEventTime", "runtimeStats", "prevBaseFile", "totalLogFiles"}
    | set(_JSON_LOG_FIELDS)
)
_DEFAULTS = {
    name: "" if name in ("fileId", "partitionPath") else NEW_FILE_GROUP if name == "prevCommit" else 0
    for name in WRITE_STAT_SCHEMA.names
    if name not in _MAYBE_NULL
}
_NO_STATS = WRITE_STAT_SCHEMA.empty_table()


def write_stats(rows: Iterable[Mapping[str, Any]] | pa.Table) -> pa.Table:
    """Return a table of WRITE_STAT_SCHEMA from rows or a table with some of its columns.

    Missing counts become 0, a missing ``prevCommit`` becomes ``null`` as text, other missing values null.
    """
    if isinstance(rows, pa.Table):
        columns = [
            rows[f.name].cast(f.type) if f.name in rows.column_names else pa.nulls(rows.num_rows, f.type)
            for f in WRITE_STAT_SCHEMA
        ]
        table = pa.Table.from_arrays(columns, schema=WRITE_STAT_SCHEMA)
    else:
        table = pa.Table.from_pylist([_to_row(row) for row in rows], schema=WRITE_STAT_SCHEMA)
    filled = [pc.fill_null(table[n], _DEFAULTS[n]) if n in _DEFAULTS else table[n] for n in WRITE_STAT_SCHEMA.names]
    return pa.Table.from_arrays(filled, schema=WRITE_STAT_SCHEMA)


def total(stats: pa.Table, name: str) -> int:
    """Return the sum of a column of write statistics, with null as 0."""
    return int(pc.sum(stats[name]).as_py() or 0)


@dataclass(frozen=True, slots=True)
class CommitMetadata:
    """Metadata of one write: its files and statistics or, while inflight, its workload profile.

    ``operation`` is an operation type such as ``UPSERT``; ``stats`` has WRITE_STAT_SCHEMA; ``extra`` is the extra
    metadata, including ``schema`` (Avro JSON of the table's columns); ``compacted`` is set by compactions and log
    compactions; ``replaced`` (REPLACED_SCHEMA) is set only for completed replacecommits.
    """

    operation: str
    stats: pa.Table = field(default_factory=lambda: _NO_STATS)
    extra: Mapping[str, str] = field(default_factory=dict)
    compacted: bool = False
    replaced: pa.Table | None = None

    @property
    def schema_json(self) -> str | None:
        """Avro schema of the write, if recorded."""
        return self.extra.get("schema") or None

    def named_files(self) -> pa.Array:
        """Return the paths of all data files in the write statistics, relative to the root of the table: base files,
        change data files, log files."""
        stats = self.stats
        named = [stats["path"].drop_null().combine_chunks()]
        cdc = stats["cdcStats"].drop_null().combine_chunks()
        if len(cdc):
            named.append(cdc.keys.cast(pa.string()))
        logs = stats.filter(pc.is_valid(stats["logFiles"])).select(["partitionPath", "logFiles"]).to_pylist()
        named.append(pa.array([join_path(r["partitionPath"], f) for r in logs for f in r["logFiles"]], pa.string()))
        return pa.concat_arrays([chunk.cast(pa.string()) for chunk in named])

    def encode(self, version: int, action: str) -> bytes:
        """Return the bytes of the timeline file for a table of the given version.

        ``action`` determines the record type from version 8 on: a replacecommit (or clustering) with ``replaced`` is a
        HoodieReplaceCommitMetadata, everything else a HoodieCommitMetadata.
        """
        replaces = completed_action(action) == Action.REPLACE_COMMIT and self.replaced is not None
        stats = write_stats(self.stats)
        record: dict[str, Any] = {"compacted": self.compacted, "extraMetadata": dict(self.extra)}
        record["operationType"] = self.operation
        if replaces:
            record["partitionToReplaceFileIds"] = self._replaced_by_partition()
        if version < 8:
            by_partition = stats_by_partition(stats, _JSON_FIELDS, _JSON_LOG_FIELDS)
            return pretty({"partitionToWriteStats": by_partition} | record).encode()
        name = "HoodieReplaceCommitMetadata" if replaces else "HoodieCommitMetadata"
        return encode_commit_record(f"{name}.v8-v9", stats, record)

    def _replaced_by_partition(self) -> dict[str, list[str]]:
        assert self.replaced is not None
        result: dict[str, list[str]] = {}
        for row in self.replaced.to_pylist():
            result.setdefault(row["partition"], [])
            if row["file_id"] is not None:
                result[row["partition"]].append(row["file_id"])
        return result


def decode_commit(data: bytes) -> CommitMetadata:
    """Parse commit or replacecommit metadata, JSON or Avro according to the first bytes.

    Empty files (an inflight file of Spark's row-writer bulk insert, a requested file) are refused: callers must check
    the state first.

    Raises:
        FormatError: The bytes are neither, or incomplete.
    """
    if not data:
        raise FormatError("commit metadata of zero bytes")
    if is_container(data):
        if len(data) >= LARGE and has_fast_decoder():
            values, partitions, stats = decode_commit_record(data)
            return replace(commit_of_record(values), stats=_with_partitions(stats, partitions))
        _, records = read_container(data)
        if len(records) != 1:
            raise FormatError(f"commit metadata must hold one Avro record, but have {len(records)}")
        return commit_of_record(records[0])
    try:
        record = json.loads(data)
    except ValueError as error:
        raise FormatError(f"commit metadata are neither an Avro container nor JSON: {error}") from error
    return commit_of_record(record)


def commit_of_record(record: Any) -> CommitMetadata:
    """Return the commit metadata of a JSON object or Avro record (also as embedded in archives)."""
    try:
        by_partition = record.get("partitionToWriteStats") or {}
        replaced = record.get("partitionToReplaceFileIds")
        return CommitMetadata(
            operation=record.get("operationType") or "UNKNOWN",
            stats=_stats_table(by_partition),
            extra={k: v for k, v in (record.get("extraMetadata") or {}).items() if v is not None},
            compacted=bool(record.get("compacted")),
            replaced=None if replaced is None else _replaced_table(replaced),
        )
    except (AttributeError, TypeError, ValueError, pa.ArrowException) as error:
        raise FormatError(f"not commit metadata: {error}") from error


def _stats_table(by_partition: Mapping[str, list[Mapping[str, Any]]]) -> pa.Table:
    """Return all stats, column by column, because a commit may have very many."""
    stats = [stat for partition_stats in by_partition.values() for stat in partition_stats]
    if any(stat.get("cdcStats") for stat in stats):
        stats = [_to_row(stat) for stat in stats]
    rows = pa.array(stats, pa.struct(list(WRITE_STAT_SCHEMA)))
    partitions = [partition for partition, partition_stats in by_partition.items() for _ in partition_stats]
    return _with_partitions(rows, pa.array(partitions, pa.string()))


def _with_partitions(rows: pa.StructArray, partitions: pa.Array) -> pa.Table:
    """Return write stats with the partitions that they are listed under; those of workload profiles have no partition
    inside."""
    names = {field.name for field in rows.type}
    columns = {name: rows.field(name) for name in WRITE_STAT_SCHEMA.names if name in names}
    return write_stats(pa.table(columns | {"partitionPath": partitions}))


def _replaced_table(replaced: Mapping[str, list[str]]) -> pa.Table:
    # A partition with an empty list is kept as a row without file id.
    rows = [{"partition": p, "file_id": f} for p, ids in replaced.items() for f in (ids or (None,))]
    return pa.Table.from_pylist(rows, schema=REPLACED_SCHEMA)


def _to_row(stat: Mapping[str, Any]) -> dict[str, Any]:
    row = dict(stat)
    cdc = row.get("cdcStats")
    if isinstance(cdc, Mapping):
        row["cdcStats"] = list(cdc.items())
    return row
