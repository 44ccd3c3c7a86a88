"""Tables for tests of readers, created file by file according to the format, without pyhudi's writers."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.orc as orc
import pyarrow.parquet as pq

from pyhudi.format.log import LogBlockHeader, LogOptions, LogSchema, LogSlice, LogWriter
from pyhudi.schema.converters.arrow_avro import to_avro
from pyhudi.schema.meta_columns import add_meta_columns
from pyhudi.storage import open_storage
from pyhudi.table.meta_client import TableMetaClient
from pyhudi.timeline.action_avro import encode_record
from pyhudi.timeline.active_timeline import ActiveTimeline
from pyhudi.timeline.commit_metadata import REPLACED_SCHEMA, CommitMetadata, write_stats
from pyhudi.timeline.instant import Action, State
from pyhudi.timeline.timeline_layout import Layout

SCHEMA = pa.schema([("id", pa.string()), ("p", pa.string()), ("v", pa.int64())])
Rows = Sequence[Mapping[str, Any]]


def at(n: int) -> str:
    """Return the n-th instant of the tests."""
    return f"202601010000{n:05d}"


@dataclass
class HandMadeTable:
    """A table in ``root``; ``write`` commits files, ``instant`` adds other actions. ``int96``: base files have
    timestamps of 96 bits."""

    root: Path
    version: int = 9
    partition_fields: str = "p"
    schema: pa.Schema = SCHEMA
    properties: dict[str, str] = field(default_factory=dict)
    meta_columns: bool = True
    extension: str = "parquet"
    int96: bool = False

    def __post_init__(self) -> None:
        self.root.mkdir(parents=True, exist_ok=True)
        properties = {
            "hoodie.table.name": "t",
            "hoodie.table.type": "COPY_ON_WRITE",
            "hoodie.table.version": str(self.version),
            "hoodie.timeline.layout.version": "2" if self.version >= 8 else "1",
            "hoodie.table.recordkey.fields": "id",
            "hoodie.table.partition.fields": self.partition_fields,
            "hoodie.table.timeline.timezone": "UTC",
            "hoodie.populate.meta.fields": str(self.meta_columns).lower(),
            "hoodie.table.base.file.format": "ORC" if self.extension == "orc" else "PARQUET",
            "hoodie.table.checksum": "2702201862",
            **self.properties,
        }
        if self.version >= 8:
            properties.setdefault("hoodie.table.keygenerator.type", _keygen(self.partition_fields))
            properties.setdefault("hoodie.record.merge.mode", "COMMIT_TIME_ORDERING")
        else:
            properties.setdefault("hoodie.table.keygenerator.class", "org.apache.hudi.keygen.ComplexKeyGenerator")
            properties.setdefault("hoodie.archivelog.folder", "archived")
        folder = self.root / ".hoodie"
        folder.mkdir(exist_ok=True)
        from pyhudi.table.config.properties_text import table_checksum

        properties["hoodie.table.checksum"] = table_checksum(properties)
        text = "".join(f"{k}={v.replace(':', chr(92) + ':')}\n" for k, v in properties.items())
        (folder / "hoodie.properties").write_text(text)
        self.storage = open_storage(str(self.root))
        self.active = ActiveTimeline.load(self.storage, Layout.from_properties(properties))

    def client(self) -> TableMetaClient:
        return TableMetaClient.open(str(self.root))

    def write(
        self,
        n: int,
        files: Mapping[tuple[str, str], Rows],
        *,
        done: int | None = None,
        action: str = Action.COMMIT,
        operation: str = "UPSERT",
        replaced: Sequence[tuple[str, str]] = (),
        pending: bool = False,
        schema: pa.Schema | None = None,
        recorded: pa.Schema | None = None,
        extra: Mapping[str, str] | None = None,
    ) -> None:
        """Write base files at instant ``n``, completed at ``done`` (default: the same).

        ``files``: (partition, file id) → all rows of the new base file. A row may have the instant at which it
        was written in ``_n``; the default is ``n``.
        """
        schema = schema or self.schema
        stats = [self.write_file(n, partition, file_id, rows, schema) for (partition, file_id), rows in files.items()]
        self.active.create_requested(action, at(n))
        inflight = self.active.to_inflight(self.active.timeline.find(at(n), action))
        if pending:
            return
        metadata = CommitMetadata(
            operation,
            write_stats(stats),
            {"schema": to_avro(recorded or schema, "t"), **(extra or {})},
            replaced=pa.Table.from_pylist([{"partition": p, "file_id": f} for p, f in replaced], schema=REPLACED_SCHEMA)
            if action == Action.REPLACE_COMMIT
            else None,
        )
        self.active.complete(inflight, metadata.encode(self.version, action), at(done if done is not None else n))

    def log(
        self,
        n: int,
        files: Mapping[tuple[str, str], Rows],
        *,
        base: int | None = None,
        deletes: Mapping[tuple[str, str], Sequence[str]] | None = None,
        positions: bool = False,
        schema: pa.Schema | None = None,
        columns: Sequence[str] | None = None,
        data_format: str = "avro",
        roll_back: int | None = None,
        done: int | None = None,
    ) -> None:
        """Write log files by a deltacommit: (partition, file id) → records, and keys of ``deletes``.

        ``base``: the base instant of the slices (version 6 and ``positions``; default: the write itself). ``columns``:
        partial updates with only these columns. ``roll_back``: roll that instant back.
        """
        schema = schema or self.schema
        deletes = deletes or {}
        base = n if base is None else base
        stats = []
        for partition, file_id in dict.fromkeys((*files, *deletes)):
            where = LogSlice(file_id, at(base if self.version < 8 else n), f"0-{n}-0", n if self.version < 8 else 1)
            own = schema if columns is None else pa.schema([schema.field(c) for c in columns])
            written = add_meta_columns(own)
            fields = [f for f in self.properties.get("hoodie.table.ordering.fields", "").split(",") if f]
            ordering = pa.schema([schema.field(f) for f in fields])
            folder = self.root / partition
            folder.mkdir(parents=True, exist_ok=True)
            (folder / ".hoodie_partition_metadata").write_text("commitTime=0\n")
            storage = open_storage(str(folder))
            header = LogBlockHeader(
                at(n),
                LogSchema(to_avro(written, "t"), ordering, self.version),
                base_instant=at(base) if positions else None,
                is_partial=columns is not None,
            )
            writer = LogWriter(storage.open_output, where, header, options=LogOptions(data_format=data_format))
            with writer:
                keys = self._keys_of(base, partition, file_id) if positions else []
                rows = files.get((partition, file_id), ())
                if rows:
                    named = [self._with_meta(row, n, partition, file_id) for row in rows]
                    named = pa.table([_column([row.get(f.name) for row in named], f.type) for f in written], written)
                    writer.write(named, _places([str(row["id"]) for row in rows], keys))
                gone = list(deletes.get((partition, file_id), ()))
                if gone:
                    table = {"_hoodie_record_key": gone, "_hoodie_partition_path": [partition] * len(gone)}
                    nothing = {f.name: pa.nulls(len(gone), f.type) for f in ordering}
                    writer.delete(pa.table(table | nothing), _places(gone, keys))
                if roll_back is not None:
                    writer.roll_back(at(roll_back))
                made = writer.close()
            for file in made:
                path = f"{partition}/{file.name}" if partition else file.name
                stats.append(
                    {
                        "partitionPath": partition,
                        "fileId": file_id,
                        "path": path,
                        "prevCommit": at(base),
                        "logFiles": [file.name],
                        "numWrites": file.num_records,
                        "numDeletes": file.num_deletes,
                        "fileSizeInBytes": file.size,
                    }
                )
        self.active.create_requested(Action.DELTA_COMMIT, at(n))
        inflight = self.active.to_inflight(self.active.timeline.find(at(n), Action.DELTA_COMMIT))
        metadata = CommitMetadata("UPSERT", write_stats(stats), {"schema": to_avro(schema, "t")})
        data = metadata.encode(self.version, Action.DELTA_COMMIT)
        self.active.complete(inflight, data, at(done if done is not None else n))

    def _keys_of(self, n: int, partition: str, file_id: str) -> list[str]:
        """Return the keys of a base file, in the order of its rows."""
        file = self.root / partition / self._name(file_id, n)
        keys: list[str] = pq.read_table(file, columns=["_hoodie_record_key"])["_hoodie_record_key"].to_pylist()
        return keys

    @staticmethod
    def _with_meta(row: Mapping[str, Any], n: int, partition: str, file_id: str) -> dict[str, Any]:
        return {
            "_hoodie_commit_time": at(row.get("_n", n)),
            "_hoodie_commit_seqno": f"{at(n)}_0_0",
            "_hoodie_record_key": str(row["id"]),
            "_hoodie_partition_path": partition,
            "_hoodie_file_name": file_id,
            **{name: value for name, value in row.items() if name != "_n"},
        }

    def instant(self, n: int, action: str, record: Mapping[str, Any]) -> None:
        """Add a completed instant of another action, with the relevant fields of its result."""
        self.active.create_requested(action, at(n), b"")
        inflight = self.active.to_inflight(self.active.timeline.find(at(n), action))
        self.active.complete(inflight, encode_record(action, State.COMPLETED, record, self.version), at(n))

    def archive(self, *numbers: int) -> None:
        """Move completed instants from the active timeline of a table of version 8 or later to the archived
        timeline."""
        active = self.active.reload()
        layout, rows = active.layout, []
        for n in numbers:
            instant = active.timeline.find(at(n))
            assert instant is not None
            rows.append(
                {
                    "instantTime": instant.requested,
                    "completionTime": instant.completion,
                    "action": instant.action,
                    "metadata": active.read(instant),
                    "plan": b"",
                }
            )
            for state in active.states(instant):
                active.delete(state)
        folder = self.root / layout.history
        folder.mkdir(parents=True, exist_ok=True)
        name = f"{rows[0]['instantTime']}_{rows[-1]['instantTime']}_0.parquet"
        pq.write_table(pa.Table.from_pylist(rows), folder / name)
        (folder / "manifest_1").write_text(json.dumps({"files": [{"fileName": name, "fileLen": 1}]}))
        (folder / "_version_").write_text("1")
        self.active = active.reload()

    def remove(self, n: int, partition: str, file_id: str) -> None:
        """Delete a base file, as the cleaner does."""
        (self.root / partition / self._name(file_id, n)).unlink()

    def clean(self, n: int, *, keep_from: str = "", deleted: Sequence[tuple[int, str, str]] = ()) -> None:
        """Add a clean that deletes base files (instant, partition, file id); all files are kept that were visible since
        ``keep_from``."""
        by_partition: dict[str, list[str]] = {}
        for instant, partition, file_id in deleted:
            self.remove(instant, partition, file_id)
            by_partition.setdefault(partition, []).append(self._name(file_id, instant))
        partitions = {
            p: {
                "partitionPath": p,
                "policy": "KEEP_LATEST_COMMITS",
                "deletePathPatterns": names,
                "successDeleteFiles": names,
                "failedDeleteFiles": [],
            }
            for p, names in by_partition.items()
        }
        record = {
            "startCleanTime": at(n),
            "timeTakenInMillis": 1,
            "totalFilesDeleted": len(deleted),
            "earliestCommitToRetain": keep_from,
            "lastCompletedCommitTimestamp": "",
            "partitionMetadata": partitions,
            "version": 2,
        }
        self.instant(n, Action.CLEAN, record)

    def _name(self, file_id: str, n: int) -> str:
        return f"{file_id}_0-0-0_{at(n)}.{self.extension}"

    def write_file(self, n: int, partition: str, file_id: str, rows: Rows, schema: pa.Schema) -> dict[str, Any]:
        folder = self.root / partition
        folder.mkdir(parents=True, exist_ok=True)
        (folder / ".hoodie_partition_metadata").write_text("commitTime=0\n")
        name = self._name(file_id, n)
        meta = {
            "_hoodie_commit_time": [at(row.get("_n", n)) for row in rows],
            "_hoodie_commit_seqno": [f"{at(row.get('_n', n))}_0_{i}" for i, row in enumerate(rows)],
            "_hoodie_record_key": [str(row["id"]) for row in rows],
            "_hoodie_partition_path": [partition] * len(rows),
            "_hoodie_file_name": [name] * len(rows),
        }
        own = {f.name: _column([row.get(f.name) for row in rows], f.type) for f in schema}
        fields = [*([pa.field(name, pa.string()) for name in meta] if self.meta_columns else []), *schema]
        told = {k: _column(v, pa.string()) for k, v in meta.items()} | own
        table = pa.table([told[f.name] for f in fields], pa.schema(fields))  # required columns remain required
        if self.extension == "orc":
            orc.write_table(table, str(folder / name))
        else:
            # Arrow's schema in the footer would provide more than the footers of other writers do
            pq.write_table(table, folder / name, use_deprecated_int96_timestamps=self.int96, store_schema=False)
        return {
            "partitionPath": partition,
            "fileId": file_id,
            "path": f"{partition}/{name}" if partition else name,
            "numWrites": len(rows),
            "fileSizeInBytes": (folder / name).stat().st_size,
        }


def _column(values: Sequence[Any], kind: pa.DataType) -> pa.Array:
    """Return values as a column; escaped bytes in text (``surrogateescape``) are written as they are, though that is
    not UTF-8."""
    if not pa.types.is_string(kind):
        return pa.array(values, kind)
    return pa.array([v if v is None else v.encode(errors="surrogateescape") for v in values], pa.binary()).view(kind)


def _places(wanted: Sequence[str], keys: Sequence[str]) -> pa.Array | None:
    """Return the positions of keys in a base file."""
    at_key = {key: i for i, key in enumerate(keys)}
    return pa.array([at_key.get(key) for key in wanted], pa.int64()) if keys else None


def _keygen(partition_fields: str) -> str:
    if not partition_fields:
        return "NON_PARTITION"
    return "COMPLEX" if "," in partition_fields else "SIMPLE"
