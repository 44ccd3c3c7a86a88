"""Merge-on-read tables for tests of services: delta commits of one log file for each file group, written by real
transactions. Two file groups without partitions, or one in each of two partitions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from pyhudi.api.hudi_table import HudiTable
from pyhudi.config import Options
from pyhudi.format.file_names import file_names_of, log_file_name, next_log_version
from pyhudi.format.log import LogBlockHeader, LogSchema, LogSlice, LogWriter
from pyhudi.schema.converters.arrow_avro import to_avro
from pyhudi.schema.meta_columns import add_meta_columns
from pyhudi.schema.meta_fields import FILE_NAME, META_COLUMNS, PARTITION_PATH, RECORD_KEY
from pyhudi.schema.name_resolution import field_type
from pyhudi.storage import Storage, join_path, open_storage
from pyhudi.table.config.table_config import TableConfig
from pyhudi.table.meta_client import TableMetaClient
from pyhudi.table.view.file_system_view import FileSystemView
from pyhudi.timeline.commit_metadata import CommitMetadata, write_stats
from pyhudi.timeline.markers import IOType
from pyhudi.transaction.commit_outcome import Committed
from pyhudi.transaction.transaction import Transaction

SCHEMA = pa.schema([("id", pa.string()), ("p", pa.string()), ("o", pa.int64()), ("v", pa.string())])
FAST = {"hoodie.time.generator.max_expected_clock_skew_ms": "0"}
FILE_IDS = {"a": "aaaaaaaa-0000-4000-8000-000000000001-0", "b": "bbbbbbbb-0000-4000-8000-000000000002-0"}
Row = Mapping[str, Any]


@contextmanager
def aborted_by_interrupts(tx: Transaction) -> Iterator[None]:
    """Abort a transaction that Ctrl-C interrupts, as writers do; other errors stand for the death of the process."""
    try:
        yield
    except KeyboardInterrupt:
        tx.abort()
        raise


@dataclass
class MorTable:
    """A table in ``root``: one file group in each of the partitions ``a`` and ``b``; ``id`` is the key, ``o`` the
    ordering field (if the merge mode uses one)."""

    root: Path
    version: int = 9
    properties: Mapping[str, str] = field(default_factory=dict)
    options: Mapping[str, str] = field(default_factory=lambda: FAST)
    storage: Storage | None = None

    def __post_init__(self) -> None:
        if self.storage is None:
            self.storage = open_storage(self.root, {"pyhudi.storage.fsync": "none"})
        if not _is_table(self.storage):
            options = {
                "hoodie.table.name": "t",
                "hoodie.datasource.write.table.type": "MERGE_ON_READ",
                "hoodie.write.table.version": str(self.version),
                "hoodie.datasource.write.recordkey.field": "id",
                "hoodie.datasource.write.partitionpath.field": "p",
                "hoodie.datasource.write.precombine.field": "o",
                "hoodie.datasource.write.payload.class": "org.apache.hudi.common.model.DefaultHoodieRecordPayload",
                **self.properties,
            }
            parsed = Options.parse(options)
            TableMetaClient.create(self.storage, TableConfig.for_new_table(parsed), parsed)

    @property
    def client(self) -> TableMetaClient:
        assert self.storage is not None
        return TableMetaClient.open(self.storage, self.options)

    @property
    def table(self) -> HudiTable:
        return HudiTable.for_path(str(self.root), self.options)

    def rows(self) -> dict[str, dict[str, Any]]:
        """Return the snapshot by key."""
        found = self.table.scan(columns=list(SCHEMA.names)).to_arrow().to_pylist()
        assert len({row["id"] for row in found}) == len(found)
        return {row["id"]: row for row in found}

    # --- writing -----------------------------------------------------------------------------------------------------

    def load(self, rows: Sequence[Row], file_ids: Mapping[str, str] = FILE_IDS) -> str:
        """Write a delta commit with base files only, like bulk_insert."""
        tx = self.begin("BULK_INSERT")
        stats = [self.write_base_file(tx, p, file_ids[p], [r for r in rows if r["p"] == p]) for p in file_ids]
        return self.commit(tx, "BULK_INSERT", stats)

    def delta(self, rows: Sequence[Row] = (), deletes: Sequence[tuple[str, str, int | None]] = ()) -> str:
        """Write a delta commit of log files; deletes are (key, partition, ordering value or None)."""
        tx = self.begin()
        with aborted_by_interrupts(tx):
            return self.commit(tx, "UPSERT", self.write_logs(tx, rows, deletes))

    def begin(self, operation: str = "UPSERT") -> Transaction:
        tx = Transaction.begin(self.client, "deltacommit", operation, self.options)
        with aborted_by_interrupts(tx):
            tx.to_inflight(CommitMetadata(operation))
        return tx

    def commit(self, tx: Transaction, operation: str, stats: Sequence[Row]) -> str:
        extra = {"schema": to_avro(SCHEMA, "t")}
        outcome = tx.commit(CommitMetadata(operation, write_stats(stats), extra))
        assert isinstance(outcome, Committed), outcome
        return tx.instant

    def write_logs(
        self, tx: Transaction, rows: Sequence[Row], deletes: Sequence[tuple[str, str, int | None]] = ()
    ) -> list[dict[str, Any]]:
        """Write the log files of a delta commit; return their stats."""
        found = []
        for partition in FILE_IDS:
            here = [row for row in rows if row["p"] == partition]
            gone = [d for d in deletes if d[1] == partition]
            if here or gone:
                found.append(self._log(tx, partition, here, gone))
        return found

    def write_base_file(self, tx: Transaction, partition: str, file_id: str, rows: Sequence[Row]) -> dict[str, Any]:
        name = f"{file_id}_0-0-0_{tx.instant}.parquet"
        (self.root / partition).mkdir(exist_ok=True)
        (self.root / partition / ".hoodie_partition_metadata").write_text("commitTime=0\n")
        tx.markers.create(partition, name, IOType.CREATE)
        pq.write_table(_stored(rows, tx.instant, partition, name), self.root / partition / name)
        return {"partitionPath": partition, "fileId": file_id, "path": f"{partition}/{name}", "numWrites": len(rows)}

    def _log(
        self, tx: Transaction, partition: str, rows: Sequence[Row], deletes: Sequence[tuple[str, str, int | None]]
    ) -> dict[str, Any]:
        file_id, config = FILE_IDS[partition], self.client.config
        where = self._where(file_id, partition, tx.instant)
        fields = pa.schema([pa.field(n, field_type(SCHEMA, n)) for n in config.ordering_fields])
        assert self.storage is not None

        def opened(name: str) -> Any:
            tx.markers.create(partition, name, IOType.CREATE if self.version >= 8 else IOType.APPEND)
            assert self.storage is not None
            return self.storage.open_output(join_path(partition, name))

        schema = LogSchema(to_avro(add_meta_columns(SCHEMA), "t"), fields, self.version)
        with LogWriter(opened, where, LogBlockHeader(tx.instant, schema)) as writer:
            if rows:
                writer.write(_stored(rows, tx.instant, partition, file_id))
            if deletes:
                table = pa.table(
                    {
                        RECORD_KEY: pa.array([key for key, _, _ in deletes], pa.string()),
                        PARTITION_PATH: pa.array([partition] * len(deletes), pa.string()),
                        **{name: pa.array([o for _, _, o in deletes], pa.int64()) for name in fields.names},
                    }
                )
                writer.delete(table)
            files = writer.close()
        return {
            "partitionPath": partition,
            "fileId": file_id,
            "path": join_path(partition, files[0].name),
            "logFiles": [file.name for file in files],
            "logVersion": where.version,
            "logOffset": 0,
            "numWrites": len(rows) + len(deletes),
        }

    def _where(self, file_id: str, partition: str, instant: str) -> LogSlice:
        if self.version >= 8:
            return LogSlice(file_id, instant, "0-1-2")
        slices = FileSystemView.load(self.client).all_slices().to_pylist()
        base = max((s["base_instant"] for s in slices if s["file_id"] == file_id), default=instant)
        assert self.storage is not None
        names = file_names_of(self.storage.list(partition)["path"])
        version = next_log_version(names, file_id, base)
        assert log_file_name(file_id, base, version, "0-1-2") not in names.to_pylist()
        return LogSlice(file_id, base, "0-1-2", version)


def row(key: str, partition: str, o: int, v: str | None) -> dict[str, Any]:
    """Return a row of the table."""
    return {"id": key, "p": partition, "o": o, "v": v}


def _stored(rows: Sequence[Row], instant: str, partition: str, file_name: str) -> pa.Table:
    own = {f.name: pa.array([r[f.name] for r in rows], f.type) for f in SCHEMA}
    n = len(rows)
    meta = dict.fromkeys(META_COLUMNS, pa.array([""] * n, pa.string()))
    meta |= {
        "_hoodie_commit_time": pa.array([instant] * n, pa.string()),
        "_hoodie_commit_seqno": pa.array([f"{instant}_0_{i}" for i in range(n)], pa.string()),
        RECORD_KEY: own["id"],
        PARTITION_PATH: pa.array([partition] * n, pa.string()),
        FILE_NAME: pa.array([file_name] * n, pa.string()),
    }
    return pa.table(meta | own, schema=add_meta_columns(SCHEMA))


def _is_table(storage: Storage) -> bool:
    return storage.exists(".hoodie/hoodie.properties")
