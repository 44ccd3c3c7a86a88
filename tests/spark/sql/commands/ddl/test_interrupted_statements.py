"""Statements whose process dies: the catalog and the files then, and the same statement again."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from pyhudi import HudiTable
from pyhudi.errors import TableExistsError
from pyhudi.spark.sql import catalog_registration
from pyhudi.spark.sql.catalog import find_table
from pyhudi.spark.sql.commands.ddl import alter_table
from tests.cases import classic
from tests.fault_injection import Killed
from tests.file_effects import effects_below, places
from tests.spark.sql.ride_tables import rows

pytest.importorskip("sqlglot")

pytestmark = [classic, pytest.mark.usefixtures("database")]

CREATE = "CREATE TABLE t USING hudi TBLPROPERTIES (primaryKey = 'id') AS SELECT 1 AS id, 'a' AS v"


@contextmanager
def dying_before(monkeypatch: pytest.MonkeyPatch, number: int) -> Iterator[list[str]]:
    """The process dies before its ``number``-th change of the catalog (from 1). Gives the changes."""
    changes: list[str] = []
    inner = catalog_registration.spark_sql

    def count(spark: Any, text: str, *more: Any) -> Any:
        if len(changes) + 1 >= number:
            raise Killed(text)
        changes.append(text)
        return inner(spark, text, *more)

    with monkeypatch.context() as patched, suppress(Killed):
        patched.setattr(catalog_registration, "spark_sql", count)
        yield changes


def location(spark: Any, name: str) -> str:
    path: str = spark.sql(f"SHOW TBLPROPERTIES {name} ('path')").first()["value"]
    return path.removeprefix("file:")


def names(spark: Any) -> list[str]:
    return [row.tableName for row in spark.sql("SHOW TABLES").collect()]


def test_a_rename_that_dies(spark: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The rows are there under one of the names, writes go on, and the record index stays."""
    spark.sql(CREATE.replace("'id'", "'id', 'hoodie.metadata.record.index.enable' = 'true'"))
    path = Path(location(spark, "t"))
    kept = Path(shutil.copytree(path, path.with_name("kept")))
    with effects_below(path) as watched:
        spark.sql("ALTER TABLE t RENAME TO u")
    inner = alter_table.rename
    for nth in places(len(watched.seen), 2):
        shutil.rmtree(path)
        shutil.copytree(kept, path)
        renamed = find_table(spark, ("u",))
        if renamed is not None:
            inner(spark, renamed, ("shop", "t"))
        with effects_below(path, fail_at=nth) as dying, suppress(Killed), monkeypatch.context() as patched:

            def rename(*given: Any, dying: Any = dying) -> Any:
                if dying.dead:
                    raise Killed("a dead process renames nothing back")
                return inner(*given)

            patched.setattr(alter_table, "rename", rename)
            spark.sql("ALTER TABLE t RENAME TO u")
        assert names(spark) == ["u"], nth
        assert rows(spark, "SELECT id, v FROM u") == [(1, "a")], nth
        spark.sql("INSERT INTO u VALUES (2, 'b')")
        assert rows(spark, "SELECT id, v FROM u") == [(1, "a"), (2, "b")], nth
        assert HudiTable.for_path(str(path)).validate_metadata().num_rows == 0, nth
        assert "record_index" in HudiTable.for_path(str(path)).config.metadata_partitions, nth


def test_a_table_of_a_query_whose_statement_dies(spark: Any, tmp_path: Path) -> None:
    """The table has all rows or none; the same statement says what to do if it is there."""
    create = CREATE.replace("AS SELECT", "LOCATION '{}' AS SELECT")
    with effects_below(tmp_path) as watched:
        spark.sql(create.format(tmp_path / "whole"))
    for nth in places(len(watched.seen), 2):
        spark.sql("DROP TABLE IF EXISTS t")
        place = tmp_path / f"copy{nth}"
        with effects_below(place, fail_at=nth), suppress(Killed):
            spark.sql(create.format(place))
        if HudiTable.exists(str(place)) and "t" not in names(spark):
            with pytest.raises(TableExistsError, match=r"AS would overwrite.*register it with LOCATION.*delete its"):
                spark.sql(create.format(place))
            spark.sql(f"CREATE TABLE t USING hudi LOCATION '{place}'")
            if rows(spark, "SELECT id FROM t") != [(1,)]:
                spark.sql("INSERT OVERWRITE t SELECT 1, 'a'")
        elif "t" not in names(spark):
            spark.sql(create.format(place))
        assert rows(spark, "SELECT id, v FROM t") == [(1, "a")], nth
        assert not HudiTable.for_path(str(place)).services.delete_orphan_files(dry_run=True).num_rows


def test_a_replacement_in_another_place_that_dies(spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The name stands for the old table or the new one, and no files of it are missing."""
    for number in (1, 2):
        spark.sql(CREATE)
        old, place = location(spark, "t"), tmp_path / f"new{number}"
        with dying_before(monkeypatch, number) as changes:
            spark.sql(f"CREATE OR REPLACE TABLE t USING hudi LOCATION '{place}' AS SELECT 2 AS id, 'b' AS v")
        assert len(changes) == number - 1
        assert rows(spark, "SELECT id, v FROM t") == ([(1, "a")] if number == 1 else [(2, "b")])
        assert HudiTable.exists(old) == (number == 1)
        spark.sql("DROP TABLE t PURGE")


def test_a_replacement_in_the_same_place_that_dies(spark: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    spark.sql(CREATE)
    replace = "CREATE OR REPLACE TABLE t USING hudi AS SELECT 2 AS n"
    with dying_before(monkeypatch, 1):
        spark.sql(replace)
    assert rows(spark, "SELECT n FROM t") == [(2,)]
    spark.sql(replace)
    assert rows(spark, "SELECT n FROM t") == [(2,)]


def test_a_drop_that_dies(spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """There is the table, or none; its files can be registered again, or there is no table."""
    create = CREATE.replace("AS SELECT", f"LOCATION '{tmp_path / 't'}' AS SELECT")
    spark.sql(create)
    with dying_before(monkeypatch, 1):
        spark.sql("DROP TABLE t PURGE")
    assert rows(spark, "SELECT id FROM t") == [(1,)]
    kept = Path(shutil.copytree(tmp_path / "t", tmp_path / "kept"))
    with effects_below(tmp_path / "t") as watched:
        spark.sql("DROP TABLE t PURGE")
    for nth in places(len(watched.seen), 2):
        shutil.rmtree(tmp_path / "t", ignore_errors=True)
        shutil.copytree(kept, tmp_path / "t")
        (tmp_path / "t/.hoodie/hoodie.properties.backup").write_bytes(
            (kept / ".hoodie/hoodie.properties").read_bytes()  # of an interrupted rewrite
        )
        spark.sql(f"CREATE TABLE t USING hudi LOCATION '{tmp_path / 't'}'")
        with effects_below(tmp_path / "t", fail_at=nth), suppress(Killed):
            spark.sql("DROP TABLE t PURGE")
        assert names(spark) == []
        if HudiTable.exists(str(tmp_path / "t")):
            spark.sql(f"CREATE TABLE t USING hudi LOCATION '{tmp_path / 't'}'")
            assert rows(spark, "SELECT id FROM t") == [(1,)], nth
            spark.sql("DROP TABLE t PURGE")
        else:
            with suppress(TableExistsError):  # choose an empty location, or delete the files
                spark.sql(create)
                assert rows(spark, "SELECT id FROM t") == [(1,)], nth
                spark.sql("DROP TABLE t PURGE")
