"""The indexing action in turns: one side plans, the other one builds, and both write before, meanwhile and after."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from pyhudi.hudi_table import HudiTable
from pyhudi.services import indexrun
from tests.interop.in_turns import OPTIONS, SIMPLE, VERSIONS, InTurns, rows
from tests.interop.oracle import Oracle
from tests.spark.test_record_index import places, real_places

LOCK = {
    "hoodie.write.concurrency.mode": "OPTIMISTIC_CONCURRENCY_CONTROL",
    "hoodie.write.lock.provider": "org.apache.hudi.client.transaction.lock.InProcessLockProvider",
    "hoodie.cleaner.policy.failed.writes": "LAZY",
}
WANTED = {
    "hoodie.metadata.record.index.enable": "true",
    "hoodie.metadata.record.index.min.filegroup.count": "2",
    "hoodie.metadata.record.index.max.filegroup.count": "2",
    "hoodie.metadata.index.bloom.filter.enable": "true",
}
SKIPPING = {"hoodie.metadata.enable": "true", "hoodie.enable.data.skipping": "true", **WANTED}
CASES = [("0.15.0", "MERGE_ON_READ"), ("1.0.2", "COPY_ON_WRITE"), ("1.2.0", "MERGE_ON_READ")]


@pytest.mark.parametrize(("planner", "builder"), [("ours", "theirs"), ("theirs", "ours")])
@pytest.mark.parametrize(("oracle", "table_type"), CASES, indirect=["oracle"])
def test_in_turns(
    oracle: Oracle,
    table_type: str,
    planner: str,
    builder: str,
    spark: SparkSession,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    options = {
        **OPTIONS,
        **SIMPLE,
        "hoodie.metadata.enable": "true",
        "hoodie.datasource.write.table.type": table_type,
    }
    both = InTurns(tmp_path / "table", oracle, spark, options)
    clock = count(1)

    def write(side: str, start: int, stop: int, operation: str = "upsert") -> None:
        ts = next(clock)
        both.write(side, rows(start, stop, ts, f"{side} {ts}"), operation)

    write("theirs", 0, 20)
    write("ours", 10, 25)
    plans = _plan(both, planner)
    write(planner, 20, 30)
    if builder == "theirs":
        for kind, instant in plans.items():
            oracle.index(both.path, {**both.options, **WANTED, **LOCK}, kind, instant=instant)
    else:
        real: Callable[[Any], Any] = indexrun._written

        def beside(begun: Any) -> Any:
            found = real(begun)
            # without the first Apache Hudi drops what is being built, without the second it builds it by itself at once
            both.options |= {**WANTED, "hoodie.metadata.index.async": "true"}
            write("theirs", 25, 45)
            write("ours", 5, 8)
            return found

        monkeypatch.setattr(indexrun, "_written", beside)
        (instant,) = set(plans.values())
        found = HudiTable.for_path(str(both.path)).services.run_index(instant, WANTED, spark=spark)
        assert set(found.partitions) == {"bloom_filters", "record_index"}
        monkeypatch.undo()
    _check(both, "k024", "k044")
    both.options |= WANTED
    write("theirs", 15, 40)
    write("ours", 0, 4, "delete")
    write("ours", 2, 30)
    write("theirs", 3, 6, "delete")
    _check(both, "k003", "k007")


def _plan(both: InTurns, planner: str) -> dict[str, str]:
    """The instants of plans, by the names that Apache Hudi has for the indexes."""
    kinds = ["RECORD_INDEX", "BLOOM_FILTERS"]
    if planner == "theirs":
        instant = both.oracle.index(both.path, {**both.options, **WANTED, **LOCK}, *kinds, run=False)
        return dict.fromkeys(kinds, instant)
    services = HudiTable.for_path(str(both.path)).services
    plans = {kind: services.schedule_index(kind.lower(), options=WANTED).instant for kind in kinds}
    return {kind: instant for kind, instant in plans.items() if instant is not None}


def _check(both: InTurns, *keys: str) -> None:
    """Both sides see the rows, and find them by the indexes, which say what is in the table."""
    path = str(both.path)
    table = HudiTable.for_path(path)
    assert table.config.version == VERSIONS[both.oracle.release]
    assert not table.config.metadata_partitions_inflight
    assert {"bloom_filters", "record_index"} <= set(both.oracle.metadata_partitions(path))
    both.check(SKIPPING, keys)
    assert places(path) == real_places(path)
    assert not table.validate_metadata().num_rows
    found = table.lookup(list(keys), ["id"])
    assert sorted(found["id"].to_pylist()) == sorted(set(keys) & set(both.model))
