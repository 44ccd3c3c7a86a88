"""Our in-process reader gives the rows of the golden tables that Apache Hudi gave."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from pyhudi.api.hudi_table import HudiTable
from pyhudi.errors import HudiError
from tests.golden.expected import NAMES, Query, answers_error, cases, check, unpack


@pytest.fixture(scope="session")
def tables(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where golden tables are unpacked, once for all tests."""
    return tmp_path_factory.mktemp("golden")


MERGING = {
    "by key": {"hoodie.merge.use.record.positions": "false"},
    "on disk": {"hoodie.memory.merge.max.size": "1"},
    "by key, on disk": {"hoodie.merge.use.record.positions": "false", "hoodie.memory.merge.max.size": "1"},
}
"""Other ways to merge log files, which give the same rows."""


def read(table: HudiTable, query: Query) -> pa.Table:
    """Ask our reader the same question."""
    if query.kind == "cdc":
        assert query.begin is not None
        return table.changes(query.begin, query.end).to_arrow()
    optimized = query.kind == "read_optimized"
    scan = table.scan(as_of=query.as_of, begin=query.begin, end=query.end, read_optimized=optimized)
    return scan.to_arrow()


@pytest.mark.parametrize(("name", "kind"), cases())
def test_golden(name: str, kind: str, tables: Path) -> None:
    golden = unpack(name, tables)
    table = HudiTable.for_path(str(golden.path))
    for query in golden.queries(kind):
        if query.error is None:
            check(golden, query, read(table, query))
        elif answers_error(query):
            with pytest.raises(HudiError):
                read(table, query)


@pytest.mark.parametrize("way", MERGING)
@pytest.mark.parametrize("name", [name for name in NAMES if "_mor_" in name])
def test_ways_to_merge(name: str, way: str, tables: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pyhudi.read.execution.arrow_scan._MIN_BUDGET", 1)
    golden = unpack(name, tables)
    table = HudiTable.for_path(str(golden.path), MERGING[way])
    for query in (*golden.queries("snapshot"), *golden.queries("time_travel")):
        if query.error is None:
            check(golden, query, read(table, query))


@pytest.mark.parametrize("name", [name for name in NAMES if "_mor_" in name])
def test_conditions_on_keys(name: str, tables: Path) -> None:
    """What meets a condition on keys are rows of the whole scan, whatever the condition says of null."""
    table = HudiTable.for_path(str(unpack(name, tables).path))
    whole = table.scan().to_arrow()
    for key in (*table.config.record_keys, "_hoodie_record_key"):
        if key not in whole.column_names:
            continue
        some = whole[key][0].as_py()
        for condition in (pc.field(key).is_null(), pc.field(key) == some, (pc.field(key) != some).is_valid()):
            found = table.scan(filter=condition).to_arrow()
            assert found.sort_by(key).to_pylist() == whole.filter(condition).sort_by(key).to_pylist()
        assert table.scan(filter=[(key, "=", None)]).to_arrow().num_rows == whole[key].null_count


@pytest.mark.parametrize("name", NAMES)
def test_every_table_opens(name: str, tables: Path) -> None:
    golden = unpack(name, tables)
    table = HudiTable.for_path(str(golden.path))
    assert table.config.version == golden.document["table_version"]
    expected = [field["name"] for field in golden.document["schema"]["fields"]]
    assert [name for name in table.schema.names if name in expected] == expected


@pytest.mark.parametrize("name", NAMES)
def test_instants(name: str, tables: Path) -> None:
    golden = unpack(name, tables)
    history = HudiTable.for_path(str(golden.path)).history().to_pylist()
    ours = {(row["requested"], row["completed"], row["action"]) for row in history if row["state"] == "COMPLETED"}
    completed = [instant for instant in golden.document["instants"] if instant["state"] == "COMPLETED"]
    expected = {(i["requested"], i["completed"], i["action"]) for i in completed}
    assert expected <= ours
    # the expectations name one instant a time, and a savepoint has the time of the write that it keeps
    saved = {requested for requested, _, action in expected if action == "savepoint"}
    assert {requested for requested, _, _ in ours - expected} <= saved
