"""Commands that change tables: plans, questions, effects."""

from __future__ import annotations

import shutil
from pathlib import Path
from types import SimpleNamespace

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pyhudi import HudiTable
from tests.golden.expected import unpack
from tests.unit.cli.runner import json_rows, pyhudi
from tests.unit.services.merge_on_read_table import FILE_IDS, MorTable, row

ONE_VERSION = (
    "-o",
    "hoodie.clean.policy=KEEP_LATEST_FILE_VERSIONS",
    "-o",
    "hoodie.clean.fileversions.retained=1",
)
NO_SKEW = ("-o", "hoodie.time.generator.max_expected_clock_skew_ms=0")


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> MorTable:
    mor = MorTable(tmp_path_factory.mktemp("written") / "t")
    mor.load([row(f"{p}{n}", p, 0, "x") for p in FILE_IDS for n in range(3)])
    mor.delta([row("a0", "a", 1, "y"), row("b0", "b", 1, "y")])
    mor.delta([row("a0", "a", 2, "z")])
    return mor


@pytest.fixture
def made(written: MorTable, tmp_path: Path) -> MorTable:
    return MorTable(Path(shutil.copytree(written.root, tmp_path / "t")))


@pytest.fixture
def at_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pyhudi.cli.effects.is_terminal", lambda stream: stream == "stdin")


def test_compaction(made: MorTable) -> None:
    text = pyhudi("compaction", "plan", made.root).stdout
    assert "2 file slices in 2 partitions" in text
    assert not json_rows("compaction", "list", made.root)
    (first, _) = json_rows("compaction", "schedule", made.root, *NO_SKEW)
    assert len(json_rows("compaction", "list", made.root)) == 2
    assert first["instant"] in pyhudi("compaction", "list", made.root).stdout
    (done,) = json_rows("compaction", "run", made.root, first["instant"], *NO_SKEW)
    assert (done["instants"], done["num_log_files"]) == ([first["instant"]], 3)
    assert made.rows()["a0"]["v"] == "z"
    assert "nothing" in pyhudi("compaction", "run", made.root, *NO_SKEW).stdout


def test_log_compaction(made: MorTable) -> None:
    threshold = ("-o", "hoodie.log.compaction.blocks.threshold=2", *NO_SKEW)
    assert "1 file slices" in pyhudi("compaction", "plan", made.root, "--log", *threshold).stdout
    assert "2 log files merged" in pyhudi("compaction", "run", made.root, "--log", *threshold).stdout


def test_clustering(made: MorTable) -> None:
    assert "2 groups" in pyhudi("clustering", "plan", made.root).stdout
    (first, _) = json_rows("clustering", "schedule", made.root, *NO_SKEW)
    assert {plan["instant"] for plan in json_rows("clustering", "list", made.root)} == {first["instant"]}
    (done,) = json_rows("clustering", "run", made.root, "--pending", *NO_SKEW)
    assert done["num_replaced"] == 2
    assert made.rows()["a0"]["v"] == "z"


def test_cleaning(made: MorTable) -> None:
    pyhudi("compaction", "run", made.root, *NO_SKEW)
    before = set(made.root.rglob("*.parquet"))
    planned = json_rows("clean", "run", made.root, "--dry-run", *ONE_VERSION)
    assert planned
    assert set(made.root.rglob("*.parquet")) == before
    refused = pyhudi("clean", "run", made.root, *ONE_VERSION, code=2)
    assert "--yes" in refused.stderr
    (done,) = json_rows("clean", "run", made.root, "--yes", *ONE_VERSION, *NO_SKEW)
    assert done["counts"]["files"] == len(planned)
    assert "nothing to do" in pyhudi("clean", "run", made.root, "--dry-run", *ONE_VERSION).stdout


@pytest.mark.usefixtures("at_a_terminal")
def test_questions(made: MorTable) -> None:
    pyhudi("compaction", "run", made.root, *NO_SKEW)
    no = pyhudi("clean", "run", made.root, *ONE_VERSION, answer="n\n", code=1)
    assert "parquet" in no.stderr
    assert "Delete these files?" in no.stderr
    assert not no.stdout.removesuffix(" n\n")  # older releases of Click echo the answer there, in tests only
    yes = pyhudi("clean", "run", made.root, *ONE_VERSION, *NO_SKEW, answer="y\n")
    assert "files" in yes.stdout
    nothing = pyhudi("clean", "run", made.root, *ONE_VERSION, *NO_SKEW)
    assert "nothing to do" in nothing.stderr
    assert "Delete" not in nothing.stderr


def test_archival(made: MorTable) -> None:
    keep = (
        "-o",
        "hoodie.keep.min.commits=1",
        "-o",
        "hoodie.keep.max.commits=2",
        "-o",
        "hoodie.clean.commits.retained=1",
    )
    for n in range(3, 6):
        made.delta([row("a0", "a", n, "v")])
    pyhudi("compaction", "run", made.root, *NO_SKEW)
    pyhudi("clean", "run", made.root, "--yes", *ONE_VERSION, *NO_SKEW)
    planned = json_rows("archive", "run", made.root, "--dry-run", *keep)
    text = pyhudi("archive", "run", made.root, "--yes", *keep, *NO_SKEW).stdout
    assert "archive" in text
    left = {r["requested"] for r in json_rows("timeline", "list", made.root)}
    assert not left & {r["instant"] for r in planned}


def test_savepoint_restore_and_rollback(made: MorTable) -> None:
    _, second, third = (r["requested"] for r in reversed(json_rows("commits", "list", made.root)))
    pyhudi("savepoint", "create", made.root, second, "--user", "me", "--comment", "before", *NO_SKEW)
    (found,) = json_rows("savepoint", "list", made.root)
    assert (found["instant"], found["user"], found["comment"]) == (second, "me", "before")
    assert "before" in pyhudi("savepoint", "list", made.root).stdout
    assert [r["instant"] for r in json_rows("restore", made.root, second, "--dry-run")] == [third]
    assert "no restore is pending" in pyhudi("restore", made.root, "--dry-run", code=1).stderr
    pyhudi("restore", made.root, second, "--yes", *NO_SKEW)
    assert made.rows()["a0"]["v"] == "y"
    assert second in pyhudi("savepoint", "delete", made.root, second, "--dry-run").stdout
    pyhudi("savepoint", "delete", made.root, second, "--yes", *NO_SKEW)
    assert "UPSERT" in pyhudi("rollback", made.root, second, "--dry-run").stdout.upper()
    pyhudi("rollback", made.root, second, "--yes", *NO_SKEW)
    assert made.rows()["a0"]["v"] == "x"
    actions = [r["action"] for r in json_rows("timeline", "deletions", made.root)]
    assert actions == ["rollback", "restore"]


def test_indexes_and_metadata_table(made: MorTable) -> None:
    assert "exists" in pyhudi("index", "build", made.root, "column_stats", code=1).stderr
    assert "exists" in pyhudi("index", "build", made.root, "column_stats", "--if-not-exists").stdout
    pyhudi("metadata", "delete", made.root, "--yes", *NO_SKEW)
    assert "no metadata table" in pyhudi("metadata", "list", made.root).stdout
    (built,) = json_rows("metadata", "create", made.root, *NO_SKEW)
    assert "files" in built["partitions"]
    assert "already exists" in pyhudi("metadata", "create", made.root, code=1).stderr
    assert "would be built: bloom_filters" in pyhudi("index", "build", made.root, "bloom_filters", "--dry-run").stdout
    pyhudi("index", "build", made.root, "bloom_filters", *NO_SKEW)
    assert "bloom_filters" in {r["index"] for r in json_rows("index", "list", made.root)}
    assert "to drop: bloom_filters" in pyhudi("index", "drop", made.root, "bloom_filters", "--dry-run").stdout
    pyhudi("index", "drop", made.root, "bloom_filters", "--yes", *NO_SKEW)
    assert "bloom_filters" not in {r["index"] for r in json_rows("index", "list", made.root)}


def test_planned_indexes(made: MorTable) -> None:
    (plan,) = json_rows("index", "schedule", made.root, "bloom_filters", *NO_SKEW)
    planned = {r["index"]: r for r in json_rows("index", "list", made.root)}
    assert planned["bloom_filters"] == {"index": "bloom_filters", "state": "planned", "instant": plan["instant"]}
    assert "built: bloom_filters" in pyhudi("index", "run", made.root, *NO_SKEW).stdout


def test_expression_indexes(made: MorTable) -> None:
    of = ("lower_v", "--column", "v", "--using", "column_stats", "--index-option", "expr=lower")
    assert "would be built: expr_index_lower_v" in pyhudi("index", "build", made.root, *of, "--dry-run").stdout
    assert "is not KEY=VALUE" in pyhudi("index", "build", made.root, "x", "--index-option", "lower", code=2).stderr


def test_indexes_that_need_spark(made: MorTable) -> None:
    failed = pyhudi("index", "build", made.root, "record_index", code=1)
    assert "--spark 'local[*]'" in failed.stderr


def test_sessions_of_spark(made: MorTable, monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[tuple[str, dict[str, str]]] = []
    stopped: list[bool] = []

    def start(master: str, settings: dict[str, str]) -> SimpleNamespace:
        started.append((master, settings))
        return SimpleNamespace(stop=lambda: stopped.append(True))

    monkeypatch.setattr("pyhudi.cli.effects.start_session", start)
    pyhudi("compaction", "run", made.root, "--spark", "local[1]", "--spark-conf", "spark.x=1=2", *NO_SKEW)
    pyhudi("compaction", "run", made.root, "--spark", "sc://host", *NO_SKEW)
    assert started == [("local[1]", {"spark.ui.showConsoleProgress": "false", "spark.x": "1=2"}), ("sc://host", {})]
    assert len(stopped) == 2
    assert "--spark" in pyhudi("compaction", "run", made.root, "--spark-conf", "spark.x=1", code=2).stderr


def test_versions(tmp_path: Path) -> None:
    path = unpack("v6_cow_nonpart_clean", tmp_path).path
    (plan,) = json_rows("upgrade", path, "--dry-run")
    assert (plan["version"], plan["to"]) == (6, 9)
    assert "version 6 to 9:" in pyhudi("upgrade", path, "--dry-run").stdout
    assert pyhudi("upgrade", path, "--to", "Nine", "--dry-run").stdout == pyhudi("upgrade", path, "--dry-run").stdout
    assert "'NIN' is no table version" in pyhudi("upgrade", path, "--to", "NIN", "--dry-run", code=2).stderr
    pyhudi("upgrade", path, "--yes", *NO_SKEW)
    assert HudiTable.for_path(str(path)).config.version == 9
    assert "nothing to do" in pyhudi("upgrade", path, "--dry-run").stdout
    assert "version 9 to 8:" in pyhudi("downgrade", path, "--to", 8, "--dry-run").stdout


def test_repairs(made: MorTable) -> None:
    (made.root / "a" / ".hoodie_partition_metadata").unlink()
    pyhudi("repair", "partition-metadata", made.root, "--yes")
    assert (made.root / "a" / ".hoodie_partition_metadata").exists()
    assert not json_rows("repair", "orphans", made.root, "--dry-run")
    assert "all plans can be read" in pyhudi("repair", "clean-files", made.root, "--dry-run").stdout
    assert pyhudi("repair", "migrate-partition-metadata", made.root, "--dry-run").stdout
    pending = pyhudi("repair", "markers", made.root, json_rows("commits", "list", made.root)[0]["requested"])
    assert "deleted" in pending.stdout


def test_some_properties_are_changed(made: MorTable) -> None:
    (before,) = json_rows("table", "properties", made.root)
    change = ("--set", "hoodie.write.lock.client.num_retries=7", "--unset", "hoodie.table.nothing")
    shown = json_rows("repair", "properties", made.root, *change, "--dry-run")
    row = {"property": "hoodie.write.lock.client.num_retries", "old_value": None, "new_value": "7"}
    assert shown == [row]
    assert json_rows("table", "properties", made.root) == [before]
    assert json_rows("repair", "properties", made.root, *change, "--yes") == [row]
    assert json_rows("table", "properties", made.root)[0]["hoodie.write.lock.client.num_retries"] == "7"
    same = pyhudi("repair", "properties", made.root, *change, "--yes").stdout
    assert "the table has these properties already" in same
    gone = ("--unset", "hoodie.write.lock.client.num_retries")
    pyhudi("repair", "properties", made.root, *gone, "--yes")
    after = {
        key: value for key, value in json_rows("table", "properties", made.root)[0].items() if "checksum" not in key
    }
    assert after == {key: value for key, value in before.items() if "checksum" not in key}


def test_unchangeable_properties(made: MorTable) -> None:
    failed = pyhudi("repair", "properties", made.root, "--unset", "hoodie.table.name", "--dry-run", code=1).stderr
    assert "lack hoodie.table.name" in failed
    version = ("--set", "hoodie.table.version=6")
    assert "use upgrade or downgrade" in pyhudi("repair", "properties", made.root, *version, "--yes", code=1).stderr
    misspelt = ("--set", "hoodie.table.nam=x")
    assert "hoodie.table.name" in pyhudi("repair", "properties", made.root, *misspelt, "--yes", code=2).stderr
    assert "--from FILE" in pyhudi("repair", "properties", made.root, "--yes", code=2).stderr


def test_properties_are_replaced(made: MorTable, tmp_path: Path) -> None:
    (stored,) = json_rows("table", "properties", made.root)
    del stored["hoodie.table.checksum"]
    file = tmp_path / "new.properties"
    file.write_text("".join(f"{key}={value}\n" for key, value in (stored | {"hoodie.table.name": "other"}).items()))
    shown = {r["property"]: r for r in json_rows("repair", "properties", made.root, "--from", file, "--dry-run")}
    assert shown["hoodie.table.name"] == {"property": "hoodie.table.name", "old_value": "t", "new_value": "other"}
    pyhudi("repair", "properties", made.root, "--from", file, "--yes")
    assert made.table.config.name == "other"


def test_locks(made: MorTable) -> None:
    assert json_rows("locks", "status", made.root) == [{"audit": "off"}]
    pyhudi("locks", "enable", made.root)
    assert json_rows("locks", "status", made.root) == [{"audit": "on"}]
    assert json_rows("locks", "validate", made.root) == [{"holdings": 0, "errors": [], "warnings": []}]
    assert json_rows("locks", "clean", made.root, "--days", 1, "--yes") == [{"deleted files": 0}]
    pyhudi("locks", "disable", made.root)
    assert json_rows("locks", "status", made.root) == [{"audit": "off"}]


def test_tables_are_created(tmp_path: Path) -> None:
    (found,) = json_rows("table", "create", tmp_path / "new", "-o", "hoodie.table.name=new")
    assert (found["name"], found["files"]) == ("new", 0)
    assert "exists" in pyhudi("table", "create", tmp_path / "new", "-o", "hoodie.table.name=new", code=1).stderr


def test_partitions_expire(made: MorTable) -> None:
    days = ("-o", "hoodie.partition.ttl.strategy.days.retain=1")
    assert not json_rows("partitions", "expire", made.root, "--dry-run", *days)
    assert "--spark" in pyhudi("partitions", "expire", made.root, "--yes", *days, code=1).stderr


def test_columns_are_changed(made: MorTable) -> None:
    change = ("columns", "add", made.root, "note", "string", "--after", "id", "--comment", "free text")
    planned = json_rows(*change, "--dry-run")
    assert {"column": "note", "type": "string", "nullable": True, "comment": "free text"} in planned
    names = [row["column"] for row in planned if not row["column"].startswith("_hoodie")]
    assert names == ["id", "note", "p", "o", "v"]
    pyhudi("columns", "add", made.root, "note", "string", "--after", "id", "--yes", *NO_SKEW)
    pyhudi("columns", "rename", made.root, "v", "value", "--yes", *NO_SKEW)
    pyhudi("columns", "move", made.root, "value", "--first", "--yes", *NO_SKEW)
    found = [row["column"] for row in json_rows("columns", "list", made.root)]
    assert [name for name in found if not name.startswith("_hoodie")] == ["value", "id", "note", "p", "o"]
    assert {row["value"] for row in json_rows("scan", made.root, "--where", "id = 'a0'")} == {"z"}
    pyhudi("columns", "retype", made.root, "note", "bigint", "--yes", code=1)
    pyhudi("columns", "drop", made.root, "note", "--yes", *NO_SKEW)
    assert "note" not in {row["column"] for row in json_rows("columns", "list", made.root)}
    assert "--yes" in pyhudi("columns", "drop", made.root, "value", code=2).stderr


def test_bootstrap(tmp_path: Path) -> None:
    (tmp_path / "source").mkdir()
    pq.write_table(pa.table({"id": ["a", "b"], "n": [1, 2]}), tmp_path / "source" / "part-0.parquet")
    options = {
        "hoodie.bootstrap.base.path": str(tmp_path / "source"),
        "hoodie.table.name": "t",
        "hoodie.datasource.write.recordkey.field": "id",
    }
    given = [part for key, value in options.items() for part in ("-o", f"{key}={value}")]
    (done,) = json_rows("bootstrap", "run", tmp_path / "t", *given, *NO_SKEW)
    assert (done["num_files"], done["num_rows"]) == (1, 2)
    assert sorted(row["n"] for row in json_rows("scan", tmp_path / "t")) == [1, 2]
    (found,) = json_rows("bootstrap", "mapping", tmp_path / "t")
    assert found["source_file"].endswith("/source/part-0.parquet")
    assert json_rows("bootstrap", "mapping", tmp_path / "t", "--file-group", found["file_id"]) == [found]
    assert json_rows("bootstrap", "mapping", tmp_path / "t", "--file-group", "none") == []
    assert "part-0.parquet" in pyhudi("bootstrap", "mapping", tmp_path / "t").stdout
    assert json_rows("bootstrap", "partitions", tmp_path / "t") == [{"partition": ""}]
