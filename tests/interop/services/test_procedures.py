"""The same CALLs on Apache Hudi and here, on copies of a table: the same columns, and rows where times do not count."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from pyhudi.sql.procedure_signatures import signatures
from tests.interop.harness.oracle import Oracle

pytest.importorskip("sqlglot")

Call = tuple[list[tuple[str, str]], list[tuple]]
_TYPES = {"string": "string", "int32": "int", "int64": "bigint", "double": "double", "bool": "boolean"}
SAME_ROWS = [
    "show_commits(table => '{t}')",
    "show_commits_metadata(table => '{t}', limit => 100)",
    "show_commit_files(table => '{t}', instant_time => '{second}')",
    "show_commit_partitions(table => '{t}', instant_time => '{second}')",
    "show_commit_write_stats('{t}', 10, '{second}')",
    "show_commit_extra_metadata(table => '{t}', metadata_key => 'schema')",
    "stats_wa('{t}')",
    "stats_file_sizes(table => '{t}')",
    "stats_file_sizes(table => '{t}', partition_path => 'city=M*')",
    "show_table_properties(path => '{path}', limit => 100)",
    "show_timeline(table => '{t}', filter => \"action = 'nothing'\")",
    "show_metadata_table_partitions(table => '{t}')",
    "show_metadata_table_files(table => '{t}', partition => 'city=Oslo')",
    "show_metadata_table_column_stats(table => '{t}', targetColumns => 'id,name', partition => 'city=Moss')",
    "validate_metadata_table_files(table => '{t}')",
    "validate_metadata_table_files(table => '{t}', verbose => true)",
    "show_invalid_parquet(path => '{path}')",
    "show_file_status(table => '{t}', partition => 'city=Oslo', file => 'none.parquet')",
    "show_archived_commits('{t}')",
    "show_archived_commits_metadata('{t}')",
    "create_savepoint('{t}', '{second}')",
    "create_savepoint(table => '{t}', commit_time => '{third}', user => 'ann', comments => 'why')",
    "show_savepoints('{t}')",
    "delete_savepoint(table => '{t}', instant_time => '{third}')",
    "rollback_to_savepoint(table => '{t}', instant_time => '{second}')",
    "show_commits('{t}')",
    "delete_savepoint(table => '{t}')",
    "rollback_to_instant('{t}', '{second}')",
    "show_commits('{t}')",
    "archive_commits(table => '{t}')",
    "delete_marker(table => '{t}', instant_time => '{second}')",
    "copy_to_table(table => '{t}', new_table => '{t}_copied')",
]
SAME_COLUMNS = [
    "show_timeline('{t}')",
    "show_rollbacks('{t}')",
    "show_fsview_latest('{t}')",
    "show_fsview_all('{t}')",
    "show_fs_path_detail(path => '{path}', is_sub => true)",
    "show_metadata_table_stats('{t}')",
    "show_metadata_column_stats_overlap('{t}')",
    "run_clustering(table => '{t}', show_involved_partition => true, order => 'ID,name', order_strategy => 'z-order')",
    "show_clustering('{t}')",
    "run_clean(table => '{t}', clean_policy => 'KEEP_LATEST_FILE_VERSIONS', file_versions_retained => 1)",
    "show_cleans('{t}')",
    "show_cleans_metadata('{t}')",
    "show_clean_plans('{t}')",
    "show_clean_plans(table => '{t}', filter => \"policy = 'KEEP_LATEST_FILE_VERSIONS'\")",
    "show_fsview_all(table => '{t}', path_regex => 'city=M*', filter => 'num_delta_files = 0')",
    "show_fsview_latest(table => '{t}', max_instant => '{second}', include_max => true)",
    "show_fsview_latest(table => '{t}', max_instant => '{second}')",
    "commits_compare('{t}', '{path}')",
    "help()",
]
SIZED = {"hdfs_parquet_import"}
"""Procedures with a default that depends on the machine."""
METADATA = (
    "SELECT key, type, array_join(array_sort(map_keys(filesystemMetadata)), ',') AS files, "
    "ColumnStatsMetadata.valueCount AS n, "
    "ColumnStatsMetadata.minValue.member6.value AS least, recordIndexMetadata.partitionName AS place "
    "FROM hudi_metadata('{path}') ORDER BY key, type"
)
LAST = [
    "repair_migrate_partition_meta(table => '{t}')",
    "repair_migrate_partition_meta(table => '{t}', dry_run => false)",
    "repair_corrupted_clean_files(table => '{t}')",
    "repair_overwrite_hoodie_props(table => '{t}', new_props_file_path => '{props}')",
    "downgrade_table(table => '{t}', to_version => 'EIGHT')",
    "upgrade_table(table => '{t}', to_version => 'NINE')",
]


@pytest.mark.parametrize("oracle", ["1.2.0"], indirect=True)
def test_the_same_parameters(oracle: Oracle) -> None:
    """Of every procedure, in the order in which arguments by position are taken."""
    for name, signature in signatures().items():
        ((text,),) = (row.values() for row in oracle.sql(f"CALL help(cmd => '{name}')").to_pylist())
        lines = text.partition("outputType:")[0].splitlines()[2:]
        theirs = [[cell.strip() for cell in line.split("\t")[1:5]] for line in lines if line.strip()]
        ours = [[p.name, p.kind, p.default or "", str(p.required).lower()] for p in signature.parameters]
        absent = {"null": "", "None": ""}
        theirs = [[head, kind, absent.get(default, default), needed] for head, kind, default, needed in theirs]
        if name in SIZED:
            ours, theirs = ([row[:2] for row in rows] for rows in (ours, theirs))
        assert ours == theirs, name


@pytest.mark.parametrize("oracle", ["1.2.0"], indirect=True)
def test_the_same_calls(oracle: Oracle, spark: SparkSession, tmp_path: Path) -> None:
    def theirs(text: str) -> Call:
        found = oracle.sql(text)
        schema = [(field.name, _TYPES[str(field.type)]) for field in found.schema]
        return schema, [tuple(row.values()) for row in found.to_pylist()]

    def ours(text: str) -> Call:
        found = spark.sql(text)
        schema = [(field.name, field.dataType.simpleString()) for field in found.schema.fields]
        return schema, [tuple(row) for row in found.collect()]

    made, copied = tmp_path / "theirs", tmp_path / "ours"
    oracle.sql(
        "CREATE TABLE called (id INT, name STRING, ts BIGINT, city STRING) USING hudi TBLPROPERTIES (primaryKey = "
        f"'id', preCombineField = 'ts', type = 'cow') PARTITIONED BY (city) LOCATION '{made}'"
    )
    oracle.sql("INSERT INTO called VALUES (1, 'a', 1, 'Oslo'), (2, 'b', 1, 'Moss')")
    oracle.sql("UPDATE called SET name = 'c' WHERE id = 1")
    oracle.sql("INSERT INTO called VALUES (3, 'd', 1, 'Moss')")
    _, second, third = sorted(row[0] for row in theirs("CALL show_commits('called')")[1])
    shutil.copytree(made, copied)
    props = tmp_path / "new.properties"
    text = (made / ".hoodie" / "hoodie.properties").read_text()
    props.write_text(f"{text}\nhoodie.partition.metafile.use.base.format=true\nmy.own=1\n")
    spark.sql(f"CREATE TABLE called USING hudi LOCATION '{copied}'")
    records = METADATA.format(path=made)
    assert [tuple(row) for row in spark.sql(records).collect()] == theirs(records)[1]
    assert spark.sql(f"SELECT * FROM hudi_metadata('{copied}')").columns == [
        row[0] for row in theirs(f"DESCRIBE (SELECT * FROM hudi_metadata('{made}'))")[1]
    ]
    sides: list[tuple[Callable[[str], Call], dict[str, Any]]] = [
        (run, {"t": "called", "path": path, "second": second, "third": third, "props": props})
        for run, path in ((theirs, made), (ours, copied))
    ]
    try:
        for text in (*SAME_ROWS, *SAME_COLUMNS, *LAST):
            (columns, rows), (our_columns, our_rows) = (run("CALL " + text.format(**names)) for run, names in sides)
            assert our_columns == columns, text
            assert bool(our_rows) == bool(rows) or text.startswith("show_metadata"), text
            if text not in SAME_COLUMNS:
                assert sorted(our_rows, key=repr) == sorted(rows, key=repr), text
        left = sorted(ours("SELECT id, name, ts, city FROM called")[1])
        assert left == [(1, "a", 1, "Oslo"), (2, "b", 1, "Moss")]
        for path in (made, copied):
            found = oracle.read(path, columns=["id", "name", "ts", "city"])
            assert sorted(tuple(row.values()) for row in found.to_pylist()) == left
    finally:
        for table in ("called", "called_copied"):
            spark.sql(f"DROP TABLE IF EXISTS {table}")
