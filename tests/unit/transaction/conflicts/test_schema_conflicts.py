"""What columns a table has after two writes at the same time."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from pyhudi.schema.converters.arrow_avro import from_avro, to_avro
from pyhudi.timeline.commit_metadata import CommitMetadata
from pyhudi.timeline.latest_schema import newest_columns
from pyhudi.transaction.commit_outcome import Conflicted
from pyhudi.transaction.conflicts.schema_conflicts import resolve_schema_conflict
from tests.tables import HandMadeTable, at

ID, A, B = pa.field("id", pa.string()), pa.field("a", pa.int32()), pa.field("b", pa.string())
WIDER = pa.field("a", pa.int64())
INNER, GROWN = pa.field("s", pa.struct([A])), pa.field("s", pa.struct([A, B]))


def text(*fields: pa.Field) -> str:
    return to_avro(pa.schema(fields), "t")


def agreed(
    folder: Path, before: str | None, mine: str, now: pa.Schema, operation: str = "UPSERT", n: int = 25
) -> list[str] | str:
    """The columns of a commit at instant ``n``, beside another one at 20; or the reason why there is none."""
    table = HandMadeTable(folder, schema=now)
    table.write(10, {}, operation="INSERT", schema=pa.schema([ID]))
    table.write(20, {}, operation=operation)
    found = resolve_schema_conflict(
        CommitMetadata("UPSERT", extra={"schema": mine, "k": "v"}), at(n), before, newest_columns(table.active)
    )
    if isinstance(found, Conflicted):
        assert (found.requested, found.other.requested) == (at(n), at(20))
        return found.reason[found.reason.index("(") :]
    assert found.extra["k"] == "v"
    assert found.schema_json is not None
    return from_avro(found.schema_json).names


@pytest.mark.parametrize(
    ("before", "mine", "now", "expected"),
    [
        ([ID], [ID], [ID], ["id"]),
        ([ID], [ID, A], [ID], ["id", "a"]),
        ([ID], [ID], [ID, A], ["id", "a"]),
        ([ID], [ID, A], [ID, A], ["id", "a"]),
        ([ID], [ID, A], [ID, B], "(b: string, in this write missing; a: missing, in this write int32)"),
        ([ID, A], [ID, A], [ID, WIDER], "(a: int64, in this write int32)"),
        ([ID, A], [ID, A], [ID], ["id"]),
        ([INNER], [INNER], [GROWN], ["s"]),
        ([GROWN], [GROWN], [INNER], ["s"]),
        (None, [ID, A], [ID, B], "(b: string, in this write missing; a: missing, in this write int32)"),
        (None, [ID], [ID], ["id"]),
    ],
)
def test_rules(
    tmp_path: Path, before: list[pa.Field] | None, mine: list[pa.Field], now: list[pa.Field], expected: object
):
    planned_on = None if before is None else text(*before)
    assert agreed(tmp_path, planned_on, text(*mine), pa.schema(now)) == expected


def test_columns_of_the_latest_instant_are_what_readers_see(tmp_path: Path):
    """A write that was begun before it cannot add any behind it."""
    assert agreed(tmp_path / "1", text(ID), text(ID), pa.schema([ID, A]), n=15) == ["id", "a"]
    assert agreed(tmp_path / "2", text(ID), text(ID, A), pa.schema([ID, A]), n=15) == ["id", "a"]
    reason = agreed(tmp_path / "3", text(ID), text(ID, A), pa.schema([ID]), n=15)
    assert reason == "(a: missing, in this write int32)"


def test_table_services_do_not_count(tmp_path: Path):
    assert agreed(tmp_path, text(ID), text(ID, A), pa.schema([ID, B]), "COMPACT") == ["id", "a"]


def test_a_write_that_says_nothing(tmp_path: Path):
    table = HandMadeTable(tmp_path)
    table.write(20, {})
    metadata = CommitMetadata("UPSERT")
    assert resolve_schema_conflict(metadata, at(15), None, newest_columns(table.active)) is metadata
