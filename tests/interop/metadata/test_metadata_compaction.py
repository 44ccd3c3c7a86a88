"""Apache Hudi beside a compaction of the metadata table that is at work without the lock, and after one that died."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from pyhudi.api.hudi_table import HudiTable
from pyhudi.metadata.file_groups.hfile_sources import CACHE
from pyhudi.metadata.maintenance import metadata_compaction
from pyhudi.metadata.metadata_layout import HEARTBEATS, load_metadata_timeline
from pyhudi.storage import open_storage
from pyhudi.timeline.heartbeat import heartbeat_path
from pyhudi.timeline.instant import Action
from tests.cases import seldom
from tests.interop.harness.alternating_writes import OPTIONS, SIMPLE, VERSIONS, AlternatingWrites, rows
from tests.interop.harness.oracle import Oracle

METADATA = {
    "hoodie.metadata.enable": "true",
    "hoodie.metadata.record.index.enable": "true",
    "hoodie.metadata.compact.max.delta.commits": "4",
    "hoodie.clean.automatic": "false",
}
READ = {"hoodie.metadata.enable": "true", "hoodie.enable.data.skipping": "true"}


class Killed(BaseException):
    """The process dies."""


@pytest.mark.parametrize("oracle", [seldom("1.0.2"), "1.2.0"], indirect=True)
def test_beside_apache_hudi(
    oracle: Oracle, spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kind = {"hoodie.datasource.write.table.type": "COPY_ON_WRITE"}
    both = AlternatingWrites(tmp_path / "table", oracle, spark, {**OPTIONS, **SIMPLE, **METADATA, **kind})
    run, seen = metadata_compaction.run_job, []

    def timeline() -> Any:
        return load_metadata_timeline(open_storage(both.path, {}), VERSIONS[oracle.release]).timeline

    def killed(job: Any, stats_reader: Any) -> Any:
        run(job, stats_reader)
        seen.append(job.instant)
        raise Killed

    n = 0
    with monkeypatch.context() as patch:
        patch.setattr(metadata_compaction, "run_job", killed)
        while not seen:
            n += 1
            try:
                both.write("ours", rows(n, n + 12, n, f"v{n}"))
            except Killed:  # after the commit
                both.model |= {row[0]: row for row in rows(n, n + 12, n, f"v{n}")}
    assert [i.requested for i in timeline().pending().of_actions(Action.COMPACTION)] == seen
    open_storage(both.path, {}).write(heartbeat_path(seen[0], HEARTBEATS), b"")  # as of a process that was just killed
    _check(both)  # both read over a pending plan
    both.write("theirs", rows(3, 20, 50, "theirs"))
    both.write("ours", rows(0, 5, 51, "ours"))
    assert not timeline().pending().of_actions(Action.COMPACTION)
    _check(both)

    def beside(job: Any, stats_reader: Any) -> Any:
        stats = run(job, stats_reader)
        if len(seen) == 1:
            seen.append(job.instant)
            both.write("theirs", rows(1, 9, 60, "meanwhile"))
        return stats

    monkeypatch.setattr(metadata_compaction, "run_job", beside)
    for n in range(70, 80):
        if len(seen) == 2:
            break
        both.write("ours", rows(0, 3, n, f"v{n}"))
    assert len(seen) == 2
    assert not timeline().pending()
    _check(both)
    both.write("theirs", rows(2, 6, 90, "theirs"))
    both.write("ours", rows(4, 30, 91, "ours"))
    _check(both)


def _check(both: AlternatingWrites) -> None:
    CACHE.clear()
    both.check(READ, ("k003",))
    assert not HudiTable.for_path(str(both.path)).validate_metadata().num_rows
