"""Rolling extra metadata that Apache Hudi 1.2 and pyhudi take over from one another, in commits and cleans."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from pyhudi.table.meta_client import TableMetaClient
from pyhudi.timeline.instant import Action
from tests.interop.harness.alternating_writes import OPTIONS, SIMPLE, AlternatingWrites, rows
from tests.interop.harness.oracle import Oracle

ROLLING = {
    **OPTIONS,
    **SIMPLE,
    "hoodie.write.rolling.metadata.keys": "_offset,_job",
    "hoodie.clean.commits.retained": "1",
    "hoodie.clean.automatic": "true",
}


@pytest.mark.parametrize("oracle", ["1.2.0"], indirect=True)
def test_both_take_over_what_the_other_wrote(oracle: Oracle, spark: SparkSession, tmp_path: Path) -> None:
    both = AlternatingWrites(tmp_path / "t", oracle, spark, ROLLING)
    steps: list[tuple[str, dict[str, str]]] = [
        ("theirs", {"_offset": "1"}),
        ("ours", {"_job": "a"}),
        ("theirs", {}),
        ("ours", {"_offset": "2"}),
        ("theirs", {}),
        ("ours", {}),
    ]
    found = []
    for number, (side, extra) in enumerate(steps):
        both.write(side, rows(0, 8, number, side), "upsert", **extra)
        active = TableMetaClient.open(str(both.path)).active_timeline()
        stored = active.commit_metadata(active.timeline.writes().by_completion()[-1]).extra
        found.append((stored.get("_offset"), stored.get("_job")))
    assert found == [("1", None), ("1", "a"), ("1", "a"), ("2", "a"), ("2", "a"), ("2", "a")]
    cleans = active.timeline.of_actions(Action.CLEAN).by_completion()
    rolled = [active.completed_record(clean)["extraMetadata"] for clean in cleans]
    assert rolled[-1] == {"_offset": "2", "_job": "a"}  # ours; those of Apache Hudi 1.2.0 have none
    both.check()
