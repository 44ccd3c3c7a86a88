"""The golden tables, Apache Hudi's results for queries of them, and the queries that are not supported yet."""

from __future__ import annotations

import functools
import json
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pyarrow as pa
import pytest

from tests.rows import compare, encode_table, in_order

TABLES = Path(__file__).with_name("tables")
NAMES = sorted(path.name.removesuffix(".zip") for path in TABLES.glob("*.zip"))

KINDS = ("snapshot", "read_optimized", "time_travel", "incremental", "cdc")

MERGED_ONLY_INFORMATIVE = ("_hoodie_file_name", "_hoodie_commit_seqno")

NOT_YET: dict[str, tuple[str, ...]] = {}
"""Missing feature → ``table:kind`` of the queries that require it."""

TIMESTAMP_PARTITION = ("v9_cow_ts_keygen", "created")
"""Table and column of a timestamp key generator: the files hold numbers, Apache Hudi shows them as text."""

EMPTY_PARTITION_VALUE = ("v9_cow_complex_keys", "a:k,6,b:6")
"""A row whose partition column ``p1`` was written as an empty string. Apache Hudi takes the value from the path, where
empty and null look alike, and reads null; we read what the file has."""

HALF_ROWS = "v9_mor_ignore_defaults"
"""Updates of this table omit columns. For older rows, Apache Hudi's incremental queries return null in these columns;
pyhudi returns whole rows. Its ranges are open-ended, so the snapshot contains these rows."""


@dataclass(frozen=True)
class Query:
    """One query of a golden table and Apache Hudi's result (``rows`` is None if it failed with ``error``)."""

    kind: str
    as_of: str | None
    begin: str | None
    end: str | None
    columns: tuple[str, ...]
    rows: list[tuple[Any, ...]] | None
    error: str | None

    @property
    def options(self) -> dict[str, str]:
        """Return the read options of ``format("hudi")`` for the query."""
        if self.kind == "time_travel":
            return {"as.of.instant": str(self.as_of)}
        if self.kind in ("incremental", "cdc"):
            options = {
                "hoodie.datasource.query.type": "incremental",
                "hoodie.datasource.read.begin.instanttime": str(self.begin),
            }
            if self.end is not None:
                options["hoodie.datasource.read.end.instanttime"] = self.end
            if self.kind == "cdc":
                options["hoodie.datasource.query.incremental.format"] = "cdc"
            return options
        return {"hoodie.datasource.query.type": self.kind}


@dataclass(frozen=True)
class Golden:
    """A golden table: its name, the content of its ``expected.json`` and its folder once unpacked."""

    name: str
    document: dict[str, Any]
    path: Path

    def queries(self, kind: str) -> list[Query]:
        """Return all queries of a kind; empty if the table has none."""
        return _queries(self.document, kind)


def cases(not_yet: dict[str, tuple[str, ...]] = NOT_YET) -> list[Any]:
    """Return ``pytest`` parameters (name, kind) of all queries, with strict expected failures for unsupported ones."""
    reasons = {query: reason for reason, queries in not_yet.items() for query in queries}
    found = []
    for name in NAMES:
        for kind in KINDS:
            if not any(query.error is None or answers_error(query) for query in _queries(_document(name), kind)):
                continue
            reason = reasons.get(f"{name}:{kind}")
            marks = [pytest.mark.xfail(strict=True, reason=reason)] if reason else []
            found.append(pytest.param(name, kind, marks=marks, id=f"{name}-{kind}"))
    return found


def unpack(name: str, folder: Path) -> Golden:
    """Unpack a table into ``folder`` (once) and load its expectations."""
    path = folder / name
    if not path.exists():
        with zipfile.ZipFile(TABLES / f"{name}.zip") as archive:
            archive.extractall(folder)
    return Golden(name, _document(name), path)


def answers_error(query: Query) -> bool:
    """Return whether pyhudi must fail as Apache Hudi did: for history that was cleaned, and for incremental queries
    without commit times in the rows. Crashes of Apache Hudi do not count."""
    reasons = ("Cleaner cleaned up", "An error occurred while calling")
    return query.error is not None and query.error.startswith(reasons)


def check(golden: Golden, query: Query, table: pa.Table) -> None:
    """Compare the rows of pyhudi with Apache Hudi's.

    Raises:
        AssertionError: Columns or rows differ; the message has the query and the first differences.
    """
    assert tuple(table.column_names) == query.columns, f"{golden.name} {query.options}"
    columns = columns_to_compare(golden, query)
    try:
        compare(encode_table(table, columns), expected_rows(golden, query, columns), columns)
    except AssertionError as error:
        raise AssertionError(f"{golden.name} {query.options}: {error}") from None


def columns_to_compare(golden: Golden, query: Query) -> list[str]:
    """Return all columns of the result, except those that are only informative in merged rows."""
    merged = "_mor_" in golden.name and query.kind != "read_optimized"
    return [name for name in query.columns if not (merged and name in MERGED_ONLY_INFORMATIVE)]


def expected_rows(golden: Golden, query: Query, columns: list[str]) -> list[tuple[Any, ...]]:
    """Return Apache Hudi's rows, reduced to ``columns``, with maps and rows in the order of pyhudi's encoding."""
    assert query.rows is not None
    places = [query.columns.index(name) for name in columns]
    rows = [_as_written(golden, query, row) for row in query.rows]
    return in_order(tuple(row[place] for place in places) for row in rows)


def _image(text: str | None) -> str | None:
    """Return a before or after image without meta columns, which not all images have, and None for Apache Hudi's text
    null."""
    found = None if text is None else json.loads(text)
    if found is None:
        return None
    own = {name: value for name, value in found.items() if not name.startswith("_hoodie_")}
    return json.dumps(own, separators=(",", ":"), ensure_ascii=False)


def _as_written(golden: Golden, query: Query, row: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return the row with known defects of Apache Hudi corrected (``docs/differences.md``)."""
    if query.kind == "cdc":
        return (*row[:2], *(_image(text) for text in row[2:]))
    if golden.name == HALF_ROWS and query.kind == "incremental":
        (snapshot,) = golden.queries("snapshot")
        (whole,) = (found for found in snapshot.rows or () if found[1:3] == row[1:3])  # its number and key
        assert all(value in (mine, None) for value, mine in zip(row, whole, strict=True))
        return whole
    if golden.name == TIMESTAMP_PARTITION[0]:
        place = query.columns.index(TIMESTAMP_PARTITION[1])
        return (*row[:place], int(row[place]), *row[place + 1 :])
    if golden.name != EMPTY_PARTITION_VALUE[0]:
        return row
    place, key = query.columns.index("p1"), query.columns.index("_hoodie_record_key")
    value = row[place]
    if row[key] == EMPTY_PARTITION_VALUE[1]:
        value = ""
    elif query.kind == "incremental" and value is not None:
        value = unquote(value)
    return (*row[:place], value, *row[place + 1 :])


@functools.cache
def _document(name: str) -> dict[str, Any]:
    document: dict[str, Any] = json.loads((TABLES / f"{name}.expected.json").read_text())
    return document


def _queries(document: dict[str, Any], kind: str) -> list[Query]:
    answers = document.get(kind, [])
    return [_query(kind, answer) for answer in (answers if isinstance(answers, list) else [answers])]


def _query(kind: str, answer: dict[str, Any]) -> Query:
    rows = answer.get("rows")
    return Query(
        kind,
        answer.get("as_of"),
        answer.get("begin"),
        answer.get("end"),
        tuple(answer.get("columns", ())),
        None if rows is None else [tuple(row) for row in rows],
        answer.get("error"),
    )
