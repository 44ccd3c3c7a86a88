"""The metadata table is compacted on the executors, if there is enough to do."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from pyhudi.api.hudi_table import HudiTable
from pyhudi.metadata.maintenance import metadata_compaction_job
from pyhudi.metadata.maintenance.metadata_compaction_job import MetadataCompactionJob
from pyhudi.metadata.metadata_layout import load_metadata_timeline
from pyhudi.spark.indexes.file_statistics_build import SparkFileStatsReader
from pyhudi.spark.write.dataframe_writer import write as write_df
from pyhudi.storage import open_storage
from pyhudi.timeline.instant import Action


def test_on_executors(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metadata_compaction_job, "PAYS_ON_ENGINE", 1)
    compact, jobs = SparkFileStatsReader.compact_metadata, []

    def spied(reader: SparkFileStatsReader, job: MetadataCompactionJob) -> object:
        jobs.append(job)
        return compact(reader, job)

    monkeypatch.setattr(SparkFileStatsReader, "compact_metadata", spied)
    options = {
        "hoodie.table.name": "t",
        "hoodie.datasource.write.recordkey.field": "id",
        "hoodie.datasource.write.partitionpath.field": "",
        "hoodie.metadata.record.index.enable": "true",
        "hoodie.metadata.compact.max.delta.commits": "3",
        "hoodie.clean.automatic": "false",
    }
    path = str(tmp_path / "t")
    for n in range(3):
        frame = spark.range(n * 5, n * 5 + 10).selectExpr("cast(id as string) id", f"{n} n")
        write_df(frame, path, options)
    assert jobs
    assert len(jobs[0].slices) > 1
    done = load_metadata_timeline(open_storage(path, {}), 9).timeline.completed()
    assert [i.requested for i in done if i.action == Action.COMMIT] == [job.instant for job in jobs]
    table = HudiTable.for_path(path)
    assert not table.validate_metadata().num_rows
    assert table.scan(columns=["id"]).to_arrow().num_rows == 20
