"""Decimals between Arrow and the big-endian two's complement bytes of Avro."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.errors import FormatError
from pyhudi.format.binary_builder import binary_array

_WIDTH = 16
"""Bytes of an Arrow decimal128."""
_LONGEST = 64
"""Maximum number of bytes of a number that is decoded."""


def decimals_from_bytes(array: pa.Array, target: pa.Decimal128Type) -> pa.Array:
    """Return decimals of big-endian two's complement numbers (a binary array); nulls stay null.

    Raises:
        FormatError: A number has no bytes, or more digits than the type.
    """
    count = len(array)
    offsets = np.frombuffer(array.buffers()[1], np.int32, count + 1, array.offset * 4) if count else np.zeros(1, int)
    data = np.frombuffer(array.buffers()[2] or b"", np.uint8)
    if array.null_count:
        valid = array.is_valid().to_numpy(zero_copy_only=False)
        # Nulls are processed as zeros.
        array = pc.fill_null(array, b"\0")
        offsets = np.frombuffer(array.buffers()[1], np.int32, count + 1, array.offset * 4)
        data = np.frombuffer(array.buffers()[2], np.uint8)
    else:
        valid = None
    little = _little_endian(data, offsets.astype(np.int64))
    validity = None if valid is None else pa.array(valid).buffers()[1]
    result = pa.Array.from_buffers(target, count, [validity, pa.py_buffer(little)])
    try:
        result.validate(full=True)
    except pa.ArrowInvalid as error:
        raise FormatError(f"a number does not fit {target}: {error}") from error
    return result


def _little_endian(data: npt.NDArray[np.uint8], offsets: npt.NDArray[np.int64]) -> npt.NDArray[np.uint8]:
    """Return numbers of any length as rows of 16 bytes, least significant byte first."""
    count = len(offsets) - 1
    lengths = np.diff(offsets)
    result = np.empty((count, _WIDTH), np.uint8)
    if count == 0:
        return result
    min_length, max_length = int(lengths.min()), int(lengths.max())
    if min_length == 0:
        raise FormatError("a decimal number has no bytes")
    sign = np.where(data[offsets[:-1]] >= 0x80, np.uint8(0xFF), np.uint8(0))
    if max_length > _WIDTH:
        _check_extension(data, offsets, lengths, sign)
    if min_length == max_length:
        rows = data[offsets[0] : offsets[-1]].reshape(count, max_length)
        width = min(max_length, _WIDTH)
        result[:, :width] = rows[:, max_length - width :][:, ::-1]
        result[:, width:] = sign[:, None]
        return result
    for k in range(_WIDTH):
        within = k < lengths
        result[:, k] = np.where(within, data[np.where(within, offsets[1:] - 1 - k, 0)], sign)
    return result


def _check_extension(
    data: npt.NDArray[np.uint8],
    offsets: npt.NDArray[np.int64],
    lengths: npt.NDArray[np.int64],
    sign: npt.NDArray[np.uint8],
) -> None:
    """Check that bytes beyond 128 bits only repeat the sign."""
    max_length = int(lengths.max())
    problem = FormatError(f"a decimal number of {max_length} bytes exceeds 128 bits")
    if max_length > _LONGEST:
        raise problem
    for k in range(max_length - _WIDTH):
        within = lengths - _WIDTH > k
        if (data[offsets[:-1][within] + k] != sign[within]).any():
            raise problem
    wide = lengths > _WIDTH
    if ((data[offsets[1:][wide] - _WIDTH] ^ sign[wide]) & 0x80).any():
        raise problem


def fixed_of_decimals(array: pa.Array, size: int) -> npt.NDArray[np.uint8]:
    """Return decimals as rows of ``size`` big-endian bytes, undefined for nulls. Numbers must fit."""
    raw = _raw(array)
    if size <= _WIDTH:
        return raw[:, :size][:, ::-1]
    sign = np.where(raw[:, -1:] >= 0x80, np.uint8(0xFF), np.uint8(0))
    return np.concatenate([np.repeat(sign, size - _WIDTH, axis=1), raw[:, ::-1]], axis=1)


def bytes_of_decimals(array: pa.Array) -> pa.Array:
    """Return decimals as binary values, big-endian and as short as possible; nulls stay null."""
    big = _raw(array)[:, ::-1]
    sign = np.where(big[:, :1] >= 0x80, np.uint8(0xFF), np.uint8(0))
    # A byte that repeats the sign is redundant if the next byte has the sign, too.
    spare = (big[:, :-1] == sign) & ((big[:, 1:] ^ sign) < 0x80)
    lead = np.logical_and.accumulate(spare, axis=1).sum(axis=1)
    used = np.arange(_WIDTH) >= lead[:, None]
    result = binary_array(big[used], _WIDTH - lead)
    return pc.if_else(array.is_valid(), result, pa.scalar(None, pa.binary())) if array.null_count else result


def _raw(array: pa.Array) -> npt.NDArray[np.uint8]:
    """Return the stored bytes of a decimal128 array, one row per number, least significant byte first."""
    data = np.frombuffer(array.buffers()[1] or b"", np.uint8, _WIDTH * len(array), _WIDTH * array.offset)
    return data.reshape(len(array), _WIDTH)
