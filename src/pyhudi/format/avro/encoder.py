"""Encoder of Arrow columns to Avro records, column by column.

Each column is encoded as pieces of bytes, one per row. Short pieces (numbers, union branches, lengths) are collected in
a matrix whose unused bytes are removed; long pieces (texts, lists) remain Arrow arrays. Arrow's join of binary arrays
then concatenates the pieces of each row.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.errors import FormatError
from pyhudi.format import varint
from pyhudi.format.avro.container import encode_long
from pyhudi.format.avro.type_tree import Array, AvroType, Enum, Fixed, Map, Primitive, Record, Union, is_null
from pyhudi.format.binary_builder import BinaryRowBuilder
from pyhudi.format.decimals import bytes_of_decimals, fixed_of_decimals
from pyhudi.schema.logical_types.vectors import is_vector, vector_bytes

Bytes = npt.NDArray[np.uint8]
Mask = npt.NDArray[np.bool_]


def encode_records(
    record: Record,
    columns: Mapping[str, pa.Array],
    count: int,
    constants: Mapping[str, str | None] | None = None,
    *,
    prefixed: bool = False,
) -> pa.BinaryArray:
    """Return ``count`` records as Avro binary, one array value per record.

    Args:
        record: Type of the records (`pyhudi.format.avro.type_tree.record_type`).
        columns: Arrays by field name, of the Arrow types of the record's fields, optionally dictionary-encoded.
        count: Length of the arrays.
        constants: Fields with the same text (or null) in every record.
        prefixed: Precede each record by its length in four bytes.

    Raises:
        FormatError: A field has neither column nor constant, or a column has another type, or nulls in a non-nullable
            field.
    """
    encoder = RecordEncoder(count)
    constants = constants or {}
    for (name, avro), field in zip(record.fields, record.arrow, strict=True):
        if name in constants:
            encoder.rows.constant(_constant(name, avro, constants[name]))
            continue
        column = columns.get(name)
        if column is None:
            raise FormatError(f"field {name!r} of the records is missing in the input")
        if pa.types.is_dictionary(column.type):
            column = column.dictionary_decode()
        if column.type != field.type:
            raise FormatError(
                f"column {name!r} has type {column.type}, but the schema of the records requires {field.type}"
            )
        encoder.value(avro, column, name)
    return encoder.rows.joined(prefixed=prefixed)


def _constant(name: str, avro: AvroType, text: str | None) -> bytes:
    branches = avro.branches if isinstance(avro, Union) else (avro,)
    names = [branch.name if isinstance(branch, Primitive) else "" for branch in branches]
    branch_name = "null" if text is None else "string"
    if branch_name not in names:
        raise FormatError(f"invalid value {text!r} of field {name!r}")
    branch = encode_long(names.index(branch_name)) if isinstance(avro, Union) else b""
    return branch if text is None else branch + encode_long(len(text.encode())) + text.encode()


_KEY = Primitive("string", pa.string())


class RecordEncoder:
    """Appends encoded values of all types to a number of rows (``rows``)."""

    def __init__(self, count: int) -> None:
        self._count = count
        self.rows = BinaryRowBuilder(count)

    def value(self, avro: AvroType, array: pa.Array, path: str) -> None:
        """Append one value to each row."""
        if not isinstance(avro, Union):
            if array.null_count and not is_null(avro):
                raise FormatError(
                    f"{array.null_count} of {len(array)} values of the non-nullable field {path!r} are null"
                )
            self.present(avro, array, None, path)
        elif len(avro.branches) == 2 and avro.null_branch is not None and avro.values:
            self._optional(avro.null_branch, *avro.values[0], array, path)
        else:
            self._wide(avro, array, path)

    def _optional(self, null: int, branch: int, avro: AvroType, array: pa.Array, path: str) -> None:
        """A union of null and one type."""
        if array.null_count:
            valid = _valid(array)
            self.rows.short(np.where(valid, np.uint8(branch << 1), np.uint8(null << 1))[:, None])
            self.present(avro, array, valid, path)
        else:
            self.rows.short(np.full((self._count, 1), branch << 1, np.uint8))
            self.present(avro, array, None, path)

    def _wide(self, avro: Union, array: pa.Array, path: str) -> None:
        """A union of several types: a struct with at most one member set, or numbers of the widest type."""
        numbers = np.full(self._count, -1 if avro.null_branch is None else avro.null_branch, np.int64)
        choices = []
        for k, (branch, inner) in enumerate(avro.values):
            if avro.is_members:
                column = pc.if_else(array.is_valid(), array.field(k), pa.scalar(None, inner.arrow))
            elif inner.arrow == avro.arrow:
                column = array
            else:
                continue
            numbers[_valid(column)] = branch
            choices.append((branch, inner, column))
        if (numbers < 0).any():
            raise FormatError(f"values of the non-nullable field {path!r} are null")
        self.rows.short(*varint.encode(numbers))
        for branch, inner, column in choices:
            self._scattered(inner, column, numbers == branch, path)

    def present(self, avro: AvroType, array: pa.Array, valid: Mask | None, path: str) -> None:
        """Append the values of the ``valid`` rows (None: all); those of other rows are null."""
        match avro:
            case Primitive("string"):
                self._bytes(array.cast(pa.binary()), valid)
            case Primitive("bytes"):
                self._bytes(bytes_of_decimals(array) if pa.types.is_decimal(array.type) else array, valid)
            case Primitive("int" | "long"):
                self._varint(_integers(array), valid)
            case Primitive():
                self._plain(avro, array, valid)
            case Enum():
                numbers = pc.index_in(array, pa.array(avro.symbols, pa.string()))
                if numbers.null_count > array.null_count:
                    raise FormatError(f"a value of {path!r} is not one of {', '.join(avro.symbols)}")
                self._varint(_integers(numbers), valid)
            case Fixed():
                self.rows.short(*_masked(_fixed(avro, array, path), valid))
            case Record() if valid is None:
                for i, (name, member) in enumerate(avro.fields):
                    self.value(member, array.field(i), f"{path}.{name}")
            case Record() | Union():
                self._scattered(avro, array, _valid(array) if valid is None else valid, path)
            case Array():
                items = _encoded(avro.items, array.flatten(), f"{path}.element")
                self._items(items, _integers(pc.list_value_length(array)), valid)
            case Map():
                keys, values, sizes = _entries(array)
                entries = RecordEncoder(len(keys))
                entries.value(_KEY, keys, f"{path}.key")
                entries.value(avro.values, values, f"{path}.value")
                self._items(entries.rows.joined(), sizes, valid)

    def _plain(self, avro: Primitive, array: pa.Array, valid: Mask | None) -> None:
        """Append values with the same number of bytes each."""
        if avro.name == "boolean":
            flags = pc.fill_null(array, False).cast(pa.uint8()).to_numpy()
            self.rows.short(*_masked(flags[:, None], valid))
        elif avro.name != "null":
            width = 4 if avro.name == "float" else 8
            raw = np.frombuffer(array.buffers()[1] or b"", np.uint8, width * self._count, width * array.offset)
            self.rows.short(*_masked(raw.reshape(self._count, width), valid))

    def _scattered(self, avro: AvroType, array: pa.Array, valid: Mask, path: str) -> None:
        """Append values of some rows, which are encoded separately."""
        some = _encoded(avro, array.filter(pa.array(valid)), path)
        self.rows.long(some.take(pa.array(np.cumsum(valid) - 1, pa.int64(), mask=~valid)))

    def _varint(self, numbers: npt.NDArray[np.int64], valid: Mask | None) -> None:
        data, used = varint.encode(numbers)
        self.rows.short(data, used if valid is None else used & valid[:, None])

    def _bytes(self, array: pa.Array, valid: Mask | None) -> None:
        self._varint(_integers(pc.binary_length(array)), valid)
        self.rows.long(array)

    def _items(self, items: pa.BinaryArray, sizes: npt.NDArray[np.int64], valid: Mask | None) -> None:
        """Append lists of the given sizes: size, items, and a zero; only the zero for empty lists."""
        self._varint(sizes, sizes > 0)
        bounds = np.zeros(self._count + 1, np.int64)
        np.cumsum(sizes, out=bounds[1:])
        offsets = np.frombuffer(items.buffers()[1], np.int32, len(items) + 1, 4 * items.offset)[bounds]
        data = [None, pa.py_buffer(offsets), items.buffers()[2]]
        self.rows.long(pa.Array.from_buffers(pa.binary(), self._count, data))
        self.rows.short(*_masked(np.zeros((self._count, 1), np.uint8), valid))


def _encoded(avro: AvroType, array: pa.Array, path: str) -> pa.BinaryArray:
    """Encode values separately, one binary value each."""
    encoder = RecordEncoder(len(array))
    encoder.value(avro, array, path)
    return encoder.rows.joined()


def _entries(maps: pa.Array) -> tuple[pa.Array, pa.Array, npt.NDArray[np.int64]]:
    """Return keys and values of all maps, and the size of each map; null maps have none."""
    offsets = maps.offsets.to_numpy().astype(np.int64)
    sizes = np.diff(offsets)
    if maps.null_count:
        sizes = np.where(_valid(maps), sizes, 0)
    count = int(sizes.sum())
    if count == offsets[-1] - offsets[0]:
        return maps.keys.slice(offsets[0], count), maps.items.slice(offsets[0], count), sizes
    # There are values under nulls.
    ends = np.cumsum(sizes)
    places = pa.array(np.repeat(offsets[:-1] - (ends - sizes), sizes) + np.arange(count))
    return maps.keys.take(places), maps.items.take(places), sizes


def _masked(data: Bytes, valid: Mask | None) -> tuple[Bytes, Mask | None]:
    return data, None if valid is None else np.repeat(valid[:, None], data.shape[1], axis=1)


def _fixed(avro: Fixed, array: pa.Array, path: str) -> Bytes:
    if pa.types.is_decimal(array.type):
        return fixed_of_decimals(array, avro.size)
    if is_vector(array.type):
        array = vector_bytes(array)
    try:
        same = array.cast(pa.binary(avro.size))
    except pa.ArrowInvalid as error:
        raise FormatError(f"a value of {path!r} does not have {avro.size} bytes: {error}") from error
    count = len(same)
    raw = np.frombuffer(same.buffers()[1] or b"", np.uint8, count * avro.size, same.offset * avro.size)
    return raw.reshape(count, avro.size)


def _valid(array: pa.Array) -> Mask:
    flags: Mask = array.is_valid().to_numpy(zero_copy_only=False)
    return flags


def _integers(array: pa.Array) -> npt.NDArray[np.int64]:
    """Return the stored numbers of integers, dates and times, with zeros for nulls."""
    stored = array.view(pa.int32() if array.type.bit_width == 32 else pa.int64())
    numbers = (pc.fill_null(stored, 0) if stored.null_count else stored).to_numpy()
    result: npt.NDArray[np.int64] = numbers.astype(np.int64, copy=False)
    return result
