"""Plans as bytes, against those of Apache Hudi, and for people."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from pyhudi.api.hudi_table import HudiTable
from pyhudi.config import Options
from pyhudi.errors import CorruptInstantError, FormatError, UnsupportedTableError
from pyhudi.format.avro.container import read_container
from pyhudi.services.compaction.compaction_planner import pending_compactions, plan_compaction
from pyhudi.table.meta_client import TableMetaClient
from pyhudi.timeline.encoding.commit_avro import LARGE
from pyhudi.timeline.instant import Action, State
from pyhudi.timeline.plans.compaction_plan import OPERATION_SCHEMA, CompactionPlan
from pyhudi.timeline.plans.compaction_plan_avro import decode_large_plan
from tests.golden.expected import unpack

PENDING = ("v6_mor_compaction", "v8_mor_by_12", "v9_mor_compaction_lsm")
ANY = (*PENDING, "v9_mor_logcompaction")


@pytest.mark.parametrize("name", ANY)
def test_the_same_record_as_apache_hudi(name: str, tmp_path: Path):
    golden = unpack(name, tmp_path)
    # a table of version 8 that 1.2.0 writes to has the plans of version 9
    version = TableMetaClient.open(golden.path).config.version
    files = [*golden.path.rglob("*.compaction.requested"), *golden.path.rglob("*.logcompaction.requested")]
    assert files
    for file in files:
        data = file.read_bytes()
        instant, action, _ = file.name.split(".")
        plan = CompactionPlan.decode(action, instant, State.REQUESTED, data)
        columns, missing = decode_large_plan(data)
        assert pa.Table.from_arrays(columns, schema=OPERATION_SCHEMA) == plan.operations
        assert missing == plan.missing
        theirs, ours = read_container(data), read_container(plan.encode(version))
        assert ours[1] == theirs[1]
        assert [f["name"] for f in ours[0]["fields"]] == [f["name"] for f in theirs[0]["fields"]]


@pytest.mark.parametrize("name", PENDING)
def test_the_same_plan_as_apache_hudi(name: str, tmp_path: Path):
    """Made anew, on the timeline as it was when Apache Hudi made its plan."""
    golden = unpack(name, tmp_path)
    client = TableMetaClient.open(golden.path)
    theirs = pending_compactions(client.active_timeline(), Action.COMPACTION)[-1]
    assert theirs.instant is not None
    for path in (golden.path / client.active_timeline().layout.folder).iterdir():
        if path.is_file() and path.name[:17].isdigit() and path.name[:17] >= theirs.instant:
            path.unlink()
    for path in golden.path.rglob(f".*_{theirs.instant}.log.*"):  # of version 6, in the slice that the plan opened
        path.unlink()
    ours = plan_compaction(client, Options.parse({"hoodie.compact.inline.max.delta.commits": 1}))
    order = [("partition", "ascending"), ("file_id", "ascending")]
    assert ours.operations.sort_by(order) == theirs.operations.sort_by(order)
    assert ours.missing == theirs.missing
    assert ours.reason.startswith("due")


def test_shown_to_people(tmp_path: Path):
    table = HudiTable.for_path(str(unpack("v9_mor_compaction_lsm", tmp_path).path))
    (pending,) = table.services.pending_compactions()
    text = repr(pending)
    assert "2 file slices in 2 partitions, 2 log files of 1.9 KiB" in text
    assert "r0" in text
    assert "<table>" in pending._repr_html_()
    beside = repr(table.services.compact(dry_run=True))
    assert "nothing to do" in beside
    assert f"earlier pending plans: {pending.instant}" in beside
    assert pending.state is State.REQUESTED
    assert pending.partitions == ["r0", "r1"]


def test_long_plans_are_cut():
    rows = [
        {
            "partition": "p",
            "file_id": f"f{i}",
            "base_instant": "1",
            "base_file": None,
            "log_files": ["l"],
            "log_bytes": 1 << 21,
            "read_mb": 1,
            "write_mb": 1,
        }
        for i in range(30)
    ]
    plan = CompactionPlan(pa.Table.from_pylist(rows, schema=OPERATION_SCHEMA))
    assert "… and 10 more" in repr(plan)
    assert "60.0 MiB" in repr(plan)
    assert "logs only" in repr(plan)
    assert "f29" not in plan._repr_html_()


@pytest.mark.parametrize("version", [6, 9])
def test_large_plans(version: int):
    rows = [
        {
            "partition": "" if i % 3 else "p/é",
            "file_id": f"f{i}-142c-4d86-8445-86fbbd496c52-0",
            "base_instant": "20261121095812433",
            "base_file": f"f{i}_0-1-1_20261121095812433.parquet" if i % 2 else None,
            "log_files": [f".f{i}_{k}" for k in range(i % 4)],
            "log_bytes": i << 30,
            "read_mb": i,
            "write_mb": 2 * i,
        }
        for i in range(1000)
    ]
    missing = ("x", "y") if version > 6 else ()
    plan = CompactionPlan(pa.Table.from_pylist(rows, schema=OPERATION_SCHEMA), instant="1", missing=missing)
    data = plan.encode(version)
    assert len(data) > LARGE
    again = CompactionPlan.decode(Action.COMPACTION, "1", State.REQUESTED, data)
    assert (again.operations.to_pylist(), again.missing) == (rows, missing)
    with pytest.raises(FormatError):
        CompactionPlan.decode(Action.COMPACTION, "1", State.REQUESTED, data[:-100])


def test_half_written_plans(tmp_path: Path):
    golden = unpack("v9_mor_compaction_lsm", tmp_path)
    (file,) = golden.path.rglob("20261121095812433.compaction.requested")
    file.write_bytes(file.read_bytes()[:100])
    with pytest.raises(CorruptInstantError, match=r"20261121095812433.compaction.requested"):
        HudiTable.for_path(str(golden.path)).services.pending_compactions()


def test_copy_on_write_tables_have_nothing_to_compact(tmp_path: Path):
    table = HudiTable.for_path(str(unpack("v9_cow_types", tmp_path).path))
    for call in (table.services.compact, table.services.schedule_compaction, table.services.run_compaction):
        with pytest.raises(UnsupportedTableError, match="MERGE_ON_READ"):
            call()
