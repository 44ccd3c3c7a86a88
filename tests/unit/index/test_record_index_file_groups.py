"""File groups of record indexes."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from pyhudi.index.record_index_file_groups import NO_FILE_GROUP, RecordIndexFileGroups, new_group_ids
from pyhudi.metadata.records.file_group_hash import file_group_index_of

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
