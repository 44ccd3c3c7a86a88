"""Pre-commit validators: writes that SQL queries refuse leave the table as it was."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from pyhudi.api.hudi_table import HudiTable
from pyhudi.errors import ValidationError
from pyhudi.spark.write import write_commit
from pyhudi.spark.write.dataframe_writer import write
from pyhudi.spark.write.write_job import WriteJob
from pyhudi.timeline.commit_metadata import CommitMetadata
from pyhudi.timeline.markers import IOType
from pyhudi.transaction.transaction import Transaction
from tests.cases import seldom
from tests.spark.model import by_event_time, frame, rows_of

_VALIDATORS = "hoodie.precommit.validators"
_PACKAGE = "org.apache.hudi.client.validator."
NO_NULLS = {
    _VALIDATORS: f"{_PACKAGE}SqlQuerySingleResultPreCommitValidator",
    f"{_VALIDATORS}.single.value.sql.queries": "select count(*) from <TABLE_NAME> where v is null#0",
}
AS_MANY = {
    _VALIDATORS: f"{_PACKAGE}SqlQueryEqualityPreCommitValidator",
    f"{_VALIDATORS}.equality.sql.queries": "select count(*) from <TABLE_NAME>",
}
NO_SUCH_COLUMN = AS_MANY | {f"{_VALIDATORS}.equality.sql.queries": "select max(fare) from <TABLE_NAME>"}
ONLY_P = {
    _VALIDATORS: f"{_PACKAGE}SqlQuerySingleResultPreCommitValidator",
    f"{_VALIDATORS}.single.value.sql.queries": "select max(part) from <TABLE_NAME>#p",
}


def staged_views(spark: SparkSession) -> list[str]:
    return [row[1] for row in spark.sql("SHOW VIEWS").collect() if row[1].startswith("pyhudi_staged")]


@pytest.mark.parametrize(("kind", "version"), [seldom(("COPY_ON_WRITE", 6)), ("MERGE_ON_READ", 9)])
def test_writes_that_validators_refuse(spark: SparkSession, tmp_path: Path, kind: str, version: int) -> None:
    path = tmp_path / "t"

    def save(operation: str, rows: list[Any], validators: dict[str, str], mode: str = "append") -> None:
        given = by_event_time(operation, kind, version) | validators
        write(frame(spark, rows), str(path), given, mode)

    with pytest.raises(ValidationError, match="should return '0' after it, but returned"):
        save("upsert", [("a", "p", 1, None)], NO_NULLS)
    assert not (path / ".hoodie").exists()
    save("upsert", [("a", "p", 1, "x"), ("b", "q", 1, "y")], NO_NULLS)
    save("upsert", [("a", "p", 2, "x2")], ONLY_P)
    rows = [("a", "p", 2, "x2"), ("b", "q", 1, "y")]
    assert rows_of(path) == rows
    for operation, given, validators, mode in [
        ("upsert", [("a", "p", 3, None)], NO_NULLS, "append"),
        ("upsert", [("b", "q", 3, "y")], ONLY_P, "append"),
        ("upsert", [("a", "p", 3, "x")], NO_SUCH_COLUMN, "append"),
        ("insert", [("c", "p", 3, "z")], AS_MANY, "append"),
        ("delete", [("a", "p", 3, "x")], AS_MANY, "append"),
        ("delete_partition", [("a", "p", 3, "x")], AS_MANY, "append"),
        ("insert", [("c", "p", 3, None)], NO_NULLS, "overwrite"),
    ]:
        with pytest.raises(ValidationError, match="rolled back"):
            save(operation, given, validators, mode)
        assert rows_of(path) == rows, operation
    assert HudiTable.for_path(str(path)).validate_metadata().num_rows == 0
    save("insert", [("c", "r", 3, "z"), ("d", "r", 3, "z")], AS_MANY, "overwrite")
    assert rows_of(path) == [("c", "r", 3, "z"), ("d", "r", 3, "z")]
    assert not staged_views(spark)


def test_files_of_retried_tasks_are_not_validated(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    validate = write_commit.validate_before_commit

    def after_a_retry(job: WriteJob, tx: Transaction, metadata: CommitMetadata) -> None:
        for name in metadata.stats["path"].to_pylist():
            another = f"0{name[1:]}" if name[0] != "0" else f"1{name[1:]}"
            tx.markers.create("", another, IOType.CREATE)
            tx.storage.create(another, tx.storage.read(name))
        validate(job, tx, metadata)

    monkeypatch.setattr(write_commit, "validate_before_commit", after_a_retry)
    path = tmp_path / "t"
    given = {
        "hoodie.table.name": "t",
        "hoodie.datasource.write.recordkey.field": "id",
        "hoodie.datasource.write.operation": "insert",
        _VALIDATORS: f"{_PACKAGE}SqlQuerySingleResultPreCommitValidator",
        f"{_VALIDATORS}.single.value.sql.queries": "select count(*) from <TABLE_NAME>#1",
    }
    write(frame(spark, [("a", "p", 1, "x")]), str(path), given, "append")
    assert rows_of(path) == [("a", "p", 1, "x")]
