"""Small tables for transaction tests: real timeline, markers and config, data files without content."""

from __future__ import annotations

import zlib
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import pyarrow as pa

from pyhudi.config.options import TIME_GENERATOR_MAX_CLOCK_SKEW_MS
from pyhudi.format.file_names import base_file_name
from pyhudi.storage import Storage, join_path
from pyhudi.table.config.table_config import TableConfig
from pyhudi.timeline.active_timeline import ActiveTimeline
from pyhudi.timeline.commit_metadata import REPLACED_SCHEMA, CommitMetadata, write_stats
from pyhudi.timeline.markers import IOType
from pyhudi.timeline.timeline_layout import Layout
from pyhudi.transaction.commit_outcome import Committed
from pyhudi.transaction.transaction import Transaction
from pyhudi.write.handles.marked_file import MarkedFile

MAX_CLOCK_SKEW = TIME_GENERATOR_MAX_CLOCK_SKEW_MS.key

OPTIONS = {MAX_CLOCK_SKEW: "0", "hoodie.metadata.enable": "false"}
WITH_METADATA = OPTIONS | {"hoodie.metadata.enable": "true"}
MULTI_WRITER = OPTIONS | {"hoodie.write.concurrency.mode": "OPTIMISTIC_CONCURRENCY_CONTROL"}
SCHEMA = '{"type":"record","name":"t_record","fields":[]}'
PROPERTIES = ".hoodie/hoodie.properties"
METADATA_TABLE = {
    ".hoodie/metadata/.hoodie/hoodie.properties": b"hoodie.table.name=t_metadata\n",
    ".hoodie/metadata/.hoodie/timeline/00000000000000000_20240101000000000.deltacommit": b"x",
    ".hoodie/metadata/.hoodie/timeline/00000000000000000.deltacommit.inflight": b"x",
    ".hoodie/metadata/.hoodie/timeline/00000000000000000.deltacommit.requested": b"",
    ".hoodie/metadata/.hoodie/timeline/history/_version_": b"1",
    ".hoodie/metadata/files/files-0000-0_0-0-0_00000000000000000.hfile": b"x",
    ".hoodie/metadata/column_stats/col-stats-0000-0_0-0-0_00000000000000000.hfile": b"x",
}


def make_table(storage: Storage, version: int, properties: Mapping[str, str] | None = None) -> None:
    """Create an empty table with only the properties that transactions use."""
    lines = {
        "hoodie.table.name": "t",
        "hoodie.table.type": "COPY_ON_WRITE",
        "hoodie.table.version": str(version),
        "hoodie.timeline.layout.version": "2" if version >= 8 else "1",
        "hoodie.table.timeline.timezone": "UTC",
        "hoodie.table.checksum": str(zlib.crc32(b".t")),
    } | dict(properties or {})
    storage.write(PROPERTIES, "".join(f"{key}={value}\n" for key, value in lines.items()).encode())


def add_metadata_table(storage: Storage) -> None:
    """Declare a metadata table and create files where it would have some."""
    TableConfig.load(storage).updated(storage, set={"hoodie.table.metadata.partitions": "column_stats,files"})
    for path, data in METADATA_TABLE.items():
        storage.write(path, data)


def client(storage: Storage) -> Any:
    """Return the parts of a meta client that transactions and archival use."""
    return SimpleNamespace(storage=storage, config=TableConfig.load(storage), active_timeline=lambda: active(storage))


def active(storage: Storage) -> ActiveTimeline:
    return ActiveTimeline.load(storage, Layout.from_properties(TableConfig.load(storage).properties))


@dataclass
class Write:
    """A write of some files, as the writer layer would execute it."""

    partitions: tuple[str, ...] = ("a", "b")
    action: str = "commit"
    operation: str = "UPSERT"
    options: Mapping[str, str] = field(default_factory=lambda: OPTIONS)
    file_ids: Mapping[str, str] = field(default_factory=dict)
    token: str = "0-1-2"
    retried: str | None = None
    replaced: tuple[tuple[str, str], ...] = ()
    schema: str = SCHEMA

    def begin(self, storage: Storage) -> Transaction:
        return Transaction.begin(client(storage), self.action, self.operation, self.options)

    def write_files(self, tx: Transaction) -> CommitMetadata:
        """Create the inflight instant, markers and data files; return the metadata to commit."""
        tx.to_inflight(CommitMetadata(self.operation, write_stats([{"partitionPath": "a", "numInserts": 1}])))
        rows = []
        for n, partition in enumerate(self.partitions):
            file_id = self.file_ids.get(partition, f"f{n}-{tx.instant}")
            for token in filter(None, (self.retried, self.token)):
                name = base_file_name(file_id, token, tx.instant)
                path = join_path(partition, name)
                marked = MarkedFile(tx.storage, tx.instant, partition, name, IOType.CREATE)
                tx.storage.write(path, b"data")
                marked.check()
            rows.append({"fileId": file_id, "path": path, "partitionPath": partition, "numInserts": 1, "numWrites": 1})
        replaced = None
        if self.replaced:
            replaced = pa.Table.from_pylist(
                [{"partition": p, "file_id": f} for p, f in self.replaced], schema=REPLACED_SCHEMA
            )
        return CommitMetadata(self.operation, write_stats(rows), {"schema": self.schema}, replaced=replaced)

    def run(self, storage: Storage) -> Committed:
        tx = self.begin(storage)
        outcome = tx.commit(self.write_files(tx))
        assert isinstance(outcome, Committed)
        return outcome

    def leave(self, storage: Storage) -> Transaction:
        """Do everything but the commit, like a writer that is killed."""
        tx = self.begin(storage)
        self.write_files(tx)
        return tx


def data_files(storage: Storage) -> set[str]:
    """Return the paths of all files outside of ``.hoodie``."""
    return {path for path in storage.list("", recursive=True)["path"].to_pylist() if not path.startswith(".hoodie/")}


def check_clean(storage: Storage, *, besides: Collection[str] = ()) -> None:
    """Check that nothing is pending, that the existing files are exactly those in commits, and that no temporary files
    are left. ``besides`` are files that exist although no commit names them."""
    now = active(storage)
    assert not now.timeline.pending(), [str(i) for i in now.timeline.pending()]
    named: set[str] = set()
    for instant in now.timeline.completed().writes():
        assert len(now.states(instant)) == 3
        named |= set(now.commit_metadata(instant).stats["path"].to_pylist())
    assert data_files(storage) == named | set(besides)
    assert storage.list(".hoodie/.temp", recursive=True).num_rows == 0
    assert storage.list(".hoodie/.heartbeat", recursive=True).num_rows == 0
    times = [t for i in now.timeline.by_completion() for t in (i.requested, i.completion) if t]
    assert len(times) == len(set(times))
    if now.layout.version == 2:
        assert all(i.completion is not None and i.completion > i.requested for i in now.timeline.completed())
