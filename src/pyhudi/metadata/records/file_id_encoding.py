"""File ids in record index values, encoded as numbers; see docs/format/metadata.md, 2.8."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

_HEX = np.frombuffer(b"0123456789abcdef", np.uint8)
_DASHES = (8, 13, 18, 23)
_UUID = 36


def file_ids_of(locations: pa.StructArray) -> pa.StringArray:
    """Return the file ids of ``recordIndexMetadata``; null for null."""
    count = len(locations)
    texts = _uuids(locations)
    index = locations.field("fileIndex")
    numbered = pc.binary_join_element_wise(texts, index.cast(pa.string()), "-")
    made = pc.if_else(pc.fill_null(pc.greater_equal(index, 0), False), numbered, texts)
    plain = pc.fill_null(pc.equal(locations.field("fileIdEncoding"), 0), True)
    ids = pc.if_else(plain, made, locations.field("fileId"))
    return ids if not locations.null_count else pc.if_else(locations.is_valid(), ids, pa.nulls(count, pa.string()))


def _uuids(locations: pa.StructArray) -> pa.StringArray:
    halves = [
        pc.fill_null(locations.field(name), 0).to_numpy(zero_copy_only=False).astype(np.int64)
        for name in ("fileIdHighBits", "fileIdLowBits")
    ]
    raw = np.stack(halves, axis=1).astype(">i8").view(np.uint8).reshape(len(locations), 16)
    digits = np.stack([_HEX[raw >> 4], _HEX[raw & 15]], axis=2).reshape(len(locations), 32)
    text: npt.NDArray[np.uint8] = np.full((len(locations), _UUID), ord("-"), np.uint8)
    text[:, [i for i in range(_UUID) if i not in _DASHES]] = digits
    offsets = (np.arange(len(locations) + 1) * _UUID).astype(np.int32)
    return pa.Array.from_buffers(
        pa.string(), len(locations), [None, pa.py_buffer(offsets), pa.py_buffer(text.reshape(-1))]
    )
