"""The type VECTOR of Apache Hudi 1.2: lists of a fixed number of floats, doubles or bytes, for embeddings.

In Arrow it is a list of fixed size, whose elements are never null. (The type declares them nullable, because pickling
such lists loses the declaration, and the tasks of a write would have another type.) In files it is the little-endian
bytes of the elements (Avro's fixed, Parquet's FIXED_LEN_BYTE_ARRAY). Both forms have the same buffers, so conversion
copies nothing. In Spark it is an array, marked by metadata of the field. Vectors are top-level columns only.
"""

from __future__ import annotations

import re
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.errors import FormatError, SchemaError, SchemaMismatchError

HUDI_TYPE = "hudi_type"
"""Key in the metadata of a field of Spark that names a type of Apache Hudi, such as ``VECTOR(768)``."""

FOOTER_KEY = "hoodie.vector.columns"
"""Entry in the footer of Parquet files: ``name:VECTOR(3),other:VECTOR(2, DOUBLE)``."""

ELEMENTS: dict[str, pa.DataType] = {"FLOAT": pa.float32(), "DOUBLE": pa.float64(), "INT8": pa.int8()}
"""Element types by name in Avro schemas."""
_NAMES = {kind: name for name, kind in ELEMENTS.items()}
_TEXT = re.compile(r"\s*VECTOR\s*\(\s*(\d+)\s*(?:,\s*(\w+)\s*)?\)\s*", re.IGNORECASE)
_INTERNAL = re.compile(r"vector\[(\d+), (\w+), FIXED_BYTES\]", re.IGNORECASE)
_LISTED = re.compile(r"([^:,()]+):(VECTOR\([^)]*\))")


def vector_type(dimension: int, element: pa.DataType) -> pa.DataType:
    """Return the Arrow type of vectors of a dimension.

    Raises:
        SchemaError: The dimension is not positive.
    """
    if dimension < 1:
        raise SchemaError(f"the dimension of a VECTOR must be at least 1, not {dimension}")
    return pa.list_(element, dimension)


def is_vector(data_type: pa.DataType) -> bool:
    """Return True for a list of fixed size of floats, doubles or bytes."""
    return bool(pa.types.is_fixed_size_list(data_type)) and data_type.value_type in _NAMES


def vector_text(data_type: pa.DataType) -> str:
    """Return the type as Apache Hudi writes it; FLOAT is the default and omitted.

    >>> vector_text(vector_type(3, pa.float64()))
    'VECTOR(3, DOUBLE)'
    """
    name = _NAMES[data_type.value_type]
    return f"VECTOR({data_type.list_size})" if name == "FLOAT" else f"VECTOR({data_type.list_size}, {name})"


def parse_vector(text: str) -> pa.DataType | None:
    """Return the type that a text such as ``VECTOR(3)`` or ``vector(4, int8)`` names; None if it names no vector.

    Raises:
        SchemaError: The dimension is missing or not positive, or the elements have another type.
    """
    if not text.strip().upper().startswith("VECTOR"):
        return None
    match = _TEXT.fullmatch(text)
    name = (match[2] or "FLOAT").upper() if match is not None else ""
    element = ELEMENTS.get("INT8" if name == "BYTE" else name)
    if match is None or element is None:
        raise SchemaError(
            f"{text!r} is not a valid type; a vector is VECTOR(dimension) or VECTOR(dimension, element) with the "
            "elements FLOAT, DOUBLE or INT8"
        )
    return vector_type(int(match[1]), element)


def internal_text(data_type: pa.DataType) -> str:
    """Return the type as the history of schemas has it: ``vector[3, FLOAT, FIXED_BYTES]``."""
    return f"vector[{data_type.list_size}, {_NAMES[data_type.value_type]}, FIXED_BYTES]"


def parse_internal(text: str) -> pa.DataType | None:
    """Return the type that a text of `internal_text` names; None if it names no vector."""
    match = _INTERNAL.fullmatch(text)
    element = None if match is None else ELEMENTS.get(match[2].upper())
    return None if match is None or element is None else vector_type(int(match[1]), element)


def vector_avro(data_type: pa.DataType) -> dict[str, Any]:
    """Return the type in Avro schemas. Vectors of one type have one name."""
    name, dimension = _NAMES[data_type.value_type], data_type.list_size
    return {
        "type": "fixed",
        "name": f"vector_{name.lower()}_{dimension}",
        "namespace": "",
        "size": stored_type(data_type).byte_width,
        "logicalType": "vector",
        "dimension": dimension,
        "elementType": name,
        "storageBacking": "FIXED_BYTES",
    }


def vector_of_avro(avro: dict[str, Any]) -> pa.DataType:
    """Return the type of a fixed of the logical type ``vector``.

    Raises:
        SchemaError: Elements or storage are of an unknown type, or the size is not that of the elements.
    """
    name, backing = str(avro.get("elementType", "FLOAT")), str(avro.get("storageBacking", "FIXED_BYTES"))
    if name not in ELEMENTS or backing != "FIXED_BYTES":
        raise SchemaError(f"vectors of {name} stored as {backing} are not supported; use a newer release of pyhudi")
    vector = vector_type(int(avro["dimension"]), ELEMENTS[name])
    if stored_type(vector).byte_width != avro["size"]:
        raise SchemaError(f"a {vector_text(vector)} does not have {avro['size']} bytes; the table schema is corrupt")
    return vector


def list_type(data_type: pa.DataType) -> pa.DataType:
    """Return the type of the same lists in Spark."""
    return pa.list_(pa.field("element", data_type.value_type, nullable=False))


def stored_type(data_type: pa.DataType) -> pa.DataType:
    """Return the type of the values in files."""
    return pa.binary(data_type.list_size * data_type.value_type.bit_width // 8)


def vector_columns_text(schema: pa.Schema) -> str | None:
    """Return the text for `FOOTER_KEY`; None if there are no vectors."""
    return ",".join(f"{f.name}:{vector_text(f.type)}" for f in schema if is_vector(f.type)) or None


def parse_vector_columns(text: str) -> dict[str, pa.DataType]:
    """Return the columns with vectors in the text of `FOOTER_KEY`, with their types.

    Raises:
        FormatError: A type is not valid.
    """
    try:
        vectors = {name.strip(): parse_vector(kind) for name, kind in _LISTED.findall(text)}
    except SchemaError as error:
        raise FormatError(f"the footer entry {FOOTER_KEY} is not valid: {error}") from error
    return {name: kind for name, kind in vectors.items() if kind is not None}


def vector_bytes(vectors: pa.FixedSizeListArray) -> pa.FixedSizeBinaryArray:
    """Return vectors as stored in files."""
    elements = vectors.values
    width = elements.type.bit_width // 8
    data = elements.buffers()[1]
    data = pa.py_buffer(b"") if data is None else data.slice(elements.offset * width)
    validity = vectors.buffers()[0] if vectors.null_count else None
    return pa.Array.from_buffers(
        stored_type(vectors.type), len(vectors), [validity, data], vectors.null_count, vectors.offset
    )


def with_vector_bytes(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Return rows with vectors as stored in files."""
    for at, field in enumerate(batch.schema):
        if is_vector(field.type):
            batch = batch.set_column(at, field.with_type(stored_type(field.type)), vector_bytes(batch.column(at)))
    return batch


def vectors_of_bytes(stored: pa.Array, target: pa.DataType, path: str = "?") -> pa.FixedSizeListArray:
    """Return the vectors that binary values hold.

    Raises:
        SchemaMismatchError: A value does not have the number of bytes of a vector.
    """
    data_type = stored_type(target)
    if stored.type != data_type:
        try:
            stored = stored.cast(data_type)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
            raise SchemaMismatchError(f"a value of column {path!r} is not a {vector_text(target)}: {error}") from error
    validity, data = stored.buffers()
    start, count = stored.offset * target.list_size, len(stored) * target.list_size
    elements = pa.Array.from_buffers(target.value_type, count, [None, data], 0, start)
    if validity is not None and stored.offset:
        validity = pc.is_valid(stored).buffers()[1]
    return pa.Array.from_buffers(
        target, len(stored), [validity if stored.null_count else None], stored.null_count, children=[elements]
    )


def as_vectors(lists: pa.Array, target: pa.DataType, path: str = "?") -> pa.FixedSizeListArray:
    """Return lists of numbers as vectors.

    Raises:
        SchemaMismatchError: A list has another number of elements than the dimension, or an element is null or not of
            the element type.
    """
    kind = vector_text(target)
    sizes = pc.list_value_length(lists)
    wrong = pc.drop_null(sizes.filter(pc.not_equal(sizes, target.list_size)))
    if len(wrong):
        raise SchemaMismatchError(
            f"column {path!r} is a {kind}, but a value has {wrong[0].as_py()} elements; write {target.list_size}"
        )
    elements = lists.flatten()  # without the elements below null lists
    if elements.null_count:
        raise SchemaMismatchError(f"column {path!r} is a {kind}, but an element of a value is null; provide numbers")
    if elements.type != target.value_type:
        try:
            elements = elements.cast(target.value_type, safe=not pa.types.is_floating(target.value_type))
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
            raise SchemaMismatchError(f"a value of column {path!r} does not fit into a {kind}: {error}") from error
    if not lists.null_count:
        return pa.FixedSizeListArray.from_arrays(elements, type=target)
    dense = pa.FixedSizeListArray.from_arrays(elements, type=target)
    valid = pc.is_valid(lists)
    places = pc.subtract(pc.cumulative_sum(valid.cast(pa.int64())), pa.scalar(1, pa.int64()))
    return dense.take(pc.if_else(valid, places, pa.scalar(None, pa.int64())))


def as_lists(vectors: pa.FixedSizeListArray) -> pa.ListArray:
    """Return vectors as lists of the same elements, the form in which Spark takes them."""
    return vectors.cast(list_type(vectors.type))
