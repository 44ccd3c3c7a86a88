"""Arrow tables that show themselves to people, and stay Arrow tables to programs."""

from __future__ import annotations

import pickle

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pyhudi.read.inspection.result_table import ResultTable, as_html, as_text


@pytest.fixture
def plain() -> pa.Table:
    return pa.table(
        {
            "requested": ["20241121094947775", "20241121094948001"],
            "completed": pa.nulls(2, pa.string()),
            "operation": ["UPSERT", None],
            "rows": [1234567, 8],
            "archived": [True, False],
            "path": ["a" * 30 + "b" * 30, "line\nbreak"],
        }
    )


def test_columns_are_aligned_and_long_texts_cut(plain: pa.Table) -> None:
    assert as_text(plain, 200).splitlines() == [
        "requested          operation       rows  archived  path",
        "─────────────────  ─────────  ─────────  ────────  ────────────────────────────────────────",
        "20241121094947775  UPSERT     1,234,567  yes       aaaaaaaaaaaaaaaaaaaa…bbbbbbbbbbbbbbbbbbb",
        "20241121094948001                     8  no        line break",
        "(2 rows)",
    ]


def test_names_are_broken_at_underscores() -> None:
    table = pa.table({"a": ["x"], "file_groups_replaced": [1]})
    assert as_text(table, 80).splitlines() == [
        "       file",
        "     groups",
        "a  replaced",
        "─  ────────",
        "x         1",
        "(1 row)",
    ]


def test_what_has_no_room_is_named(plain: pa.Table) -> None:
    lines = as_text(plain, 50).splitlines()
    assert lines[0] == "requested          operation       rows  archived"
    assert lines[-1] == "(2 rows; more columns: path)"
    assert max(map(len, as_text(plain, 1).splitlines()[:-1])) == 17, "one column at least"
    many = pa.concat_tables([plain] * 15)
    assert as_text(many, 50).splitlines()[-1].startswith("(30 rows, of which the first 20 are shown")
    assert len(as_text(many, 50).splitlines()) == 23
    assert as_text(plain.slice(0, 0), 200).splitlines()[-1] == "(0 rows)"
    assert "rows" in as_text(plain.select([]), 200)


def test_what_has_no_room_is_in_a_block_below(plain: pa.Table) -> None:
    assert as_text(plain, 62).splitlines() == [
        "requested          operation       rows  archived",
        "─────────────────  ─────────  ─────────  ────────",
        "20241121094947775  UPSERT     1,234,567  yes",
        "20241121094948001                     8  no",
        "",
        "requested          path",
        "─────────────────  ────────────────────────────────────────",
        "20241121094947775  aaaaaaaaaaaaaaaaaaaa…bbbbbbbbbbbbbbbbbbb",
        "20241121094948001  line break",
        "(2 rows)",
    ]


def test_milliseconds_are_shown_as_times() -> None:
    assert "2024-" in as_text(pa.table({"created_ms": [1_720_000_000_000]}), 80)


def test_in_a_notebook(plain: pa.Table) -> None:
    page = as_html(plain.append_column("name", pa.array(["<b>", "&"])))
    assert "<td>&lt;b&gt;</td>" in page
    assert "completed" not in page
    assert "1,234,567" in page
    assert ResultTable(plain)._repr_html_() == as_html(plain)


def test_it_is_arrow_data(plain: pa.Table, tmp_path) -> None:
    shown = ResultTable(plain)
    assert pa.table(shown) == shown.to_arrow() == plain
    assert shown == plain
    assert shown == ResultTable(plain)
    assert shown["rows"].to_pylist() == [1234567, 8]
    assert (shown.num_rows, len(shown), shown.column_names, shown.schema) == (2, 2, plain.column_names, plain.schema)
    assert shown.to_pylist() == plain.to_pylist()
    pq.write_table(pa.table(shown), tmp_path / "t.parquet")
    assert pickle.loads(pickle.dumps(shown)) == plain
    with pytest.raises(AttributeError, match="nothing"):
        _ = shown.nothing


def test_tables_of_it_show_themselves_too(plain: pa.Table) -> None:
    shown = ResultTable(plain).select(["requested", "rows"]).sort_by("rows").slice(0, 1)
    assert repr(shown).splitlines()[-2] == "20241121094948001     8"
    other = ResultTable(plain).select(["requested", "path"])
    joined = shown.join(other, "requested")
    assert isinstance(joined, ResultTable)
    assert joined["path"].to_pylist() == ["line\nbreak"]


def test_in_other_libraries(plain: pa.Table) -> None:
    shown = ResultTable(plain.drop_columns("completed"))
    assert shown.to_pandas().shape == (2, 5)
    assert pytest.importorskip("polars").DataFrame(shown).shape == (2, 5)
    duckdb = pytest.importorskip("duckdb")
    assert duckdb.sql("select sum(rows) from shown").fetchall() == [(1234575,)]
