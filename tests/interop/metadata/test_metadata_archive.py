"""The metadata table's own timeline is archived in turns: each side reads and goes on with what the other one left."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from pyhudi.api.hudi_table import HudiTable
from pyhudi.metadata.file_groups.hfile_sources import CACHE
from pyhudi.metadata.metadata_layout import load_metadata_timeline, metadata_layout
from pyhudi.storage import open_storage
from pyhudi.timeline.archive.archived_timeline import read_archived_timeline
from tests.cases import seldom
from tests.interop.harness.alternating_writes import ARCHIVAL, OPTIONS, SIMPLE, VERSIONS, AlternatingWrites, rows
from tests.interop.harness.oracle import Oracle

ON = {"hoodie__archive__automatic": "true"}
SKIPPING = {"hoodie.metadata.enable": "true", "hoodie.enable.data.skipping": "true"}


@pytest.mark.slow
@pytest.mark.parametrize("oracle", ["0.15.0", seldom("1.0.2"), seldom("1.2.0")], indirect=True)
def test_in_turns(oracle: Oracle, spark: SparkSession, tmp_path: Path) -> None:
    kind = {"hoodie.datasource.write.table.type": "COPY_ON_WRITE"}
    both = AlternatingWrites(tmp_path / "table", oracle, spark, {**OPTIONS, **SIMPLE, **ARCHIVAL, **kind})
    version = VERSIONS[oracle.release]

    def archived() -> set[str]:
        storage = open_storage(both.path, {})
        gone = set(read_archived_timeline(storage, metadata_layout(version))["requested"].to_pylist())
        assert not gone & {i.requested for i in load_metadata_timeline(storage, version).timeline}
        return gone

    for n in range(6):
        both.write("theirs" if n % 2 else "ours", rows(n, n + 12, n, f"v{n}"))
    # the table itself is archived after its metadata table has been looked after
    both.write("theirs", rows(3, 20, 6, "archived"), **ON)
    before = archived()
    for n in range(7, 9):
        both.write("ours", rows(0, n, n, f"v{n}"), **ON)
    by_us = archived() - before
    assert len(by_us) > 2
    _check(both)
    for n in range(9, 13):
        both.write("theirs", rows(n, n + 9, n, f"v{n}"), **ON)
    by_them = archived() - by_us - before
    assert by_us < archived()
    assert by_them
    _check(both)
    for n in range(13, 15):
        both.write("ours", rows(n, n + 4, n, f"v{n}"), **ON)
    assert by_us | by_them < archived()
    both.write("theirs", rows(2, 4, 15, ""), "delete", **ON)
    _check(both)


def _check(both: AlternatingWrites) -> None:
    CACHE.clear()
    both.check(SKIPPING, ("k003",))
    assert not HudiTable.for_path(str(both.path)).validate_metadata().num_rows
