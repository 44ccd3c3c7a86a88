"""Statistics of partitions never hide a row, whatever options writers have and in which order they finish."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from itertools import product
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pyhudi.api.hudi_table import HudiTable
from pyhudi.schema.converters.arrow_avro import to_avro
from pyhudi.storage import Storage, open_storage
from pyhudi.table.config.table_config import TableConfig
from pyhudi.table.partition_metadata import write_partition_metadata
from pyhudi.timeline.commit_metadata import CommitMetadata, write_stats
from pyhudi.transaction.commit_outcome import Committed
from tests.cases import each_choice
from tests.unit.transaction.tables import WITH_METADATA, Write, make_table

SCHEMA = pa.schema([("id", pa.string()), ("p", pa.string()), ("a", pa.int32()), ("b", pa.int32())])
LIST = "hoodie.metadata.index.column.stats.column.list"
MOST = "hoodie.metadata.index.column.stats.max.columns.to.index"
BESIDE = WITH_METADATA | {"hoodie.write.concurrency.mode": "OPTIMISTIC_CONCURRENCY_CONTROL"}
COMPACTING = BESIDE | {"hoodie.metadata.compact.max.delta.commits": "1"}


@dataclass
class RowWrite(Write):
    """A write of one row to each of its partitions: ``rows`` are the values of ``a`` and ``b``."""

    rows: Mapping[str, int] = field(default_factory=dict)
    schema: pa.Schema = SCHEMA

    def __post_init__(self) -> None:
        self.partitions = tuple(self.rows)

    def write_files(self, tx: Any) -> CommitMetadata:
        metadata = super().write_files(tx)
        stats = metadata.stats.to_pylist()
        for row in stats:
            n = self.rows[row["partitionPath"]]
            values = {"id": f"k{n}", "p": row["partitionPath"], "a": n, "b": n}
            with tx.storage.open_output(row["path"]) as sink:
                pq.write_table(pa.Table.from_pylist([values], self.schema), sink)
            row["fileSizeInBytes"] = tx.storage.stat(row["path"]).size
        return replace(metadata, stats=write_stats(stats), extra={"schema": to_avro(self.schema, "t")})


@pytest.fixture
def storage(tmp_path: Path) -> Storage:
    storage = open_storage(str(tmp_path))
    keys = {"hoodie.table.partition.fields": "p", "hoodie.table.recordkey.fields": "id"}
    more = {"hoodie.table.keygenerator.type": "SIMPLE", "hoodie.populate.meta.fields": "false"}
    make_table(storage, 9, keys | more | {"hoodie.record.merge.mode": "COMMIT_TIME_ORDERING"})
    for partition in ("p0", "p1"):
        write_partition_metadata(storage, partition, "20240101000000000")
    return storage


def write(rows: Mapping[str, int], options: Mapping[str, str] = WITH_METADATA, **more: Any) -> RowWrite:
    return RowWrite(rows=rows, options=options, **more)


def overwrite(rows: Mapping[str, int], replaced: tuple[tuple[str, str], ...], operation: str, **more: Any) -> RowWrite:
    return write(rows, action="replacecommit", operation=operation, replaced=replaced, **more)


def found(storage: Storage, column: str, value: int) -> list[str]:
    scan = HudiTable.for_path(storage.uri()).scan([(column, "=", value)], columns=["id"])
    assert "partition_stats" in TableConfig.load(storage).metadata_partitions
    return sorted(scan.to_arrow()["id"].to_pylist())


def used(storage: Storage, column: str, value: int) -> str:
    return HudiTable.for_path(storage.uri()).scan([(column, "=", value)]).plan().skipped[0]


@pytest.mark.parametrize("first", [{}, {LIST: "b"}])
@pytest.mark.parametrize("second", [{LIST: "a"}, {MOST: "3"}])
def test_other_columns_are_wanted(storage: Storage, first: dict[str, str], second: dict[str, str]) -> None:
    write({"p0": 1, "p1": 2}, WITH_METADATA | first).run(storage)
    assert used(storage, "b", 50) == "partition_stats: 2 of 2 partitions out, by b"
    for n in (50, 60):
        write({"p0": n}, WITH_METADATA | second).run(storage)
        assert found(storage, "b", n) == found(storage, "a", n) == [f"k{n}"]
    assert used(storage, "b", 0) == "partition_stats: 2 of 2 partitions out, by b"


def test_a_column_that_comes_back(storage: Storage) -> None:
    write({"p0": 1, "p1": 2}).run(storage)
    write({"p0": 50}, schema=SCHEMA.remove(3)).run(storage)
    write({"p0": 60}).run(storage)
    assert found(storage, "b", 60) == ["k60"]
    scan = HudiTable.for_path(storage.uri()).scan([("b", "=", None)], columns=["id"])
    assert scan.to_arrow()["id"].to_pylist() == ["k50"]


def finish(storage: Storage, write: RowWrite) -> Callable[[], None]:
    """Begin a write; what comes back commits it."""
    tx = write.begin(storage)
    metadata = write.write_files(tx)

    def commit() -> None:
        assert isinstance(tx.commit(metadata), Committed)

    return commit


OVERWRITES = ("INSERT_OVERWRITE", "INSERT_OVERWRITE_TABLE", "DELETE_PARTITION")
ORDERS = ("insert first", "overwrite first", "insert around", "overwrite around")


@pytest.mark.parametrize(
    ("operation", "order", "options"),
    [
        *(pytest.param(operation, order, BESIDE) for operation, order in product(OVERWRITES, ORDERS)),
        *(
            pytest.param(*case.values, COMPACTING, id=f"{case.id}-compacted", marks=case.marks)
            for case in each_choice(OVERWRITES, ORDERS)
        ),
    ],
)
def test_an_overwrite_beside_an_insert(storage: Storage, operation: str, order: str, options: dict[str, str]) -> None:
    write({"p0": 1, "p1": 2}, BESIDE, file_ids={"p0": "old-0", "p1": "other-0"}).run(storage)
    whole = operation == "INSERT_OVERWRITE_TABLE"
    replaced = (("p0", "old-0"), ("p1", "other-0")) if whole else (("p0", "old-0"),)
    rows = {} if operation == "DELETE_PARTITION" else {"p0": 3}
    writes = {
        "insert": write({"p0": 500}, options, file_ids={"p0": "new-0"}),
        "overwrite": overwrite(rows, replaced, operation, options=options, file_ids={"p0": "over-0"}),
    }
    first, how = order.split()
    names = sorted(writes, key=lambda name: name != first)
    commits = {name: finish(storage, writes[name]) for name in names}
    for name in names if how == "first" else reversed(names):
        commits[name]()
    assert found(storage, "a", 500) == ["k500"]
    write({"p0": 7}, options).run(storage)
    assert found(storage, "a", 500) == ["k500"]
    assert found(storage, "a", 7) == ["k7"]
    assert found(storage, "a", 1) == []


def test_an_overwrite_alone_makes_statistics_narrow(storage: Storage) -> None:
    write({"p0": 1, "p1": 2}, file_ids={"p0": "old-0"}).run(storage)
    overwrite({"p0": 3}, (("p0", "old-0"),), "INSERT_OVERWRITE").run(storage)
    assert used(storage, "a", 1) == "partition_stats: 2 of 2 partitions out, by a"
