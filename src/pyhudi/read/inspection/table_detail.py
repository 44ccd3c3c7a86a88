"""Name, type, version, keys, size and state of a table, and their display in notebooks."""

from __future__ import annotations

import html
from collections.abc import Mapping
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.read.inspection.result_table import as_html
from pyhudi.read.inspection.table_inspection import Inspect
from pyhudi.table.table_snapshot import TableSnapshot
from pyhudi.table.view.file_system_view import FileSystemView


def table_detail(now: TableSnapshot) -> dict[str, Any]:
    """Return the name, type, version, keys, partitioning, size (bytes), state and properties of a table."""
    config, timeline = now.config, now.active.timeline
    slices = FileSystemView.load(now).latest_slices()
    files = Inspect(lambda: now).files()
    last = timeline.writes().completed().last
    return {
        "path": now.storage.uri(),
        "name": config.name,
        "table_type": str(config.table_type),
        "table_version": config.version,
        "record_keys": list(config.record_keys),
        "key_generator": str(config.keygen),
        "partition_fields": [f.name for f in config.partition_fields],
        "ordering_fields": list(config.ordering_fields),
        "merge_mode": str(config.merge_mode),
        "base_file_format": str(config.base_file_format),
        "timezone": str(config.timezone),
        "metadata_partitions": list(config.metadata_partitions),
        "partitions": pc.count_distinct(slices["partition"]).as_py(),
        "file_groups": slices.num_rows,
        "files": files.num_rows,
        "size": pc.sum(files["size"]).as_py() or 0,
        "latest_instant": None if last is None else last.requested,
        "latest_completion": None if last is None else last.completion,
        "pending": [str(i) for i in timeline if not i.is_completed],
        "properties": dict(config.properties),
    }


def detail_as_html(detail: Mapping[str, Any], recent: pa.Table) -> str:
    """Return the details of a table, except its properties, and its last instants as HTML."""
    shown = {k: v for k, v in detail.items() if k != "properties" and v not in (None, [], "")}
    facts = "".join(f"<tr><th align='left'>{_cell(k)}</th><td>{_cell(v)}</td></tr>" for k, v in shown.items())
    return f"<h4>{_cell(detail['name'])}</h4><table>{facts}</table><h5>last instants</h5>{as_html(recent)}"


def _cell(value: object) -> str:
    text = ", ".join(map(str, value)) if isinstance(value, list) else str("" if value is None else value)
    return html.escape(text)
