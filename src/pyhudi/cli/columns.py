"""Columns of the tables that commands print, and selections of their rows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.report.number_text import bytes_text, count_text, instant_text
from pyhudi.report.row_table import ShownColumn, cell_text, count_column, size_column, text_column, time_column

_WIDE, _WIDER, _WIDEST = 90, 105, 125
"""Widths of a terminal from which further columns are shown."""


def operation_text(row: Mapping[str, Any]) -> str:
    """Return the operation of a write, or the action, and its state unless it is completed."""
    what, state = (row["operation"] or row["action"]).lower(), row["state"].lower()
    return what if state == "completed" else f"{what}, {state}"


def duration_text(millis: int | None) -> str:
    """Format ``2345`` milliseconds as ``2.3 s``; None is empty."""
    if millis is None:
        return ""
    seconds = millis / 1000
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes // 60}:{minutes % 60:02d}:{rest:02d}" if minutes >= 60 else f"{minutes}:{rest:02d} min"


def _duration_column(name: str, title: str, *, min_width: int = 0) -> ShownColumn:
    return ShownColumn(title, lambda row: duration_text(row[name]), True, min_width)


def _mean_size_column(name: str, title: str, *, min_width: int = 0) -> ShownColumn:
    return ShownColumn(title, lambda row: bytes_text(round(row[name])), True, min_width)


_FACT_NAMES = {"millis": "took", "scan_millis": "scan by tasks", "write_millis": "written by tasks"}
_INSTANT = text_column("requested", "instant", is_whole=True)
_WHAT = ShownColumn("what", operation_text)
COMMITS = (
    _INSTANT,
    time_column("requested", "time", min_width=_WIDE),
    _WHAT,
    count_column("files_written", "files"),
    count_column("rows_inserted", "inserted"),
    count_column("rows_updated", "updated"),
    count_column("rows_deleted", "deleted"),
    size_column("bytes_written", "size"),
    _duration_column("millis", "took", min_width=_WIDER),
)
"""Columns of writes, of rows of `HudiTable.history`."""
TIMELINE = (
    _INSTANT,
    time_column("requested", "requested"),
    time_column("completed", "completed", min_width=_WIDE),
    text_column("action"),
    ShownColumn("state", lambda row: row["state"].lower()),
    ShownColumn("operation", lambda row: (row["operation"] or "").lower(), min_width=_WIDER),
    _duration_column("millis", "took", min_width=_WIDEST),
    text_column("archived", min_width=_WIDEST),
)
"""Columns of instants, of rows of `HudiTable.history`."""
SYNCED_TABLES = (
    ShownColumn("table", lambda row: f"{row['database']}.{row['table']}"),
    ShownColumn(
        "entry", lambda row: "created" if row["is_created"] else "changed" if row["is_altered"] else "the same"
    ),
    count_column("partitions_added", "added"),
    count_column("partitions_moved", "moved"),
    count_column("partitions_dropped", "dropped"),
)
"""Columns of entries of a catalog, of `CatalogSyncResult.tables`."""
WRITTEN_FILES = (
    text_column("partition"),
    ShownColumn("file", lambda row: file_name(row["path"])),
    count_column("rows_written", "rows", min_width=_WIDE),
    count_column("rows_inserted", "inserted"),
    count_column("rows_updated", "updated"),
    count_column("rows_deleted", "deleted"),
    size_column("file_size", "size"),
)
"""Columns of the files of writes, of rows of `Inspect.commits`."""
WRITTEN_PARTITIONS = (
    text_column("partition"),
    count_column("files"),
    count_column("rows_written", "rows"),
    count_column("rows_inserted", "inserted"),
    count_column("rows_updated", "updated"),
    count_column("rows_deleted", "deleted"),
    size_column("file_size", "size"),
)
FILES = (
    text_column("partition"),
    ShownColumn("file", lambda row: file_name(row["path"])),
    text_column("kind"),
    size_column("size"),
    time_column("instant", "time", min_width=_WIDEST),
)
"""Columns of rows of `Inspect.files`."""
BOOTSTRAP_MAPPING = (
    text_column("partition"),
    text_column("file_id", "file group"),
    text_column("source_partition", "source partition", min_width=_WIDEST),
    ShownColumn("source file", lambda row: file_name(row["source_file"])),
    size_column("source_size", "size"),
)
"""Columns of rows of `Inspect.bootstrap_mapping`."""
SLICES = (
    text_column("partition"),
    text_column("file_id", "file group"),
    text_column("base_instant", "base instant", is_whole=True),
    size_column("base_size", "base"),
    ShownColumn("logs", lambda row: f"{len(row['log_paths']):,}" if row["log_paths"] else "", True),
    ShownColumn("log size", lambda row: _sum_text(row["log_sizes"]), True, _WIDE),
)
"""Columns of rows of `Inspect.file_slices`."""
LOG_BLOCKS = (
    ShownColumn("file", lambda row: file_name(row["path"])),
    text_column("instant", is_whole=True),
    ShownColumn("type", lambda row: row["type"].lower()),
    count_column("records"),
)
"""Columns of rows of `Inspect.log_blocks`."""
LOG_RECORDS = (
    ShownColumn("file", lambda row: file_name(row["path"]), min_width=_WIDER),
    text_column("instant", is_whole=True),
    text_column("record"),
)
"""Columns of rows of `Inspect.log_records`."""
COMPARED = (
    _INSTANT,
    time_column("requested", "time", min_width=_WIDE),
    _WHAT,
    text_column("only_in", "only in"),
)
"""Columns of writes that one of two tables has."""
SAVEPOINTS = (
    text_column("instant", is_whole=True),
    time_column("instant", "time"),
    text_column("user"),
    text_column("comment"),
    count_column("files"),
)
"""Columns of rows of `HudiTable.services.savepoints`."""
EXPIRED_FILES = (text_column("partition"), text_column("name", "file"), size_column("size"))
"""Columns of the files of a clean."""
ORPHANS = (
    text_column("partition"),
    ShownColumn("file", lambda row: file_name(row["path"])),
    time_column("instant", "time", min_width=_WIDE),
    size_column("size"),
    text_column("is_deleted", "deleted"),
)
"""Columns of files that belong to no write."""


INSTANTS = (text_column("instant", is_whole=True), time_column("instant", "time"), text_column("action"))
"""Columns of instants with their actions, of rows of `instant_rows`."""
_LOG_FILES = ShownColumn("logs", lambda row: count_text(len(row["log_files"] or ())), True)
COMPACTED = (
    text_column("partition"),
    text_column("file_id", "file group"),
    text_column("base_instant", "base instant", is_whole=True, min_width=_WIDE),
    _LOG_FILES,
    size_column("log_bytes", "log size"),
)
"""Columns of the file slices of a compaction plan."""
CLUSTERED = (
    count_column("group"),
    text_column("partition"),
    text_column("file_id", "file group"),
    _LOG_FILES,
    ShownColumn("size", lambda row: "" if row["read_mb"] is None else f"{row['read_mb']:,} MiB", True),
)
"""Columns of the file slices of a clustering plan."""
DELETIONS = (
    _INSTANT,
    time_column("requested", "time", min_width=_WIDER),
    text_column("action"),
    ShownColumn("undone", lambda row: cell_text(row["undone"])),
    text_column("earliest_retained", "retained from", min_width=_WIDE, is_whole=True),
    count_column("files_deleted", "files"),
    count_column("files_failed", "failed"),
    _duration_column("millis", "took"),
)
"""Columns of rows of `Inspect.deletions`."""
DELETED_FILES = (
    text_column("partition"),
    ShownColumn("file", lambda row: file_name(row["path"])),
    text_column("is_deleted", "deleted"),
)
"""Columns of rows of `Inspect.deleted_files`."""
FILE_SIZES = (
    text_column("instant", is_whole=True),
    count_column("files"),
    size_column("smallest"),
    _mean_size_column("percentile_10", "10 %", min_width=_WIDE),
    _mean_size_column("median", "median"),
    _mean_size_column("mean", "mean"),
    _mean_size_column("percentile_95", "95 %", min_width=_WIDE),
    size_column("largest"),
)
"""Columns of rows of `Inspect.file_sizes`."""
AMPLIFICATION = (
    text_column("instant", is_whole=True),
    count_column("rows_updated", "updated"),
    count_column("rows_written", "written"),
    ShownColumn(
        "written per update", lambda row: "" if row["amplification"] is None else f"{row['amplification']:,.2f}", True
    ),
)
"""Columns of rows of `Inspect.write_amplification`."""
METADATA_PARTITIONS = (
    text_column("partition"),
    count_column("file_groups", "file groups"),
    count_column("base_files", "base files", min_width=_WIDE),
    size_column("base_size", "base"),
    count_column("log_files", "log files"),
    size_column("log_size", "logs"),
)
"""Columns of rows of `Inspect.metadata_partitions`."""
METADATA_DIFFERENCES = (
    text_column("problem"),
    text_column("path"),
    size_column("size_in_metadata", "in metadata"),
    size_column("size_in_storage", "in storage"),
)
"""Columns of rows of `HudiTable.validate_metadata`."""
_PLAN = text_column("instant", "plan", is_whole=True)
PENDING_COMPACTED = (_PLAN, *COMPACTED)
PENDING_CLUSTERED = (_PLAN, *CLUSTERED)


def partition_columns(schema: pa.Schema) -> list[ShownColumn]:
    """Return the columns of rows of `Inspect.partitions`: those of the values of partition fields on wide terminals
    only."""
    counts = {"file_groups": "file groups", "log_files": "log files"}
    columns = []
    for name in schema.names:
        if name in counts:
            columns.append(count_column(name, counts[name]))
        elif name == "size":
            columns.append(size_column(name))
        elif name == "latest_instant":
            columns.append(text_column(name, "latest instant", is_whole=True))
        else:
            columns.append(text_column(name, min_width=0 if name == "partition" else _WIDER))
    return columns


def instant_facts(row: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield the names and texts of an instant, a row of `HudiTable.history`, without what is not known."""
    for name, value in row.items():
        if value is None:
            continue
        if name in ("requested", "completed"):
            text = f"{value}  ({instant_text(value)})"
        elif name.startswith("bytes"):
            text = bytes_text(value)
        elif name.endswith("millis"):
            text = duration_text(value)
        else:
            text = count_text(value) if type(value) is int else cell_text(value)
        yield _FACT_NAMES.get(name, name.replace("_", " ")), text


def file_name(path: str) -> str:
    """Return a path without its folders."""
    return path.rpartition("/")[2]


def _sum_text(sizes: list[int] | None) -> str:
    return bytes_text(sum(sizes)) if sizes else ""


def instant_rows(instants: Iterable[tuple[str, str]]) -> pa.Table:
    """Return instants, given by requested time and action, as rows."""
    schema = pa.schema([("instant", pa.string()), ("action", pa.string())])
    rows = [{"instant": requested, "action": action} for requested, action in instants]
    return pa.Table.from_pylist(rows, schema=schema)


def rows_where(rows: Any, **values: object) -> pa.Table:
    """Return the rows of a table whose columns have these values; None selects all."""
    for name, value in values.items():
        if value is not None:
            rows = rows.filter(pc.equal(rows[name], pa.scalar(value)))
    return rows
