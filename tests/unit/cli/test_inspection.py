"""Commands that show tables print what the API returns."""

from __future__ import annotations

import csv
import io
import json
import shutil
from pathlib import Path

import pytest

from pyhudi import HudiTable
from pyhudi.metadata.metadata_layout import FILES
from pyhudi.read.inspection.instant_export import EXPORTED_ACTIONS
from tests.golden.expected import unpack
from tests.unit.cli.runner import json_rows, pyhudi

CLEANED, MERGED, RESTORED = "v6_cow_nonpart_clean", "v9_mor_meta_all", "v9_mor_cluster_restore"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("golden")


@pytest.fixture
def table(folder: Path) -> HudiTable:
    return HudiTable.for_path(str(unpack(MERGED, folder).path))


@pytest.fixture
def path(folder: Path) -> Path:
    return unpack(MERGED, folder).path


def test_description(table: HudiTable, path: Path) -> None:
    (found,) = json_rows("table", "describe", path)
    assert found == table.detail()
    text = pyhudi("table", "describe", path).stdout
    assert "MERGE_ON_READ" in text
    assert "properties" not in text
    rows = list(csv.DictReader(io.StringIO(pyhudi("table", "describe", path, "--output", "csv").stdout)))
    assert {"name": "table_version", "value": "9"} in rows


def test_columns_and_properties(table: HudiTable, path: Path) -> None:
    listed = json_rows("columns", "list", path)
    assert [row["column"] for row in listed] == table.schema.names
    assert listed[0] == {"column": "_hoodie_commit_time", "type": "string", "nullable": True, "comment": None}
    assert "bigint" in {row["type"] for row in listed}
    (properties,) = json_rows("table", "properties", path)
    assert properties == dict(table.config.properties)
    assert "hoodie.table.name" in pyhudi("table", "properties", path).stdout


def test_report(path: Path) -> None:
    assert "Instants (newest" in pyhudi("table", "report", path).stdout


def test_commits(table: HudiTable, path: Path) -> None:
    history = table.history().to_pylist()
    writes = [row for row in history if row["action"] != "indexing"]
    assert json_rows("commits", "list", path) == writes
    assert json_rows("commit", "list", path, "--limit", 2) == writes[:2]
    text = pyhudi("commits", "list", path, "--limit", 2, width=80).stdout
    assert f"(first 2 of {len(writes)}; --limit 0 prints all)" in text
    assert all(len(line) <= 80 for line in text.splitlines())
    (found,) = json_rows("commits", "show", path, writes[0]["requested"])
    assert found == writes[0]
    assert "inserted" in pyhudi("commits", "show", path, writes[0]["requested"]).stdout


def test_files_of_a_commit(table: HudiTable, path: Path) -> None:
    files = table.inspect.commits().to_pylist()
    instant = files[0]["requested"]
    mine = [row for row in files if row["requested"] == instant]
    assert json_rows("commits", "files", path, instant) == mine
    by_partition = json_rows("commits", "partitions", path, instant)
    assert sum(row["files"] for row in by_partition) == len(mine)
    assert sum(row["rows_written"] for row in by_partition) == sum(row["rows_written"] for row in mine)


def test_instants_are_also_readable(path: Path) -> None:
    instant = json_rows("commits", "list", path)[0]["requested"]
    day, time = f"{instant[:4]}-{instant[4:6]}-{instant[6:8]}", f"{instant[8:10]}:{instant[10:12]}:{instant[12:14]}"
    readable = f"{day} {time}.{instant[14:]}"
    assert json_rows("commits", "show", path, readable)[0]["requested"] == instant
    assert f"{day} {time}" in pyhudi("timeline", "show", path, instant).stdout


def test_timeline(table: HudiTable, path: Path) -> None:
    history = table.history(archived=True).to_pylist()
    assert json_rows("timeline", "list", path, "--archived") == history
    assert {row["action"] for row in json_rows("timeline", "list", path, "--action", "indexing")} == {"indexing"}
    assert "(nothing is pending)" in pyhudi("timeline", "pending", path).stdout


def test_pending_instants(folder: Path) -> None:
    path = unpack(RESTORED, folder).path
    assert [row["action"] for row in json_rows("timeline", "pending", path)] == ["clustering"]
    assert (
        len(json_rows("clustering", "list", path))
        == HudiTable.for_path(str(path)).services.pending_clusterings()[0].num_slices
    )


def test_deletions(folder: Path) -> None:
    path = unpack(CLEANED, folder).path
    inspect = HudiTable.for_path(str(path)).inspect
    cleans = json_rows("clean", "list", path)
    assert cleans == inspect.deletions().to_pylist()
    files = json_rows("clean", "show", path, cleans[0]["requested"])
    assert files == inspect.deleted_files(cleans[0]["requested"]).to_pylist()
    assert len(files) == cleans[0]["files_deleted"] > 0
    assert json_rows("timeline", "deletions", path) == cleans
    assert "retained from" in pyhudi("clean", "list", path).stdout


def test_files_and_slices(table: HudiTable, path: Path) -> None:
    files = table.inspect.files().to_pylist()
    partition = files[-1]["partition"]
    assert json_rows("files", "list", path) == files
    mine = [row for row in files if row["partition"] == partition]
    assert json_rows("files", "list", path, "--partition", partition) == mine
    assert json_rows("files", "slices", path) == table.inspect.file_slices().to_pylist()
    every = table.inspect.file_slices(all_versions=True)
    assert len(json_rows("files", "slices", path, "--all-versions")) == len(every)


def test_log_blocks(table: HudiTable, path: Path) -> None:
    blocks = table.inspect.log_blocks().to_pylist()
    assert json_rows("files", "log-blocks", path) == blocks
    assert blocks
    assert {row["type"] for row in blocks} <= {"AVRO_DATA", "PARQUET_DATA", "DELETE", "COMMAND"}
    assert "(no log files)" in pyhudi("files", "log-blocks", path, "nowhere/*").stdout


def test_partitions(table: HudiTable, path: Path) -> None:
    assert json_rows("partitions", "list", path) == table.inspect.partitions().to_pylist()
    assert "file groups" in pyhudi("partitions", "list", path, width=80).stdout


def test_metadata_table(table: HudiTable, path: Path) -> None:
    assert json_rows("metadata", "list", path) == table.inspect.metadata_partitions().to_pylist()
    assert FILES in {row["index"] for row in json_rows("index", "list", path)}
    assert "lists the files of the storage" in pyhudi("metadata", "validate", path).stdout


def test_a_table_without_rows(tmp_path: Path) -> None:
    HudiTable.create(str(tmp_path / "new"), {"hoodie.table.name": "new"})
    for command in (
        ["scan"],
        ["commits", "list"],
        ["files", "log-records"],
        ["partitions", "list"],
        ["table", "report"],
    ):
        pyhudi(*command, tmp_path / "new")
    assert "(no rows)" in pyhudi("lookup", tmp_path / "new", "1").stdout
    assert "(no metadata table)" in pyhudi("metadata", "validate", tmp_path / "new").stdout


def test_differences_of_the_metadata_table_are_an_error(tmp_path: Path) -> None:
    path = unpack(MERGED, tmp_path).path
    lost = HudiTable.for_path(str(path)).inspect.files()["path"][0].as_py()
    (path / lost).unlink()
    (found,) = json_rows("metadata", "validate", path, code=1)
    assert found["path"] == lost


def test_indexes_are_compared_with_rows_on_spark_only(path: Path) -> None:
    assert "--spark" in pyhudi("metadata", "validate", path, "--indexes", code=1).stderr


def test_statistics(table: HudiTable, path: Path) -> None:
    assert json_rows("stats", "file-sizes", path) == table.inspect.file_sizes().to_pylist()
    assert json_rows("stats", "write-amplification", path) == table.inspect.write_amplification().to_pylist()
    assert "ALL" in pyhudi("stats", "file-sizes", path).stdout


def test_savepoints(folder: Path) -> None:
    path = unpack(RESTORED, folder).path
    expected = HudiTable.for_path(str(path)).services.savepoints().to_pylist()
    assert json_rows("savepoints", "list", path) == expected
    assert expected


def test_options() -> None:
    found = json_rows("options", "search", "clean", "RETAINED")
    assert "hoodie.clean.commits.retained" in {row["key"] for row in found}
    (one,) = json_rows("options", "show", "hoodie.cleaner.commits.retained")
    assert one["key"] == "hoodie.clean.commits.retained"
    assert "no option has these words" in pyhudi("options", "search", "nowhere").stdout


def test_log_records(table: HudiTable, path: Path) -> None:
    records = table.inspect.log_records().read_all()
    assert json_rows("files", "log-records", path) == records.to_pylist()
    data = [row for row in table.inspect.log_blocks().to_pylist() if row["type"].endswith("_DATA")]
    assert records.num_rows == sum(row["records"] for row in data) > 0
    names = set(table.schema.names)
    assert all(set(json.loads(text)) <= names for text in records["record"].to_pylist())
    some = data[0]["path"]
    assert {row["path"] for row in json_rows("files", "log-records", path, some, "--limit", 1)} == {some}
    assert "(no records in log files)" in pyhudi("files", "log-records", path, "nowhere/*").stdout


def test_files_of_all_commits(table: HudiTable, path: Path) -> None:
    files = table.inspect.commits().to_pylist()
    assert json_rows("commits", "files", path) == files
    group, partition = files[0]["file_id"], files[0]["partition"]
    mine = [row for row in files if row["file_id"] == group]
    assert json_rows("commits", "files", path, "--file-group", group) == mine
    mine = [row for row in files if row["partition"] == partition]
    assert json_rows("commits", "files", path, "--partition", partition) == mine
    assert "instant" in pyhudi("commits", "files", path).stdout.splitlines()[0]
    in_a_pipe = pyhudi("commits", "files", path, width=None).stdout
    assert all(file["path"].rpartition("/")[2] in in_a_pipe for file in files)


def test_commits_of_two_tables(path: Path, tmp_path: Path) -> None:
    assert "(both tables have the same writes)" in pyhudi("commits", "compare", path, path).stdout
    copy = tmp_path / "copy"
    shutil.copytree(path, copy)
    last = json_rows("commits", "list", path, "--limit", 1)[0]["requested"]
    for file in (copy / ".hoodie" / "timeline").glob(f"{last}*"):
        file.unlink()
    for pair in ((path, copy), (copy, path)):
        assert [(row["requested"], row["only_in"]) for row in json_rows("commits", "compare", *pair)] == [
            (last, str(path))
        ]


def test_export_of_instants(table: HudiTable, path: Path, tmp_path: Path) -> None:
    done = [row for row in table.history(archived=True).to_pylist() if row["state"] == "COMPLETED"]
    deltas = [row["requested"] for row in done if row["action"] == "deltacommit"]
    folder = tmp_path / "new" / "exported"
    (facts,) = json_rows("timeline", "export", path, folder, "--actions", "deltacommit")
    assert facts == {"folder": str(folder), "instants": len(deltas)}
    assert sorted(file.name[:17] for file in folder.iterdir()) == sorted(deltas)
    assert all("partitionToWriteStats" in json.loads(file.read_text()) for file in folder.iterdir())
    assert json_rows("timeline", "export", path, tmp_path / "one", "--limit", 1)[0]["instants"] == 1
    newest = max(row["requested"] for row in done if row["action"] in EXPORTED_ACTIONS)
    assert [file.name[:17] for file in (tmp_path / "one").iterdir()] == [newest]
    assert (
        "cannot be created"
        in pyhudi("timeline", "export", path, path / ".hoodie" / "hoodie.properties" / "x", code=1).stderr
    )
