"""Entries of many blocks at once are those of each block by itself, or are refused as they are."""

from __future__ import annotations

import struct

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pyhudi.errors import FormatError
from pyhudi.format.hfile import hfile_blocks, key_values
from pyhudi.format.hfile.key_values import ENTRY_SCHEMA, Entries
from tests.properties import examples

ENTRY = st.tuples(st.binary(max_size=6), st.binary(max_size=30), st.booleans())


def entry(key: bytes, value: bytes, *, tail: bool, behind: bytes) -> bytes:
    stored = struct.pack(">H", len(key)) + key + (hfile_blocks.KEY_TAIL if tail else b"")
    return struct.pack(">ii", len(stored), len(value)) + stored + value + behind


def parsed(parts: list[bytes], *, has_sequence: bool) -> tuple[pa.RecordBatch, list[int]] | None:
    """The entries and the bounds of blocks; None if they are refused."""
    try:
        found = Entries.parse(parts, has_sequence=has_sequence)
        return found.batch(), list(found.bounds)
    except FormatError:
        return None


@settings(deadline=None, max_examples=examples(200))
@given(
    st.lists(st.lists(ENTRY, min_size=1, max_size=5), min_size=20, max_size=40),
    st.sampled_from([None, b"\0", b"\x05", b"\x8f\xff"]),
    st.data(),
)
def test_many_blocks_and_one_after_the_other(
    blocks: list[list[tuple[bytes, bytes, bool]]], behind: bytes | None, data: st.DataObject
) -> None:
    keys = iter(sorted(key for block in blocks for key, _, _ in block))
    parts = [
        b"".join(entry(next(keys), value, tail=tail, behind=behind or b"") for _, value, tail in block)
        for block in blocks
    ]
    if data.draw(st.booleans(), "damaged"):
        at = data.draw(st.integers(0, len(parts) - 1))
        byte = data.draw(st.integers(0, len(parts[at]) - 1))
        flipped = parts[at][byte] ^ 1 << data.draw(st.integers(0, 7))
        parts[at] = parts[at][:byte] + bytes((flipped,)) + parts[at][byte + 1 :]
    together = parsed(parts, has_sequence=behind is not None)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(key_values, "_LOCKSTEP_BLOCKS", len(parts) + 1)
        assert parsed(parts, has_sequence=behind is not None) == together
    alone = [parsed([part], has_sequence=behind is not None) for part in parts]
    if together is not None:
        batches = [found[0] for found in alone if found is not None]
        assert pa.Table.from_batches([together[0]]).equals(
            pa.Table.from_batches(batches, ENTRY_SCHEMA).combine_chunks()
        )
