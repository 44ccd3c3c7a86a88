"""File groups of record indexes."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from pyhudi.metadata.records.file_group_hash import file_group_index_of
from pyhudi.metadata.records.record_index_file_groups import (
    NO_FILE_GROUP,
    RecordIndexFileGroups,
    estimate_file_group_count,
    new_group_ids,
)

# no folder is called ".", which stands for the empty path in the names of groups
_PATHS = st.text(max_size=6).filter(lambda path: path != ".")
_PARTITIONS = st.dictionaries(_PATHS, st.integers(1, 4), min_size=1, max_size=6)


@given(_PARTITIONS, st.lists(st.text(max_size=8), max_size=30), st.data())
def test_keys_stay_in_the_groups_of_their_partition(
    counts: dict[str, int], keys: list[str], data: st.DataObject
) -> None:
    groups = RecordIndexFileGroups.from_ids(new_group_ids(counts), partitioned=True)
    assert len(groups) == sum(counts.values())
    paths = [data.draw(st.sampled_from([*counts, "none of them"])) for _ in keys]
    texts = pa.array(keys, pa.string())
    numbers = groups.numbers(texts, pa.array(paths, pa.string()))
    for key, path, number in zip(keys, paths, numbers.tolist(), strict=True):
        alone = groups.numbers(pa.array([key]), path).tolist()
        assert alone == [number]
        if path not in counts:
            assert number == NO_FILE_GROUP
            continue
        (own,) = file_group_index_of(pa.array([key]), counts[path]).tolist()
        assert groups.ids[number] == new_group_ids({path: counts[path]})[own]
        assert groups.ids[number].startswith(groups.prefix(number))
    assert groups.missing([*counts, "none of them"]) == ["none of them"] * ("none of them" not in counts)


def test_groups_of_a_global_index() -> None:
    ids = [f"record-index-{n:04d}-0" for n in range(3)]
    groups = RecordIndexFileGroups.from_ids(reversed(ids), partitioned=False)
    keys = pa.array(["k0001", "polygenelubricants", ""])
    assert groups.ids == tuple(ids)
    assert np.array_equal(groups.numbers(keys, pa.array(["a", "b", "c"])), file_group_index_of(keys, 3))
    assert groups.missing(["a"]) == []
    assert groups.prefix(2) == "record-index-"
    assert RecordIndexFileGroups.from_written_ids(ids) == groups
    assert groups.prefixes() == groups.prefixes(["a"]) == ["record-index-"]


def test_prefixes_of_a_partitioned_index() -> None:
    ids = new_group_ids({"a": 2, "a-b": 1, "": 1})
    groups = RecordIndexFileGroups.from_written_ids(ids)
    assert groups == RecordIndexFileGroups.from_ids(ids, partitioned=True)
    assert {groups.prefix(number) for number in range(len(groups))} == set(groups.prefixes())
    assert groups.prefixes(["a", "none of them"]) == ["record-index-a-"]
    counts = {prefix: sum(file_id.startswith(prefix) for file_id in ids) for prefix in groups.prefixes()}
    assert counts == {"record-index--": 1, "record-index-a-": 2, "record-index-a%2Db-": 1}


def test_names_without_partitions() -> None:
    assert new_group_ids({"": 2}) == ["record-index--0000-0", "record-index--0001-0"]
    keys, old = pa.array(["a", "b", "c"]), ["record-index-.-0000-0", "record-index-.-0001-0"]
    groups = RecordIndexFileGroups.from_written_ids(old)
    assert np.array_equal(groups.numbers(keys, ""), file_group_index_of(keys, 2))
    assert (groups.missing([""]), groups.prefixes([""])) == ([], ["record-index-.-"])
    both = RecordIndexFileGroups.from_written_ids([*old, "record-index--0000-0"])
    assert set(both.numbers(keys, "").tolist()) == {both.ids.index("record-index--0000-0")}


def test_file_groups_are_as_many_as_apache_hudi_makes() -> None:
    assert estimate_file_group_count(6_000_000, 10, 10_000) == 10
    assert estimate_file_group_count(10**9, 10, 10_000) == -(-2 * 10**9 // (2**30 // 48))
    assert estimate_file_group_count(10**13, 10, 10_000) == 10_000
    assert estimate_file_group_count(5, 3, 3) == 3
