"""A pipeline of upserts with the services that are on by default, and ``HudiTable.services`` on what it leaves."""

from __future__ import annotations

import copy
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from pyhudi.api.hudi_table import HudiTable
from pyhudi.errors import TransactionError
from pyhudi.spark.write.dataframe_writer import write
from tests.cases import seldom
from tests.spark.model import Model, batch, by_event_time, frame, rows_of

KEPT = {
    "hoodie.clean.commits.retained": "2",
    "hoodie.keep.min.commits": "4",
    "hoodie.keep.max.commits": "5",
    "hoodie.compact.inline.max.delta.commits": "2",
    "hoodie.metadata.compact.max.delta.commits": "3",
}
SORTED = {"hoodie.clustering.plan.strategy.sort.columns": "v"}


class Pipeline:
    """A table and its model."""

    def __init__(self, spark: SparkSession, path: Path, table_type: str, version: int) -> None:
        self.spark, self.path, self.model, self.times = spark, path, Model(), 0
        self.options = {**by_event_time("upsert", table_type, version), **KEPT}

    def upsert(self) -> str | None:
        """Update some rows and add others, in the table and the model."""
        self.times += 1
        rows = batch(self.times % 3 * 2, self.times % 3 * 2 + 4 + self.times, self.times, f"v{9 - self.times % 7}")
        result = write(frame(self.spark, rows), str(self.path), self.options)
        self.model.upsert(rows)
        self.check()
        return result.instant

    def check(self) -> None:
        """The table has the rows of the model."""
        assert rows_of(self.path) == self.model.rows

    def files(self) -> int:
        """Data files in storage."""
        return sum(
            1 for path in self.path.glob("p*/*") if path.name.startswith((".", "_")) or path.suffix == ".parquet"
        )


@pytest.mark.parametrize(
    ("table_type", "version"), [("MERGE_ON_READ", 9), seldom(("COPY_ON_WRITE", 6)), seldom(("MERGE_ON_READ", 6))]
)
def test_services_of_a_pipeline(table_type: str, version: int, spark: SparkSession, tmp_path: Path):
    pipeline = Pipeline(spark, tmp_path / "table", table_type, version)
    counts = []
    for _ in range(10):
        pipeline.upsert()
        counts.append(pipeline.files())
    table = HudiTable.for_path(str(pipeline.path), KEPT)
    services = table.services
    actions = table.history()["action"].to_pylist()
    assert "clean" in actions
    assert sum(action in ("commit", "deltacommit", "replacecommit") for action in actions) <= 7
    assert table.history(archived=True).num_rows > len(actions) + 4
    assert max(counts[7:]) <= max(counts[4:7]) + 6, counts  # three files a commit, were they not cleaned
    assert ("compact" in {str(name).lower() for name in table.history(archived=True)["operation"].to_pylist()}) is (
        table_type == "MERGE_ON_READ"
    )

    # to and fro
    saved = services.savepoint(user="me", comment="before").instants[0]
    kept = copy.deepcopy(pipeline.model)
    pipeline.upsert()
    before = copy.deepcopy(pipeline.model)
    pipeline.options |= {"hoodie.compact.inline": "false"}
    wrong = pipeline.upsert()
    assert services.rollback(wrong).instants == (wrong,)
    pipeline.model = before
    pipeline.check()
    for _ in range(3):
        pipeline.upsert()
    assert services.savepoints()["instant"].to_pylist() == [saved]
    assert len(services.restore(saved, dry_run=True)) >= 4
    assert services.restore(saved)
    pipeline.model = kept
    pipeline.check()
    with pytest.raises(TransactionError, match="has a savepoint"):
        services.rollback(saved)
    assert services.delete_savepoint(saved)

    # rows in another order, in other files, whose old ones go
    slices = table.inspect.file_slices()
    result = services.cluster(SORTED, spark=spark)
    assert (result.num_replaced, result.num_rows) == (slices.num_rows, len(pipeline.model.rows))
    pipeline.check()
    pipeline.options |= {"hoodie.clustering.inline": "true", "hoodie.clustering.inline.max.commits": "2"}
    for _ in range(4):
        pipeline.upsert()
    assert table.history(archived=True)["operation"].to_pylist().count("CLUSTER") >= 2
    services.clean({"hoodie.clean.commits.retained": "1"})
    assert not [path for path in slices["base_path"].drop_null().to_pylist() if (pipeline.path / path).exists()]
    assert not len(services.clean({"hoodie.clean.commits.retained": "1"}, dry_run=True))
    services.archive()
    pipeline.check()
    assert not list((pipeline.path / ".hoodie/.temp").glob("*"))
