"""Apache Hudi reads and writes files of which pyhudi has rewritten some row groups and copied the others."""

from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from pyhudi.api.hudi_table import HudiTable
from tests.cases import seldom
from tests.interop.harness.alternating_writes import OPTIONS, SIMPLE, AlternatingWrites, rows
from tests.interop.harness.oracle import Oracle

STATISTICS = {"hoodie.metadata.enable": "true", "hoodie.metadata.index.column.stats.enable": "true"}
READ = {"hoodie.metadata.enable": "true", "hoodie.enable.data.skipping": "true"}


def _codecs(path: Path) -> list[list[str]]:
    """The codecs of the row groups of each base file, in its latest version."""
    files = HudiTable.for_path(str(path)).inspect.file_slices()["base_path"].to_pylist()
    found = [pq.read_metadata(path / file) for file in files]
    return [[file.row_group(i).column(0).compression for i in range(file.num_row_groups)] for file in found]


@pytest.mark.parametrize("oracle", [seldom("0.15.0"), seldom("1.0.2"), "1.2.0"], indirect=True)
def test_row_groups_are_copied(oracle: Oracle, spark: SparkSession, tmp_path: Path) -> None:
    small = {"hoodie.parquet.block.size": "4000", "hoodie.bulkinsert.shuffle.parallelism": "1"}
    both = AlternatingWrites(tmp_path / "table", oracle, spark, {**OPTIONS, **SIMPLE, **STATISTICS, **small})
    keys = ("k100", "k600", "k300", "k000", "k101")
    both.write("ours", rows(0, 600, 1, "first"), "bulk_insert")
    both.write("ours", rows(100, 102, 2, "changed"), hoodie__parquet__compression__codec="gzip")
    codecs = _codecs(both.path)
    # of each partition a file is rewritten
    assert sum("GZIP" in file and file.count("ZSTD") > 1 for file in codecs) == 2
    both.write("ours", rows(598, 602, 3, "new"), hoodie__parquet__compression__codec="snappy")
    both.write("ours", rows(300, 302, 4, ""), "delete", hoodie__parquet__compression__codec="snappy")
    both.check(READ, keys)
    both.write("theirs", rows(99, 101, 5, "theirs"))
    both.write("ours", rows(98, 100, 6, "again"))
    both.check(READ, keys)
    assert HudiTable.for_path(str(both.path)).validate_metadata().num_rows == 0
