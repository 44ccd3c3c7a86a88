"""Apache Hudi goes on with a metadata table that tasks have built of a whole table."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from pyhudi.api.hudi_table import HudiTable
from pyhudi.metadata.metadata_layout import load_metadata_timeline
from pyhudi.spark.indexes import file_statistics_build
from pyhudi.storage import open_storage
from tests.interop.harness.alternating_writes import OPTIONS, SIMPLE, AlternatingWrites, rows
from tests.interop.harness.oracle import Oracle

INDEXED = {
    "hoodie.metadata.enable": "true",
    "hoodie.metadata.index.column.stats.enable": "true",
    "hoodie.metadata.index.bloom.filter.enable": "true",
}
SKIPPING = {"hoodie.metadata.enable": "true", "hoodie.enable.data.skipping": "true"}
PARTITIONS = {"files", "column_stats", "partition_stats", "bloom_filters"}


@pytest.mark.slow
@pytest.mark.parametrize("oracle", ["1.2.0"], indirect=True)
def test_apache_hudi_goes_on(
    oracle: Oracle, spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kind = {"hoodie.datasource.write.table.type": "MERGE_ON_READ"}
    both = AlternatingWrites(tmp_path / "table", oracle, spark, {**OPTIONS, **SIMPLE, **kind})
    both.write("ours", rows(0, 20, 1, "first"))
    both.write("ours", rows(10, 15, 2, "second"))
    monkeypatch.setattr(file_statistics_build, "FEW", 0)
    services = HudiTable.for_path(str(both.path)).services
    for name in ("partition_stats", "bloom_filters"):
        services.build_index(name, spark=spark)
    built = _initial(both.path)
    assert set(oracle.metadata_partitions(str(both.path))) == PARTITIONS
    both.check(SKIPPING, ("k003", "k012"))

    both.options |= INDEXED
    both.write("theirs", rows(5, 25, 3, "third"))
    both.check(SKIPPING, ("k003", "k012"))
    assert set(oracle.metadata_partitions(str(both.path))) == PARTITIONS
    assert _initial(both.path) == built
    assert not HudiTable.for_path(str(both.path)).validate_metadata().num_rows


def _initial(path: Path) -> list[str]:
    """Instants by which partitions of the metadata table were built."""
    timeline = load_metadata_timeline(open_storage(path), 9).timeline
    return [i.requested for i in timeline if i.requested.startswith("0" * 14)]
