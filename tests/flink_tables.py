"""Merge-on-read tables as Apache Hudi's Flink writer lays them out, made by hand after its sources
(``hudi-flink-datasource``).

The ids of the file groups of buckets do not end in a number, there are log files in Avro alone, in which one commit may
write a key several times, and commits name checkpoints.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import Any

import pyarrow as pa

from pyhudi.format.log import LogBlockHeader, LogSchema, LogSlice, LogWriter
from pyhudi.schema.converters.arrow_avro import to_avro
from pyhudi.schema.meta_columns import add_meta_columns
from pyhudi.schema.meta_fields import OPERATION, PARTITION_PATH, RECORD_KEY
from pyhudi.storage import open_storage
from pyhudi.timeline.commit_metadata import CommitMetadata, write_stats
from pyhudi.timeline.instant import Action
from tests.bucket_numbers import bucket_of
from tests.tables import HandMadeTable, at

SCHEMA = pa.schema([("id", pa.string()), ("part", pa.string()), ("ts", pa.int64()), ("v", pa.string())])
PARTITIONS, BUCKETS = ("p", "q"), 2
_PAYLOAD = "org.apache.hudi.common.model.EventTimeAvroPayload"
_ANY_VERSION = {
    "hoodie.table.type": "MERGE_ON_READ",
    "hoodie.datasource.write.hive_style_partitioning": "false",
    "hoodie.datasource.write.partitionpath.urlencode": "false",
    "hoodie.table.cdc.enabled": "false",
}
_FROM_VERSION_8 = {
    "hoodie.table.keygenerator.type": "SIMPLE_AVRO",
    "hoodie.record.merge.mode": "EVENT_TIME_ORDERING",
    "hoodie.record.merge.strategy.id": "eeb8d96f-b1e4-49fd-bbf8-28ac514178e5",
    "hoodie.archivelog.folder": "history",
    "hoodie.timeline.history.path": "history",
    "hoodie.timeline.path": "timeline",
}
_BEFORE_VERSION_9 = {"hoodie.table.precombine.field": "ts", "hoodie.compaction.payload.class": _PAYLOAD}
_KEYGEN = "org.apache.hudi.keygen.SimpleAvroKeyGenerator"
_PROPERTIES = {
    6: {**_BEFORE_VERSION_9, "hoodie.table.keygenerator.class": _KEYGEN},
    8: {**_FROM_VERSION_8, **_BEFORE_VERSION_9},
    9: {**_FROM_VERSION_8, "hoodie.table.ordering.fields": "ts", "hoodie.table.legacy.payload.class": _PAYLOAD},
}
Row = tuple[str, str, int, str, str]
"""Key, partition, ordering value, value, and operation: I, -U, U or D."""


class FlinkTable(HandMadeTable):
    """A table in ``root``. ``changelog``: records have the column ``_hoodie_operation``, and deletes are such records;
    otherwise they are in delete blocks."""

    def __init__(self, root: Path, version: int, *, changelog: bool) -> None:
        self.changelog = changelog
        super().__init__(root, version, "part", SCHEMA, {**_ANY_VERSION, **_PROPERTIES[version]})
        checkpoints = root / ".hoodie/.aux/ckp_meta"
        checkpoints.mkdir(parents=True)
        (checkpoints / f"{at(1)}.COMPLETED").touch()

    def commit(self, n: int, *batches: Sequence[Row]) -> None:
        """Write batches at instant ``n``, each to blocks of its own."""
        stats = []
        for place in product(PARTITIONS, range(BUCKETS)):
            found = [[row for row in rows if (row[1], bucket_of(row[0], ["id"], BUCKETS)) == place] for rows in batches]
            if any(found):
                stats.append(self._append(n, *place, found))
        self.active.create_requested(Action.DELTA_COMMIT, at(n))
        inflight = self.active.to_inflight(self.active.timeline.find(at(n), Action.DELTA_COMMIT))
        extra = {"schema": to_avro(SCHEMA, "t"), "flink_checkpoint_id": str(n)}
        metadata = CommitMetadata("UPSERT", write_stats(stats), extra)
        self.active.complete(inflight, metadata.encode(self.version, Action.DELTA_COMMIT), at(n))

    def _append(self, n: int, partition: str, bucket: int, batches: Sequence[Sequence[Row]]) -> Mapping[str, Any]:
        folder = self.root / partition
        folder.mkdir(exist_ok=True)
        (folder / ".hoodie_partition_metadata").write_text(f"commitTime={at(n)}\npartitionDepth=1\n")
        file_id = f"{bucket:08d}-{ord(partition):04d}-4000-8000-000000000000"
        slice_names = LogSlice(file_id, at(1 if self.version < 8 else n), "0-1-0", n if self.version < 8 else 1)
        schema = add_meta_columns(SCHEMA, with_operation=self.changelog)
        header = LogBlockHeader(at(n), LogSchema(to_avro(schema, "t"), pa.schema([SCHEMA.field("ts")]), self.version))
        with LogWriter(open_storage(folder).open_output, slice_names, header) as writer:
            for rows in batches:
                in_blocks = [row for row in rows if self.changelog or row[4] in ("I", "U")]
                if in_blocks:
                    records = [self._record(n, file_id, row) for row in in_blocks]
                    writer.write(pa.Table.from_pylist(records, schema))
                deletes = [] if self.changelog else [row for row in rows if row[4] == "D"]
                if deletes:
                    keys, partitions, times = list(zip(*deletes, strict=True))[:3]
                    table = {RECORD_KEY: keys, PARTITION_PATH: partitions, "ts": pa.array(times, pa.int64())}
                    writer.delete(pa.table(table))
                writer.flush()
            (file,) = writer.close()
        return {
            "partitionPath": partition,
            "fileId": file_id,
            "path": f"{partition}/{file.name}",
            "prevCommit": slice_names.instant,
            "logFiles": [file.name],
            "numWrites": file.num_records,
            "numDeletes": file.num_deletes,
            "fileSizeInBytes": file.size,
        }

    def _record(self, n: int, file_id: str, row: Row) -> dict[str, Any]:
        values = dict(zip(SCHEMA.names, row[:4], strict=True))
        return {**self._with_meta(values, n, row[1], file_id), OPERATION: row[4]}


def changed_table(root: Path, version: int, *, changelog: bool) -> dict[str, tuple[int, str]]:
    """Make a table of two commits. Return its rows: ordering value and value by key."""
    table = FlinkTable(root, version, changelog=changelog)
    table.commit(1, [(f"{part}{i}", part, 1, "first", "I") for part in PARTITIONS for i in range(6)])
    before = [] if not changelog else [("p0", "p", 1, "first", "-U"), ("p5", "p", 1, "first", "-U")]
    first = [*before, ("p0", "p", 2, "second", "U"), ("p5", "p", 2, "second", "U"), ("new", "p", 2, "new", "I")]
    second = [
        ("p1", "p", 2, "", "D"),
        ("p2", "p", 3, "", "D"),
        ("p0", "p", 4, "third", "U"),
        ("p3", "p", 0, "late", "U"),
    ]
    third = [("p2", "p", 5, "again", "I"), ("p4", "p", 0, "", "D"), ("new", "p", 2, "", "D")]
    table.commit(2, first, second, third)
    changed = {"p0": (4, "third"), "p2": (5, "again"), "p5": (2, "second")}
    kept = {f"{part}{i}": (1, "first") for part in PARTITIONS for i in range(6)}
    return {key: row for key, row in (kept | changed).items() if key != "p1"}
