"""The facade, as far as it needs no Spark."""

from __future__ import annotations

import re
import subprocess
import sys
from types import SimpleNamespace

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import pyhudi
from pyhudi import HudiTable
from pyhudi.api.names_of_other_formats import METHODS
from pyhudi.errors import (
    ConfigError,
    InstantNotFoundError,
    InvalidOptionError,
    NotAHudiTableError,
    QueryError,
    SchemaError,
    SetupError,
    TableExistsError,
)
from pyhudi.storage import open_storage
from pyhudi.table.config.table_config import TableConfig
from pyhudi.timeline.instant import Action
from tests.tables import HandMadeTable, at


@pytest.fixture
def made(tmp_path) -> HandMadeTable:
    table = HandMadeTable(tmp_path / "t")
    table.write(
        10, {("a", "f1"): [{"id": "x", "p": "a", "v": 1}], ("b", "f2"): [{"id": "z", "p": "b", "v": 1}]}, done=12
    )
    rows = [{"id": "x", "p": "a", "v": 2}, {"id": "y", "p": "a", "v": 3}]
    table.write(20, {("a", "f1"): rows}, done=25)
    return table


@pytest.fixture
def table(made) -> HudiTable:
    return HudiTable.for_path(str(made.root))


def test_names_of_other_formats_say_what_to_use(table: HudiTable) -> None:
    services = {name for name in dir(table.services) if not name.startswith("_")}
    for name, cure in METHODS.items():
        assert not hasattr(HudiTable, name)
        with pytest.raises(AttributeError, match=f"'HudiTable' object has no attribute '{name}': use table"):
            getattr(table, name)
        used = re.findall(r"(?<![.\w])table\.(services\.)?(\w+)", cure)
        assert used
        assert all(method in (services if service else dir(table)) for service, method in used)
    with pytest.raises(AttributeError, match=r"no attribute 'histry'$") as missing:
        _ = table.histry
    assert missing.value.name == "histry"


def test_an_error_inside_a_property_is_its_own(table: HudiTable, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(HudiTable, "_pin", lambda self: self._path.nothing)
    with pytest.raises(AttributeError, match="'str' object has no attribute 'nothing'"):
        _ = table.config


def test_what_a_table_is(table, made):
    assert repr(table) == f"HudiTable({str(made.root)!r}, name='t', COPY_ON_WRITE, version 9)"
    assert table.path == f"file://{made.root}"
    assert table.schema.names[5:] == ["id", "p", "v"]
    assert table.latest_instant == at(20)
    assert table.completion_of(at(20)) == at(25)
    with pytest.raises(InstantNotFoundError, match=at(15)):
        table.completion_of(at(15))


def test_version_6_goes_on_from_the_instant_itself(tmp_path):
    made = HandMadeTable(tmp_path / "t", 6)
    made.write(10, {("a", "f1"): [{"id": "x", "p": "a", "v": 1}]})
    assert HudiTable.for_path(str(made.root)).completion_of(at(10)) == at(10)


def test_there_is_no_table(tmp_path):
    assert not HudiTable.exists(str(tmp_path))
    with pytest.raises(NotAHudiTableError, match=str(tmp_path)):
        HudiTable.for_path(str(tmp_path))


def test_a_new_table(tmp_path):
    options = {
        "hoodie.table.name": "new",
        "hoodie.datasource.write.recordkey.field": "id",
        "hoodie.datasource.write.partitionpath.field": "p",
    }
    table = HudiTable.create(str(tmp_path / "n"), options)
    assert HudiTable.exists(str(tmp_path / "n"))
    assert (table.latest_instant, table.schema, table.scan().to_arrow().num_rows) == (None, pa.schema([]), 0)
    assert table.detail()["record_keys"] == ["id"]
    assert table.history().num_rows == table.inspect.files().num_rows == table.inspect.partitions().num_rows == 0
    assert table.inspect.commits().num_rows == 0
    with pytest.raises(TableExistsError):
        HudiTable.create(str(tmp_path / "n"), options)


def test_scans(table):
    assert sorted(table.scan().to_arrow()["id"].to_pylist()) == ["x", "y", "z"]
    assert table.scan([("p", "=", "a")], ["v"]).to_arrow().to_pydict() == {"v": [2, 3]}
    assert table.scan(columns=["v"], as_of=at(10)).to_arrow().to_pydict() == {"v": [1, 1]}
    assert table.scan(columns=["id"], begin=at(12)).to_arrow().to_pydict() == {"id": ["x", "y"]}
    assert table.scan(begin=at(12), end=at(24)).to_arrow().num_rows == 0
    assert table.scan(read_optimized=True).count() == 3
    assert table.scan([("v", ">", 1)]).count() == 2


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        (
            pc.field("w") == 1,
            r"\(w == 1\) cannot be evaluated: No match for FieldRef.Name\(w\); the columns are .* v \(int",
        ),
        (pc.field("v") == "1", "no kernel matching input types"),
        (pc.field("v"), "must evaluate to bool"),
        (pc.scalar(None), "must evaluate to bool"),
        (pc.field(7) == 1, r"refers to a column by its position; use pc.field\(name\)"),
    ],
)
def test_expressions_that_are_no_conditions_on_the_columns(table, expression, message):
    with pytest.raises(QueryError, match=message):
        table.scan(expression, columns=["id"]).to_arrow()


def test_a_list_without_conditions_is_no_filter(table):
    assert table.scan([[]]).count() == table.scan([[], [("v", "=", 9)]]).count() == 3
    assert table.scan(pc.field("id") != "FieldPath(0)").count() == 3


def test_a_scan_is_immutable(table):
    scan = table.scan()
    narrower = scan.select("v").filter([("v", ">", 2)])
    assert scan.columns is None
    assert narrower.to_arrow().to_pydict() == {"v": [3]}
    assert scan.count() == 3
    assert narrower.plan().columns == ("v",)


def test_a_scan_sees_the_table_as_it_is_then(table, made):
    scan = table.scan()
    assert scan.count() == 3
    made.write(30, {("c", "f3"): [{"id": "n", "p": "c", "v": 9}]})
    assert scan.count() == 4


def test_results_for_other_libraries(table):
    scan = table.scan(columns=["id", "v"])
    assert scan.to_pandas()["v"].sum() == 6
    assert scan.to_polars()["v"].sum() == 6
    assert scan.to_duckdb().sum("v").fetchall() == [(6,)]
    reader = scan.to_batches()
    assert reader.schema.names == ["id", "v"]
    assert sum(batch.num_rows for batch in reader) == 3


def test_a_missing_library_is_named(table, monkeypatch):
    import builtins

    real = builtins.__import__

    def without(name, *args, **kwargs):
        if name == "polars":
            raise ImportError(name)
        return real(name, *args, **kwargs)

    monkeypatch.setattr("importlib.import_module", lambda name: without(name))
    with pytest.raises(SetupError, match=r"pip install 'pyhudi\[polars\]'"):
        table.scan().to_polars()


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"as_of": "yesterday"}, InvalidOptionError, "yesterday"),
        ({"end": at(20)}, QueryError, "requires begin"),
        ({"columns": ["nope"]}, QueryError, "nope"),
        ({"columns": "id"}, QueryError, r"use \['id'\]"),
        ({"filter": [("nope", "=", 1)]}, QueryError, "nope"),
        ({"filter": "length(id) > 1"}, QueryError, "requires Spark"),
    ],
)
def test_scans_that_cannot_be(table, arguments, error, message):
    with pytest.raises(error, match=message):
        table.scan(**arguments).to_arrow()


def test_a_scan_is_shown(table):
    assert repr(table.scan()).startswith("Scan(latest snapshot; not read yet: to_arrow()")
    shown = repr(table.scan(filter="v > 1", columns=["v"], as_of="2024-01-01", read_optimized=True))
    assert shown.startswith(
        "Scan(snapshot as of 2024-01-01, base files only, filter=v > 1, columns=['v']; not read yet"
    )
    assert repr(table.scan().plan()) == table.scan().plan().explain()
    assert repr(table.scan(begin="earliest", end="2024-01-01")).startswith(
        "Scan(changes after earliest until 2024-01-01;"
    )


def test_what_services_return_is_shown(table, made):
    changes = table.alter_schema().add_column("x", "int").rename_column("v", "w")
    assert repr(changes) == f"SchemaUpdate({str(made.root)!r}: add_column('x'), rename_column('v'); not committed)"
    assert repr(table.services.savepoint(comment="before")).startswith(f"ServiceResult(savepoint {at(20)}: 2 files, ")
    assert repr(table.services.savepoint()) == (
        f"ServiceResult(savepoint: nothing done (there is already a savepoint at {at(20)}))"
    )
    assert "before" in repr(table.services.savepoints())
    assert repr(table.services.upgrade(9)) == "UpgradeResult(nothing done: the table has version 9)"
    assert repr(table.services.upgrade(9, dry_run=True)) == "UpgradePlan(9 to 9: nothing to do)"


def test_arguments_of_other_forms(table):
    for where in (1, ["x"], {"id": "x"}):
        with pytest.raises(ConfigError, match=r"delete\(\) takes a condition such as"):
            table.delete(where)
    with pytest.raises(QueryError, match=r"write \[\('id', '=', 'x'\), \('v', '=', 2\)\]"):
        table.scan(filter={"id": "x", "v": 2})
    with pytest.raises(SchemaError, match=r"unknown type 'strng'; pass one of pyarrow.*'bigint'"):
        table.alter_schema().change_type("v", "strng")
    with pytest.raises(ConfigError, match="table version '9' is not supported"):
        table.services.upgrade("9")
    with pytest.raises(InvalidOptionError, match="an instant "):
        table.scan(as_of=1).to_arrow()


def test_arguments_in_the_order_of_other_libraries(table):
    class Frame:
        """What is looked at of a DataFrame."""

        sparkSession = None  # noqa: N815
        columns = ("id", "v")

    with pytest.raises(ConfigError, match=r"new values by column first, not 'id = 1', and the condition second"):
        table.update("id = 1", {"v": "3"})
    with pytest.raises(ConfigError, match=r"new values by column first, not 'v = 3': update\({"):
        table.update("v = 3")
    with pytest.raises(ConfigError, match="source first and the condition second"):
        table.merge("target.id = s.id", Frame())
    for names in ("id", ["id"], ("id",)):
        with pytest.raises(ConfigError, match=r"not names of columns \(id\).*'target.id = source.id'"):
            table.merge(Frame(), names)


def test_what_is_written_is_a_dataframe_of_spark(table):
    rows = table.scan().to_arrow()
    for given, name in ((rows, "pyarrow.lib.Table"), (rows.to_pandas(), "DataFrame")):
        with pytest.raises(
            ConfigError, match=rf"upsert requires a Spark DataFrame, not .*{name}; create one with spark"
        ):
            table.upsert(given)


def test_history(table, made):
    made.write(30, {("a", "f9"): []}, pending=True)
    rows = table.history().to_pylist()
    assert [(r["requested"], r["completed"], r["state"], r["operation"], r["rows_written"]) for r in rows] == [
        (at(30), None, "INFLIGHT", None, None),
        (at(20), at(25), "COMPLETED", "UPSERT", 2),
        (at(10), at(12), "COMPLETED", "UPSERT", 2),
    ]
    assert rows[2]["files_written"] == rows[2]["partitions"] == 2
    assert [row["millis"] for row in rows[:2]] == [None, int(at(25)) - int(at(20))]
    assert table.history(archived=True).num_rows == 3


def test_inspect(table):
    files = table.inspect.files()
    assert files["path"].to_pylist() == [f"a/f1_0-0-0_{at(20)}.parquet", f"b/f2_0-0-0_{at(10)}.parquet"]
    assert table.inspect.files(all_versions=True).num_rows == 3
    assert table.inspect.file_slices()["base_instant"].to_pylist() == [at(20), at(10)]
    assert table.inspect.file_slices(all_versions=True).num_rows == 3
    partitions = table.inspect.partitions().to_pylist()
    assert [(r["partition"], r["p"], r["file_groups"], r["latest_instant"]) for r in partitions] == [
        ("a", "a", 1, at(20)),
        ("b", "b", 1, at(10)),
    ]
    assert sum(r["size"] for r in partitions) == sum(files["size"].to_pylist())
    commits = table.inspect.commits()
    assert commits["file_id"].to_pylist() == ["f1", "f2", "f1"]
    assert commits["rows_written"].to_pylist() == [1, 1, 2]


def test_inspect_counts_logs(tmp_path):
    made = HandMadeTable(tmp_path / "t", properties={"hoodie.table.type": "MERGE_ON_READ"})
    made.write(10, {("a", "f1"): [{"id": "x", "p": "a", "v": 1}]}, action=Action.DELTA_COMMIT)
    made.write(20, {}, action=Action.DELTA_COMMIT)
    (made.root / "a" / f".f1_{at(20)}.log.1_0-0-0").write_bytes(b"12345")
    table = HudiTable.for_path(str(made.root))
    (partition,) = table.inspect.partitions().to_pylist()
    assert partition["log_files"] == 1
    assert partition["size"] == sum(table.inspect.files()["size"].to_pylist())
    assert table.inspect.files()["kind"].to_pylist() == ["log", "base"]
    assert table.scan().plan().num_slices_with_logs == 1


def test_detail_and_its_page(table):
    detail = table.detail()
    assert (detail["name"], detail["table_version"], detail["files"], detail["partitions"]) == ("t", 9, 2, 2)
    assert detail["latest_completion"] == at(25)
    page = table._repr_html_()
    assert at(20) in page
    assert "<table>" in page


def test_markup_in_names_is_escaped(tmp_path):
    made = HandMadeTable(tmp_path / "t", properties={"hoodie.table.name": "<b>bold</b>"})
    made.write(10, {("a", "f1"): [{"id": "x", "p": "a", "v": 1}]})
    assert "<b>" not in HudiTable.for_path(str(made.root))._repr_html_()


def test_partitions_to_delete_are_a_list(table):
    with pytest.raises(ConfigError, match="takes a list"):
        table.delete_partition("a")
    for path in ("a,b", " a"):
        with pytest.raises(ConfigError, match="would select other partitions"):
            table.delete_partition([path])


@pytest.mark.parametrize("given", [True, False])
def test_the_session_is_the_given_or_the_active_one(table, monkeypatch, given):
    pytest.importorskip("pyspark")
    session = SimpleNamespace(createDataFrame=lambda *_: frame)
    frame = SimpleNamespace(sparkSession=session, limit=lambda _: frame)
    used = []

    def use(first, *_):
        used.append(getattr(first, "sparkSession", getattr(first, "spark", first)))  # of a DataFrame, of a scan
        return ()

    for name in (
        "dml.update.update",
        "dml.update.delete",
        "write.dataframe_writer.write",
        "read.dataframe_reader.dataframe",
        "read.pruning.filter_session.filter_session",
        "read.cdc_frame.cdc_frame",
    ):
        monkeypatch.setattr(f"pyhudi.spark.{name}", use)
    monkeypatch.setattr("pyhudi.spark.read.table_lineage.with_snapshot_id", lambda frame, _: frame)
    monkeypatch.setattr("pyhudi.spark.session.active_session", lambda: "another" if given else session)
    monkeypatch.setattr("pyhudi.api.change_scan.ChangeScan._plan", lambda *_: None)
    keyword = {"spark": session} if given else {}
    table.update({"v": "1"}, **keyword)
    table.delete("v = 1", **keyword)
    table.delete_partition(["a"], **keyword)
    table.scan().to_spark(**keyword)
    table.changes(at(10)).to_spark(**keyword)
    assert used == [session] * 6


def test_the_public_names():
    assert set(pyhudi.__all__) >= {"HudiTable", "activate", "configure_spark"}
    with pytest.raises(AttributeError, match="nothing_here"):
        _ = pyhudi.nothing_here
    assert {"HudiTable", "activate", "configure_spark", "RecordMerger"} <= set(dir(pyhudi))
    assert "annotations" not in dir(pyhudi)
    assert [name for name in pyhudi.__all__ if getattr(pyhudi, name, None) is None] == []
    assert pyhudi.errors.QueryError is QueryError


@pytest.mark.parametrize("module", ["cli.program", "write.handles.merge_handle", "read.execution.file_slice_reader"])
def test_a_process_imports_what_it_needs(module):
    # a process of the command line, or a Python worker of Spark, would take a second to import everything
    script = f"import sys, pyhudi.{module}; print(*sys.modules)"
    imported = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout.split()
    assert f"pyhudi.{module}" in imported
    assert not {"pyhudi.api.hudi_table", "pyhudi.transaction.transaction"}.intersection(imported)


WITHOUT_PYSPARK = """
import pydoc, sys
sys.modules["pyspark"] = None
import pyhudi
from pyhudi.errors import SetupError
assert "activate" not in dir(pyhudi)
assert "register_merger" in pydoc.plain(pydoc.render_doc(pyhudi))
table = pyhudi.HudiTable.for_path(sys.argv[1])
calls = (
    table.scan().to_spark,
    table.changes("earliest").to_spark,
    lambda: table.update({"v": "1"}),
    lambda: table.delete("v = 1"),
    lambda: table.delete_partition(["a"]),
    lambda: pyhudi.activate,
)
for call in calls:
    try:
        call()
    except SetupError as error:
        print(error)
print(table.scan().count())
"""


def test_without_pyspark(made):
    command = [sys.executable, "-c", WITHOUT_PYSPARK, str(made.root)]
    *errors, count = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    assert len(errors) == 6
    assert all(
        "PySpark, which is not installed" in error and "pip install 'pyhudi[spark]'" in error for error in errors
    )
    assert count == "3"


def test_columns_are_checked_by_counts(table):
    assert table.scan(columns=["v"]).count() == 3
    for names, message in ((["v", "typo"], "no column 'typo'"), (["v", "v"], "requested twice")):
        with pytest.raises(QueryError, match=message):
            table.scan(columns=names).count()


def test_wrong_ways_in(table, tmp_path):
    for wrong in (None, "", 7, ["a"]):
        for call in (HudiTable.for_path, HudiTable.exists):
            with pytest.raises(ConfigError, match=r"path of a table must be a text or a pathlib\.Path, not "):
                call(wrong)
        with pytest.raises(ConfigError, match="path of a table"):
            HudiTable.create(wrong, {"hoodie.table.name": "t"})
    with pytest.raises(ConfigError, match=r"HudiTable\.for_path\(path\).*HudiTable\.create"):
        HudiTable(table.path)
    assert HudiTable.for_path(tmp_path / "t").config.name == "t"


def test_lookup_of_keys_that_are_no_texts(made, table):
    with pytest.raises(QueryError, match=r"_hoodie_record_key, which is a text, with 7; pass '7' or {'id': 7}"):
        table.lookup(["x", 7])
    TableConfig.load(open_storage(made.root)).updated(
        open_storage(made.root), set={"hoodie.table.recordkey.fields": "id,p"}
    )
    with pytest.raises(QueryError, match=r"with 7; pass a text in its form, or a dict with id, p"):
        table.lookup([7])


def test_lookup_by_fields(made, table):
    assert sorted(r["v"] for r in table.lookup([{"id": "x"}, {"id": "z"}]).to_pylist()) == [1, 2]
    assert table.lookup([{"id": "x"}], ["v"]).to_pylist() == [{"v": 2}]
    assert table.lookup(iter([{"id": "nobody"}])).num_rows == 0
    TableConfig.load(open_storage(made.root)).updated(
        open_storage(made.root), set={"hoodie.table.recordkey.fields": "id,p"}
    )
    assert table.lookup([{"id": "x", "p": "a"}, {"p": "b", "id": "x"}], ["v"]).to_pylist() == [{"v": 2}]
    many = [{"id": f"x{number}", "p": "a"} for number in range(15_000)]  # as many alternatives would crash Arrow
    assert table.lookup([*many, {"id": "x", "p": "a"}], ["v"]).to_pylist() == [{"v": 2}]
    for keys, message in (
        ([{"id": "x"}], "the key {'id': 'x'} must be a dict with the fields .*id, p"),
        ([{"id": "x", "p": "a"}, "x"], "the key 'x' must be a dict"),
        ({"id": "x", "p": "a"}, "takes a list of keys"),
        ("x", "takes a list of keys"),
        (7, "takes a list of keys"),
    ):
        with pytest.raises(QueryError, match=message):
            table.lookup(keys)
    with pytest.raises(QueryError, match="leave out by='v'"):
        table.lookup([{"id": "x", "p": "a"}], by="v")


def test_instants_and_files_are_shown_to_people(table):
    assert at(20) in repr(table.history())
    assert repr(table.inspect.files()).splitlines()[0].split()[:3] == ["partition", "path", "kind"]
    for shown in (table.history(), table.inspect.file_slices(), table.inspect.partitions(), table.inspect.commits()):
        assert "<table>" in shown._repr_html_()
        assert shown.to_arrow().num_rows == shown.num_rows > 0
