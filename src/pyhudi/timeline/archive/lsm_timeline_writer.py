"""Archived timeline of layout 2; docs/format/core.md, section 3.2.

It is a log-structured merge tree of Parquet files. A run writes its instants to a file of level 0, then a manifest that
lists it, then the number of that manifest. Small files are merged into the next level.
"""

from __future__ import annotations

import io
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from pyhudi.format.avro.container import load_schema
from pyhudi.format.file_names import file_name_of
from pyhudi.storage import Storage
from pyhudi.storage.concurrent_reads import read_ahead
from pyhudi.storage.lock_primitives import DeferredReleaseLock
from pyhudi.timeline.active_timeline import ActiveTimeline
from pyhudi.timeline.archive.archived_instants import sort_rows
from pyhudi.timeline.archive.archived_restore import rollback_of_restore
from pyhudi.timeline.archive.archived_timeline import archived_completions
from pyhudi.timeline.archive.lsm_timeline_reader import VERSION_FILE, manifest_files, manifest_number
from pyhudi.timeline.encoding.jackson_json import pretty
from pyhudi.timeline.instant import Action, Instant, State
from pyhudi.timeline.timeline_layout import Layout

BATCH = 10
"""Number of files of a level that are merged into one of the next (``hoodie.timeline.compaction.batch.size``)."""
_KEPT_MANIFESTS = 3
_MERGED_BYTES = 1024 * 1024 * 1000
"""Maximum size of the files that are merged into one, as in Apache Hudi."""
_ROWS_OF_PAGE = 64
"""Rows after which the size of a page is checked. A page cannot have 2 GiB, and a row has megabytes after a large
write."""
ROW_VERSION = 1
LSM_SCHEMA = pa.schema(
    [
        ("instantTime", pa.string()),
        ("completionTime", pa.string()),
        ("action", pa.string()),
        ("metadata", pa.binary()),
        ("plan", pa.binary()),
        pa.field("version", pa.int32(), nullable=False),
    ]
)
"""Columns of the files; ``plan`` is the content of the requested file of a service, ``metadata`` that of the completed
one."""
_WITH_PLANS = (Action.COMPACTION, Action.LOG_COMPACTION, Action.CLUSTERING, Action.CLEAN)
_Files = list[dict[str, Any]]


@dataclass(frozen=True, slots=True)
class LsmTimelineWriter:
    """Writer of the archived timeline of a layout.

    ``lock`` is that of the table, which the caller holds; None: nobody else uses the timeline yet. Methods raise
    LockError if it was lost, because they replace files that another archival may have written meanwhile, and
    CorruptInstantError if the manifest cannot be parsed.
    """

    storage: Storage
    layout: Layout
    lock: DeferredReleaseLock | None = None

    def archived(self, instants: Sequence[Instant]) -> list[Instant]:
        """Return the completed instants that are archived."""
        first = min((i.requested for i in instants), default=None)
        names = [file["fileName"] for file in manifest_files(self.storage, self.layout)]
        if first is None or all(_last_of(name) < first for name in names):
            return []
        completions = archived_completions(self.storage, self.layout, [i.requested for i in instants])
        return [i for i in instants if completions.get(i.requested) == i.completion]

    def add(self, active: ActiveTimeline, instants: Sequence[Instant]) -> None:
        """Archive completed instants, a sorted and non-empty sequence.

        Raises:
            InstantNotFoundError: An instant has disappeared from the active timeline.
        """
        self.append([pa.Table.from_pylist(list(read_ahead(partial(_row, active), instants)), schema=LSM_SCHEMA)])

    def append(self, parts: Iterable[pa.Table]) -> None:
        """Write archived instants (`LSM_SCHEMA`, each part sorted by instant and not empty): one file per part, and one
        manifest."""
        files = manifest_files(self.storage, self.layout)
        added = [self.write_file(rows, 0) for rows in parts]
        if added:
            self._publish([*files, *added])

    def compact_and_clean(self, batch: int = BATCH) -> None:
        """Merge small files, ``batch`` of a level at a time, and delete obsolete files."""
        try:
            self._merge_levels(batch)
        finally:
            self._clean()

    def write_file(self, rows: pa.Table, level: int) -> dict[str, Any]:
        """Write a file of a level. Return its manifest entry. ``rows`` are sorted by instant."""
        sink = io.BytesIO()
        options = {"compression": "gzip", "store_schema": False, "write_batch_size": _ROWS_OF_PAGE}
        with pq.ParquetWriter(sink, LSM_SCHEMA, **options) as writer:
            writer.write_table(rows)
            writer.add_key_value_metadata(
                {
                    "parquet.avro.schema": json.dumps(load_schema("HoodieLSMTimelineInstant")),
                    "writer.model.name": "avro",
                }
            )
        first, last = rows["instantTime"][0], rows["instantTime"][-1]
        name = f"{first}_{last}_{level}.parquet"
        self.storage.write(f"{self.layout.history}/{name}", sink.getvalue())
        return {"fileName": name, "fileLen": len(sink.getvalue())}

    def _publish(self, files: _Files) -> None:
        """Publish a manifest of these files. Another process that has the lock would write one of the same number,
        without those that are added here."""
        number = manifest_number(self.storage, self.layout) + 1
        self._ensure_held()
        self.storage.write(f"{self.layout.history}/manifest_{number}", pretty({"files": files}).encode())
        self._ensure_held()
        self.storage.write(f"{self.layout.history}/{VERSION_FILE}", str(number).encode())

    def _merge_levels(self, batch: int) -> None:
        """Merge the oldest files of each level with many files into one of the next level."""
        level = 0
        while True:
            files = manifest_files(self.storage, self.layout)
            names = sorted(file["fileName"] for file in files)
            merged = _to_merge([file for file in files if _level_of(file["fileName"]) == level], batch)
            if merged:
                tables = []
                for name in merged:
                    with self.storage.open_input(f"{self.layout.history}/{name}") as source:
                        tables.append(pq.read_table(source).select(LSM_SCHEMA.names).cast(LSM_SCHEMA))
                rows = sort_rows(pa.concat_tables(tables), "instantTime")
                left = [file for file in files if file["fileName"] not in merged]
                added = self.write_file(rows, level + 1)
                self._publish([*left, added])
            elif not any(_level_of(name) > level for name in names):
                return
            else:
                level += 1

    def _clean(self) -> None:
        """Delete manifests that no reader uses any more, and files that none of the remaining ones lists."""
        number = manifest_number(self.storage, self.layout)
        paths: list[str] = self.storage.list(self.layout.history)["path"].to_pylist()
        names = [file_name_of(path) for path in paths]
        numbers = [int(text) for name in names if (text := name.removeprefix("manifest_")).isdigit() and text != name]
        old = [n for n in numbers if n <= number - _KEPT_MANIFESTS]
        if not old:
            return
        kept = [n for n in numbers if number - _KEPT_MANIFESTS < n <= number]
        listed = {file["fileName"] for n in kept for file in manifest_files(self.storage, self.layout, n)}
        unlisted = [f"manifest_{n}" for n in old] + [n for n in names if n.endswith(".parquet") and n not in listed]
        self._ensure_held()  # Another archival may have written files that it is about to list.
        self.storage.delete_many(f"{self.layout.history}/{name}" for name in unlisted)

    def _ensure_held(self) -> None:
        if self.lock is not None:
            self.lock.ensure_held()


def _row(active: ActiveTimeline, instant: Instant) -> dict[str, Any]:
    requested = active.in_state(instant, State.REQUESTED)
    planned = requested is not None and requested.action in _WITH_PLANS
    is_restore = instant.action == Action.RESTORE
    return {
        "instantTime": instant.requested,
        "completionTime": instant.completion,
        "action": Action.ROLLBACK if is_restore else instant.action,
        "metadata": rollback_of_restore(active.completed_record(instant)) if is_restore else active.read(instant),
        "plan": active.read(requested) if requested is not None and planned else None,
        "version": ROW_VERSION,
    }


def _to_merge(files: _Files, batch: int) -> list[str]:
    """Return the names of ``batch`` consecutive files of a level, or of fewer if more would be too large together; none
    if the level has fewer files, or all are too large."""
    if len(files) < batch:
        return []
    chosen: list[str] = []
    size = 0
    for file in sorted(files, key=lambda file: file["fileName"]):
        if size + file["fileLen"] > _MERGED_BYTES:
            if len(chosen) > 1:
                return chosen
            chosen, size = [], 0
        chosen.append(file["fileName"])
        size += file["fileLen"]
        if len(chosen) == batch:
            return chosen
    return []


def _last_of(name: str) -> str:
    """Return the last instant of a file."""
    parts = name.split("_")
    return parts[1] if len(parts) > 2 else "9"  # Unknown if the name does not contain it.


def _level_of(name: str) -> int:
    level = name.removesuffix(".parquet").rpartition("_")[2]
    return int(level) if level.isdigit() else -1
