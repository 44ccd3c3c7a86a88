"""What becomes of keys in a record index: those that move, vanish, or are in two places."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from pyhudi.metadata.records.metadata_record import RECORD_INDEX_PAYLOAD, decode, record_schema
from pyhudi.metadata.records.record_index_file_groups import RecordIndexFileGroups, new_group_ids
from pyhudi.metadata.records.record_locations import decode_locations, encode_locations
from pyhudi.schema.meta_fields import RECORD_KEY
from pyhudi.spark.helper_columns import INDEX_LOCATION
from pyhudi.spark.indexes.record_index.record_index_writer import KeyLocations, LocationMerge, RecordIndexWrite
from pyhudi.storage.local_storage import LocalStorage

A, B, C = (f"{letter * 8}-0000-0000-0000-000000000000-0" for letter in "abc")
FILES = pa.table(
    {
        "partition": ["p", "p", "q"],
        "file_id": [A, B, C],
        "millis": pa.array([1, 1, 1], pa.int64()),
        "number": pa.array([0, 1, 2], pa.int32()),
    }
)
PARTITIONS = pa.array(["p", "q"])
FROM_P, FROM_Q = -1, -2


def rows(keys: list[str], numbers: list[int]) -> pa.Table:
    return pa.table({RECORD_KEY: keys, INDEX_LOCATION: pa.array(numbers, pa.int32())})


class Known:
    """An index that knows some keys: key → number of the file."""

    def __init__(self, known: dict[str, int]) -> None:
        self._known = known

    def lookup(self, _: str, keys: pa.Array, __: Any, *, prefix: str) -> pa.Table:  # noqa: ARG002
        mine = [key for key in keys.to_pylist() if key in self._known]
        rows = FILES.select(["partition", "file_id", "millis"]).take(
            pa.array([self._known[k] for k in mine], pa.int64())
        )
        found = decode(encode_locations(rows, 9), record_schema(9), [RECORD_INDEX_PAYLOAD])
        return pa.table([pa.array(mine, pa.string()), found[RECORD_INDEX_PAYLOAD]], names=["key", RECORD_INDEX_PAYLOAD])


@pytest.mark.parametrize(
    ("events", "known", "there", "deletes", "duplicates"),
    [
        # new, changed where it is, deleted, and what was never there
        ([("n", 0), ("c", 1), ("d", FROM_P), ("x", FROM_P)], {"c": 1, "d": 0}, {"n": A, "c": B}, ["d"], 0),
        # moved; deleted in one partition and known in another
        ([("m", 2), ("m", FROM_P), ("d", FROM_P)], {"m": 0, "d": 2}, {"m": C}, [], 0),
        # in two files at a time, in another one already, gone from elsewhere
        ([("a", 0), ("a", 2), ("b", 0), ("c", 0), ("c", FROM_P)], {"b": 1, "c": 2}, {"a": C, "b": A, "c": A}, [], 3),
        # twice in one file
        ([("a", 0), ("a", 0)], {}, {"a": A}, [], 0),
        ([("d", FROM_Q), ("d", FROM_P)], {"d": 0}, {}, ["d"], 0),
    ],
)
def test_keys_of_a_global_index(
    events: list[tuple[str, int]], known: dict[str, int], there: dict[str, str], deletes: list[str], duplicates: int
) -> None:
    groups = RecordIndexFileGroups.from_ids(["record-index-0000-0"], partitioned=False)
    current: Any = Known(known)
    target = RecordIndexWrite(
        LocalStorage("/nowhere"), "20260101000000000", 9, groups, [], current, looks_up_added=True
    )
    keys, numbers = (list(column) for column in zip(*events, strict=True))
    merge = LocationMerge.from_locations(KeyLocations(FILES, PARTITIONS), target)
    records, found = merge.records(0, rows(keys, numbers))
    where = decode_locations(decode(records.values, record_schema(9))[RECORD_INDEX_PAYLOAD])["file_id"].to_pylist()
    assert dict(zip(records.keys.to_pylist(), where, strict=True)) == there
    assert records.deletes.to_pylist() == deletes
    assert found == duplicates


def test_keys_of_a_partitioned_index_are_deleted_unseen() -> None:
    groups = RecordIndexFileGroups.from_ids(new_group_ids({"p": 1, "q": 1}), partitioned=True)
    current: Any = Known({})
    target = RecordIndexWrite(LocalStorage("/nowhere"), "20260101000000000", 9, groups, [], current)
    merge = LocationMerge.from_locations(KeyLocations(FILES, PARTITIONS), target)
    records, duplicates = merge.records(0, rows(["a", "b", "b"], [0, FROM_P, 1]))
    assert (sorted(records.keys.to_pylist()), records.deletes.to_pylist(), duplicates) == (["a", "b"], [], 0)
    gone = merge.records(0, rows(["a", "b"], [FROM_P, FROM_P]))[0]
    assert (len(gone.keys), gone.deletes.to_pylist()) == (0, ["a", "b"])
