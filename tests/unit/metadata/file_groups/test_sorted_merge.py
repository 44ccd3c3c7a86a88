"""The merge of sorted files gives what the fold of whole files gives, whatever the windows are."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pyhudi.errors import FormatError
from pyhudi.format.hfile.hfile_reader import HFileReader
from pyhudi.format.hfile.hfile_writer import HFileContext, write_hfile
from pyhudi.metadata.file_groups import sorted_merge
from pyhudi.metadata.file_groups.hfile_sources import DeleteSource, HFileSource, Source
from pyhudi.metadata.file_groups.sorted_merge import merge_sorted
from pyhudi.metadata.records.combine_records import Version, fold_versions
from pyhudi.metadata.records.metadata_record import RecordType, encode, record_schema
from tests.properties import examples

VERSION = 9
SCHEMA = record_schema(VERSION)


def values(keys: list[str], number: int, partition: str) -> pa.Array:
    if partition == "files":
        maps = [[(f"{key}.parquet", {"size": number + 1, "isDeleted": number % 3 == 2})] for key in keys]
        kind = pa.map_(pa.string(), pa.struct([("size", pa.int64()), ("isDeleted", pa.bool_())]))
        return encode(RecordType.FILES, pa.array(maps, kind), VERSION)
    payload = {"secondary": keys, "isDeleted": [(len(key) + number) % 3 == 0 for key in keys]}
    if partition == "record_index":
        count = len(keys)
        payload = {
            "partitionName": [f"p{number}"] * count,
            "fileIdHighBits": [number] * count,
            "fileIdLowBits": [number] * count,
            "fileIndex": [0] * count,
            "fileId": [""] * count,
            "instantTime": [number] * count,
            "fileIdEncoding": [0] * count,
        }
        return encode(RecordType.RECORD_INDEX, pa.table(payload), VERSION)
    return encode(RecordType.SECONDARY_INDEX, pa.table(payload), VERSION)


def hfile(keys: list[str], number: int, partition: str, block_size: int) -> tuple[HFileSource, Version]:
    """Keys by their bytes, in blocks of so many bytes; the same as one version."""
    keys = sorted(keys, key=str.encode)
    found = values(keys, number, partition)
    data = write_hfile(pa.array(keys, pa.string()), found, schema=SCHEMA, context=HFileContext(block_size=block_size))
    return HFileSource(HFileReader(data), SCHEMA), Version(pa.array(keys, pa.string()), found, SCHEMA)


KEYS = st.lists(st.text("abé\U0001f600/", min_size=1, max_size=3), unique=True, max_size=40)


@settings(max_examples=examples(60), deadline=None)
@given(
    partition=st.sampled_from(["record_index", "secondary_index_x", "files"]),
    files=st.lists(st.tuples(KEYS, st.booleans()), min_size=1, max_size=5),
    block_size=st.sampled_from([1, 200, 64_000]),
    window=st.sampled_from([1, 300, 1 << 20]),
)
def test_merge_is_the_fold_of_all(
    partition: str, files: list[tuple[list[str], bool]], block_size: int, window: int
) -> None:
    sources: list[Source] = []
    versions = []
    for number, (keys, is_delete) in enumerate(files):
        if is_delete and number:
            sources.append(DeleteSource(pa.array(keys, pa.string())))
            versions.append(Version(deletes=pa.array(keys, pa.string())))
            continue
        source, version = hfile(keys, number, partition, block_size)
        sources.append(source)
        versions.append(version)
    expected_keys, expected_values = fold_versions(partition, versions, VERSION).sorted()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sorted_merge, "_MIN_WINDOW", 1)
        parts = list(merge_sorted(partition, sources, VERSION, window_bytes=window))
    found = [key for keys, _ in parts for key in keys.to_pylist()]
    assert found == expected_keys.to_pylist()
    assert [value for _, part in parts for value in part.to_pylist()] == expected_values.to_pylist()


def test_no_array_is_larger_than_the_windows() -> None:
    keys = [f"{n:036d}" for n in range(60_000)]
    base, _ = hfile(keys, 0, "record_index", 64 * 1024)
    delta, _ = hfile(keys[::100], 1, "record_index", 64 * 1024)
    parts = [len(part) for part, _ in merge_sorted("record_index", [base, delta], VERSION, window_bytes=1 << 20)]
    assert sum(parts) == 60_000
    assert max(parts) <= 20_000


def test_keys_out_of_order_are_refused() -> None:
    class Unsorted:
        def batches(self) -> object:
            for key in (b"b", b"a"):
                yield pa.RecordBatch.from_pydict({"key": pa.array([key]), "value": values(["a"], 0, "record_index")})

    source = HFileSource(Unsorted(), SCHEMA)  # type: ignore[arg-type]
    merged = merge_sorted("record_index", [source], VERSION, window_bytes=2)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sorted_merge, "_MIN_WINDOW", 1)
        assert len(next(merged)[0]) == 1
        with pytest.raises(FormatError, match="not in order"):
            next(merged)
