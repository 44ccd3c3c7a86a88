"""Options of writes to merge-on-read tables, and the blocks of their log files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pyhudi.format.log import LogBlock, scan_blocks
from tests.spark.model import EVENT_TIME, options


def merge_on_read(operation: str, version: int = 9, **more: Any) -> dict[str, Any]:
    """Return the options of a write to a merge-on-read table in event time order, without compaction."""
    kind = {
        "hoodie__datasource__write__table__type": "MERGE_ON_READ",
        "hoodie__write__table__version": version,
        "hoodie__compact__inline": "false",
    }
    if version == 6:
        kind["hoodie__datasource__write__payload__class"] = EVENT_TIME
    return options(operation, **kind, **more)


def log_files(path: Path | str) -> list[Path]:
    """Return the log files of a table, sorted by path."""
    return sorted(p for p in Path(path).rglob(".*.log.*") if ".hoodie" not in p.parts)


def blocks(path: Path | str) -> list[LogBlock]:
    """Return the blocks of all log files, in their order."""
    return [block for file in log_files(path) for block in scan_blocks(file.read_bytes())]
