"""Content of delete blocks as written by releases since 0.14: content version 3, an Avro list."""

from __future__ import annotations

import struct

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.errors import FormatError
from pyhudi.format.avro.container import encode_long
from pyhudi.format.avro.encoder import RecordEncoder
from pyhudi.format.avro.type_tree import Primitive, Union
from pyhudi.format.log.block_framing import Buffer
from pyhudi.format.log.delete_ordering import AVRO_NAMES, NATURAL_COLUMN, OrderingKind, to_stored
from pyhudi.schema.meta_fields import PARTITION_PATH, RECORD_KEY

_TEXT = Union((Primitive("null", pa.null()), Primitive("string", pa.string())), pa.string())
CONTENT_VERSION = 3
_NATURAL = bytes((OrderingKind.INT << 1, 0))
"""Default ordering value: the int 0."""


def delete_content(deletes: pa.Table, ordering: pa.Schema, table_version: int) -> list[Buffer]:
    """Return the content of a DELETE block.

    Args:
        deletes: Columns as returned by `pyhudi.format.log.decoding.delete_block.decode_deletes`. The ordering fields
            and `NATURAL_COLUMN` may be missing: such deletes have the default ordering value, and so have those whose
            only ordering field is null.
        ordering: Ordering fields of the table with their types.
        table_version: 6, 8 or 9.

    Raises:
        FormatError: An ordering field has an unsupported type, or there are several before version 9.
    """
    if len(ordering) > 1 and table_version < 9:
        raise FormatError(
            f"deletes in a table of version {table_version} have one ordering value, but there are "
            f"{len(ordering)} ordering fields: {', '.join(ordering.names)}"
        )
    flat = deletes.combine_chunks()
    count = flat.num_rows
    encoder = RecordEncoder(count)
    for name in (RECORD_KEY, PARTITION_PATH):
        encoder.value(_TEXT, _column(flat, name), name)
    _add_ordering(encoder, flat, ordering)
    body = encoder.rows.joined()
    data = memoryview(body.buffers()[2])[: body.buffers()[2].size] if count else memoryview(b"")
    size = int(pc.sum(pc.binary_length(body)).as_py() or 0)
    start = encode_long(count) if count else b""
    head = struct.pack(">ii", CONTENT_VERSION, len(start) + size + 1) + start
    return [head, data[:size], b"\0"]


def _add_ordering(encoder: RecordEncoder, deletes: pa.Table, ordering: pa.Schema) -> None:
    stored = [to_stored(_column(deletes, field.name), field) for field in _present_fields(deletes, ordering)]
    natural = _natural(deletes, [values for _, values in stored])
    if not stored or natural.all():
        encoder.rows.constant(_NATURAL)
        return
    real = ~natural
    if len(stored) == 1:
        kind, values = stored[0]
        encoder.rows.short(
            np.where(natural[:, None], np.frombuffer(_NATURAL, np.uint8), np.uint8(kind << 1)),
            np.stack([np.ones(len(natural), np.bool_), natural], axis=1),
        )
        encoder.present(Primitive(AVRO_NAMES[kind], values.type), _null_unless(real, values), real, ordering.names[0])
        return
    head = np.frombuffer(bytes((OrderingKind.ARRAY << 1, 1 << 1, len(stored) << 1)), np.uint8)
    encoder.rows.short(np.where(natural[:, None], np.frombuffer(_NATURAL + b"\0", np.uint8), head), _but_last(natural))
    for name, (kind, values) in zip(ordering.names, stored, strict=True):
        valid = real & values.is_valid().to_numpy(zero_copy_only=False)
        branch = kind if kind < OrderingKind.ARRAY else kind - 1
        encoder.rows.short(np.where(valid, np.uint8(branch << 1), np.uint8(0))[:, None], real[:, None])
        encoder.present(Primitive(AVRO_NAMES[kind], values.type), _null_unless(valid, values), valid, name)
    encoder.rows.short(np.zeros((len(natural), 1), np.uint8), real[:, None])


def _present_fields(deletes: pa.Table, ordering: pa.Schema) -> list[pa.Field]:
    """Return the ordering fields, or none if the deletes have none of them."""
    missing = [field.name for field in ordering if field.name not in deletes.column_names]
    if missing and len(missing) < len(ordering):
        raise FormatError(f"deletes have some ordering fields, but lack {', '.join(missing)}")
    return [] if missing else list(ordering)


def _natural(deletes: pa.Table, values: list[pa.Array]) -> npt.NDArray[np.bool_]:
    """Return the deletes with the default ordering value: those marked so, and those whose only value is null."""
    natural = np.zeros(deletes.num_rows, np.bool_)
    if NATURAL_COLUMN in deletes.column_names:
        natural |= _column(deletes, NATURAL_COLUMN).to_numpy(zero_copy_only=False)
    if len(values) == 1:
        natural |= values[0].is_null().to_numpy(zero_copy_only=False)
    return natural


def _null_unless(valid: npt.NDArray[np.bool_], values: pa.Array) -> pa.Array:
    return pc.if_else(pa.array(valid), values, pa.scalar(None, values.type))


def _but_last(natural: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
    """Return a mask of the bytes to write, of three: all but the last one for the default."""
    both = np.ones((len(natural), 2), np.bool_)
    return np.concatenate([both, ~natural[:, None]], axis=1)


def _column(table: pa.Table, name: str) -> pa.Array:
    column = table[name]
    flat = column.chunk(0) if column.num_chunks else pa.array([], column.type)
    return flat.dictionary_decode() if pa.types.is_dictionary(flat.type) else flat
