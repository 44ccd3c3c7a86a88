"""Apache Hudi finds keys by indexes that were built in many ranges of keys, and goes on with them."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from pyhudi.api.hudi_table import HudiTable
from pyhudi.spark.indexes import key_ranges
from tests.cases import seldom
from tests.index_contents import secondary_entries
from tests.interop.harness.alternating_writes import OPTIONS, SIMPLE, AlternatingWrites, Row, rows
from tests.interop.harness.oracle import Oracle
from tests.interop.indexes.test_secondary_index import INDEX, RECORDS, SKIPPING

_TEXTS = ("", "A", "k", "k1", "z", "é", "ключ", "中", "😀")
_GROUPS = {key: value for key, value in RECORDS.items() if "count" in key}


def _other_keys(ts: int, v: str) -> list[Row]:
    return [(f"{text}·{i}", i, f"p{i}", ts, f"{v}é" if i else v) for text in _TEXTS for i in range(2)]


@pytest.mark.parametrize("oracle", [seldom("1.2.0")], indirect=True)
def test_indexes_of_many_ranges(
    oracle: Oracle, spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kind = {"hoodie.datasource.write.table.type": "MERGE_ON_READ", "hoodie.embed.timeline.server": "true"}
    both = AlternatingWrites(
        tmp_path / "table", oracle, spark, {**OPTIONS, **SIMPLE, **kind, "hoodie.metadata.enable": "true"}
    )
    both.write("ours", [*rows(0, 20, 1, "a"), *_other_keys(1, "a")])
    both.write("ours", rows(10, 30, 2, "b"))
    monkeypatch.setattr(key_ranges, "_KEYS_PER_RANGE", 2)
    services = HudiTable.for_path(str(both.path)).services
    services.build_index("record_index", options=_GROUPS, spark=spark)
    services.build_index("by_v", "v", options=_GROUPS, spark=spark)
    both.check(SKIPPING, ("k014", "é·1"))
    both.options |= RECORDS
    both.write("theirs", [*rows(5, 35, 3, "c"), *_other_keys(3, "c")[::2]])
    both.write("ours", _other_keys(4, "d")[1::3])
    both.check(SKIPPING, ("k034", "中·0", "😀·1", "k000"))
    assert secondary_entries(both.path) == sorted((row[4], row[0]) for row in both.model.values())
    wanted = sorted(row[0] for row in both.model.values() if row[4] == "dé")
    assert sorted(oracle.read(both.path, SKIPPING, where="v = 'dé'")["id"].to_pylist()) == wanted
    assert {"record_index", INDEX} <= set(oracle.metadata_partitions(both.path))
