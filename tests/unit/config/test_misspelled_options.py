"""Options that decide what a table becomes are not overheard when they are misspelt."""

from __future__ import annotations

import pytest

from pyhudi import HudiTable
from pyhudi.config.misspelled_options import (
    refuse_dynamic_overwrite,
    refuse_misspelled,
    refuse_misspelled_query,
    refuse_other_formats,
)
from pyhudi.errors import ConfigError, OptionWithoutEffectWarning, QueryError
from pyhudi.spark.read.load_table import load_table

RECORDKEY = "hoodie.datasource.write.recordkey.field"
BEGIN = "hoodie.datasource.read.begin.instanttime"
QUERY_TYPE = "hoodie.datasource.query.type"


@pytest.mark.parametrize(
    ("key", "meant"),
    [
        ("hoodie.datasource.write.recordkey.filed", RECORDKEY),
        ("hoodie.datasource.write.recordkey.fields", RECORDKEY),
        ("Hoodie.datasource.write.recordKey.filed", RECORDKEY),
        ("datasource.write.recordkey.field", RECORDKEY),
        ("hodie.datasource.write.recordkey.field", RECORDKEY),
        ("hoodie.datasource.write.partitionpath.fields", "hoodie.datasource.write.partitionpath.field"),
        ("hoodie.datasource.write.precombine.fields", "hoodie.datasource.write.precombine.field"),
        ("hoodie.datasource.write.opertion", "hoodie.datasource.write.operation"),
        ("hoodie.table.nmae", "hoodie.table.name"),
        ("primaryKey", RECORDKEY),
        ("primarykey", RECORDKEY),
        ("primaryKeys", RECORDKEY),
        ("primary_key", RECORDKEY),
        ("recordKey", RECORDKEY),
        ("recordkey.field", RECORDKEY),
        ("preCombineField", "hoodie.datasource.write.precombine.field"),
        ("preCombineFields", "hoodie.datasource.write.precombine.field"),
        ("type", "hoodie.datasource.write.table.type"),
        ("table.type", "hoodie.datasource.write.table.type"),
        ("operation", "hoodie.datasource.write.operation"),
    ],
)
def test_refused(key: str, meant: str) -> None:
    with pytest.raises(ConfigError, match=f"{key}.*did you mean '{meant}'"):
        refuse_misspelled({key: "id"})


@pytest.mark.parametrize(
    "key",
    [
        RECORDKEY,
        "hoodie.datasource.write.recordKey.field",
        "hoodie.table.recordkey.fields",
        "hoodie.datasource.write.storage.type",
        "hoodie.index.tpye",
        "hoodie.datasource.hive_sync.tabel",
        "path",
        "_my_key",
        "mergeSchema",
        "comment",
        "field",
        "name",
        "types",
    ],
)
def test_left_to_the_warning_or_to_others(key: str) -> None:
    refuse_misspelled({key: "x"})


def test_before_a_table_is_made(tmp_path) -> None:
    with pytest.raises(ConfigError, match="recordkey"):
        HudiTable.create(str(tmp_path / "t"), {"hoodie.table.name": "t", f"{RECORDKEY}s": "id"})
    assert not (tmp_path / "t").exists()


@pytest.mark.parametrize(
    ("key", "value", "cure"),
    [
        ("versionAsOf", 0, "as.of.instant"),
        ("timestampAsOf", "2020-01-01", "as.of.instant"),
        ("replaceWhere", "p = 'y'", "insert_overwrite"),
        ("partitionOverwriteMode", "dynamic", "insert_overwrite"),
        ("readChangeFeed", "true", "query.incremental.format=cdc"),
        ("startingVersion", 1, "begin.instanttime"),
        ("start-snapshot-id", 1, "begin.instanttime"),
        ("branch", "audit", "as.of.instant"),
        ("txnAppId", "nightly", "a repeated upsert"),
    ],
)
def test_options_of_other_formats_that_choose_rows(key: str, value: object, cure: str) -> None:
    for check in (refuse_misspelled, refuse_other_formats):
        with pytest.raises(ConfigError, match=f"{key}={value} is no option of Hudi tables.*{cure}"):
            check({key: value})
    refuse_other_formats({"partitionOverwriteMode": "static", "mergeSchema": "true", "readChangeFeed": "false"})


def test_options_of_other_formats_in_queries(tmp_path) -> None:
    with pytest.raises(ConfigError, match=r"as\.of\.instant"):
        load_table(None, str(tmp_path), {"versionAsOf": "0"})


@pytest.mark.parametrize(
    ("key", "meant"),
    [
        ("as.of.instnt", "as.of.instant"),
        ("asOfInstant", "as.of.instant"),
        ("hoodie.datasource.read.begin.instantime", BEGIN),
        ("begin.instanttime", BEGIN),
        ("query.type", QUERY_TYPE),
        ("hoodie.datasource.query.typ", QUERY_TYPE),
    ],
)
def test_misspelt_options_that_choose_rows(key: str, meant: str) -> None:
    with pytest.raises(ConfigError, match=f"{key}.*did you mean '{meant}'"):
        refuse_misspelled_query({key: "incremental"})


def test_a_range_without_an_incremental_query() -> None:
    for key in (BEGIN, "hoodie.datasource.read.end.instanttime", BEGIN.upper()):
        with pytest.raises(QueryError, match=f"{key}=0 .*{QUERY_TYPE} is not 'incremental'.*as.of.instant"):
            refuse_misspelled_query({key: "0"})
        refuse_misspelled_query({key: "0", QUERY_TYPE: "incremental"})
        refuse_misspelled_query({key: "0"}, {QUERY_TYPE: "incremental"})
        refuse_misspelled_query({}, {key: "0"})
    with pytest.raises(QueryError, match="is not 'incremental'"):
        refuse_misspelled_query({BEGIN: "0", QUERY_TYPE: "snapshot"}, {QUERY_TYPE: "incremental"})
    refuse_misspelled_query({"mergeSchema": "true", "as.of.instant": "2024-01-01", "hoodie.metadata.enable": "false"})


def test_a_write_by_path_replaces_no_single_partitions():
    partitions = {"hoodie.datasource.write.partitionpath.field": "p"}
    refuse_dynamic_overwrite({"hoodie.datasource.overwrite.mode": "STATIC", **partitions}, "dynamic")
    refuse_dynamic_overwrite({}, "dynamic")
    refuse_dynamic_overwrite(partitions, "static")
    with pytest.warns(OptionWithoutEffectWarning, match=r"whole table, whatever .*=insert_overwrite"):
        refuse_dynamic_overwrite(partitions, "DYNAMIC")
    with pytest.raises(ConfigError, match=r"no effect on a write by path: .*insert_overwrite"):
        refuse_dynamic_overwrite({"hoodie.datasource.overwrite.mode": "dynamic"}, "static")
