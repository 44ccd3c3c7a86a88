"""CDC logs of merged base files, in each mode, against the rows before and after."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pyhudi.config.enums import CdcMode
from pyhudi.format.log import LogSchema, decode_records, scan_blocks
from pyhudi.format.log.cdc_schema import cdc_schema
from pyhudi.schema.converters.arrow_avro import to_avro
from pyhudi.schema.meta_columns import add_meta_columns
from pyhudi.storage.local_storage import LocalStorage
from pyhudi.timeline.markers import Markers
from pyhudi.write.settings.log_settings import CdcSettings
from tests.properties import examples
from tests.unit.write.handles.file_groups import SCHEMA, SECOND, Group


def logged(mode: CdcMode) -> CdcSettings:
    schema = cdc_schema(mode, to_avro(add_meta_columns(SCHEMA), "t"))
    return CdcSettings(mode, LogSchema(schema, pa.schema([]), 9))


def own(row: dict[str, Any]) -> dict[str, Any]:
    return {name: row[name] for name in SCHEMA.names}


@settings(deadline=None, max_examples=examples(25))
@given(
    changes=st.dictionaries(st.integers(0, 9), st.booleans(), max_size=10),
    inserts=st.integers(0, 3),
    mode=st.sampled_from(list(CdcMode)),
    hard=st.booleans(),
)
def test_a_log_has_what_the_merge_changed(
    changes: dict[int, bool], inserts: int, mode: CdcMode, hard: bool, tmp_path_factory: pytest.TempPathFactory
) -> None:
    if not changes and not inserts:
        return
    group = Group(tmp_path_factory.mktemp("table"), [f"k{i}" for i in range(10)])
    incoming = [group.row(p, f"k{p}", 200, delete) for p, delete in sorted(changes.items())]
    incoming += [group.row(None, f"n{i}", 1) for i in range(inserts)]
    merged = group.merge(incoming, cdc=logged(mode), hard_deletes=hard)
    before = {row["id"]: own(row) for row in group.rows}
    after = {row["id"]: own(row) for row in merged["rows"]}
    if not after and hard:
        assert merged["cdcStats"] is None, "a delete of all rows is told by the counts"
        return
    ((path, size),) = merged["cdcStats"]
    assert path == f"p/.{group.file_id}_{SECOND}.log.1_3-5-7.cdc"
    assert (group.folder / path).stat().st_size == size
    assert path in Markers(LocalStorage(group.folder), SECOND).list()["data_path"].to_pylist()
    with (group.folder / path).open("rb") as source:
        rows = [row for block in scan_blocks(source) for row in decode_records(block).to_pylist()]
    expected = {}
    for key in before.keys() | after.keys():
        old, new = before.get(key), after.get(key)
        if old != new:
            expected[key] = ("i" if old is None else "d" if new is None else "u", old, new)
    if mode is CdcMode.DATA_BEFORE_AFTER:
        found = {(row["after"] or row["before"])["id"]: (row["op"], row["before"], row["after"]) for row in rows}
        assert {row["ts_ms"] for row in rows} <= {SECOND}
        assert found == expected
    else:
        assert {row["record_key"]: row["op"] for row in rows} == {key: op for key, (op, _, _) in expected.items()}
        if mode is CdcMode.DATA_BEFORE:
            assert {row["record_key"]: row["before"] for row in rows} == {k: old for k, (_, old, _) in expected.items()}
    assert len(rows) == len(expected)
