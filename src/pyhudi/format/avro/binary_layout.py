"""Avro types reduced to their binary layout, and the conversion of layouts to the Arrow types of tables.

A *layout* is an Avro schema of the same bytes that has primitive types only: no logical types, no enums (their indexes
instead), no maps (arrays of key and value), and unique names. Decoders thus need to support few types, and all of them
yield the same Arrow values, because the conversion from layout to table is shared.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.errors import FormatError
from pyhudi.format.avro.type_tree import (
    Array,
    AvroType,
    Enum,
    Fixed,
    Map,
    Primitive,
    Record,
    Union,
    is_null,
    record_type,
)
from pyhudi.format.decimals import decimals_from_bytes
from pyhudi.schema.logical_types.vectors import is_vector, vectors_of_bytes

PREFIX_FIELD = "prefix"
"""Field for the bytes before each record, in a layout that has them."""

Restore = Callable[[pa.Array], pa.Array]
Unwrap = Callable[[Any], Any]

RAW_TYPES = {
    "boolean": pa.bool_(),
    "int": pa.int32(),
    "long": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "string": pa.string(),
    "bytes": pa.binary(),
}
"""Arrow types that decoders return for Avro's."""


@dataclass(frozen=True, slots=True)
class Node:
    """One type: its ``layout`` (Avro JSON), ``raw`` (Arrow type returned by decoders) and the conversion to the table's
    type.

    ``is_simple`` is false if the type contains maps of nulls, or unions of several types: their branches are records in
    the layout, and ``unwrap`` converts the pairs (name, record) that fastavro returns for them to raw values.
    """

    layout: Any
    raw: pa.DataType
    restore: Restore
    is_simple: bool = True
    unwrap: Unwrap | None = None


@dataclass(frozen=True, slots=True)
class RecordLayout:
    """Fields of a record by name. Fields of type null have no node, because they take no bytes."""

    fields: tuple[tuple[pa.Field, Node | None], ...]

    @property
    def is_simple(self) -> bool:
        """True if no field has a union of several types, or a map of nulls."""
        return all(node is None or node.is_simple for _, node in self.fields)

    def avro(self, prefix: Any | None = None) -> dict[str, Any]:
        """Return the layout as an Avro record. With ``prefix``, a field of this type precedes the others as
        `PREFIX_FIELD`."""
        fields = [] if prefix is None else [{"name": PREFIX_FIELD, "type": prefix}]
        fields += [
            {"name": f"c{i}", "type": node.layout} for i, (_, node) in enumerate(self.fields) if node is not None
        ]
        return {"type": "record", "name": "row", "fields": fields}

    def select_fields(self, columns: Sequence[str] | None) -> list[tuple[str, pa.Field, Node | None]]:
        """Return the existing ones of the named fields in this order, with their names in the layout; None selects
        all."""
        named_fields = [(f"c{i}", field, node) for i, (field, node) in enumerate(self.fields)]
        if columns is None:
            return named_fields
        by_name = {entry[1].name: entry for entry in named_fields}
        return [by_name[name] for name in dict.fromkeys(columns) if name in by_name]


@functools.lru_cache(maxsize=256)
def record_layout(schema: str) -> RecordLayout:
    """Return the layout of a record schema (Avro JSON).

    Raises:
        FormatError: The schema has items without bytes, whose number cannot be verified.
        SchemaError: The text is not a table schema.
    """
    record = record_type(schema)
    builder = _Builder()
    nodes = [None if is_null(avro) else builder.node(avro) for _, avro in record.fields]
    return RecordLayout(tuple(zip(record.arrow, nodes, strict=True)))


class _Builder:
    def __init__(self) -> None:
        self._count = 0

    def _name(self) -> str:
        self._count += 1
        return f"t{self._count}"

    def node(self, avro: AvroType) -> Node:
        match avro:
            case Primitive():
                return _primitive(avro)
            case Fixed():
                layout = {"type": "fixed", "name": self._name(), "size": avro.size}
                return Node(layout, pa.binary(), _restore_bytes(avro.arrow))
            case Enum():
                return _enum(avro)
            case Array():
                return self._array(avro)
            case Map():
                return self._map(avro)
            case Record():
                return self._record(avro)
            case Union():
                return self._union(avro)

    def _union(self, avro: Union) -> Node:
        values = avro.values
        if len(values) == 1 and len(avro.branches) == 2:
            inner = self.node(values[0][1])
            layout = ["null" if is_null(branch) else inner.layout for branch in avro.branches]
            return Node(layout, inner.raw, inner.restore, inner.is_simple, _optional(inner.unwrap))
        if len(avro.branches) == 1:
            return self._only_branch(values)
        nodes = {i: self.node(branch) for i, branch in values}
        names = {i: self._name() for i in nodes}
        layout = [_wrapper(names[i], nodes[i].layout) if i in nodes else "null" for i in range(len(avro.branches))]
        wrapped = {names[i]: (f"m{k}", nodes[i].unwrap) for k, i in enumerate(nodes)}
        if not avro.is_members:
            return Node(layout, avro.arrow, _same, False, _to_value(wrapped))
        raw = pa.struct([(f"m{k}", node.raw) for k, node in enumerate(nodes.values())])
        return Node(layout, raw, _restore_struct(list(nodes.values()), avro.arrow), False, _to_members(wrapped))

    def _only_branch(self, values: list[tuple[int, AvroType]]) -> Node:
        """Union of one type: the branch index, which is 0, and the value."""
        if not values:
            return Node("long", pa.int64(), lambda array: pa.nulls(len(_first_branch(array))))
        inner = self.node(values[0][1])
        fields = [{"name": "branch", "type": "long"}, {"name": "v", "type": inner.layout}]
        layout = {"type": "record", "name": self._name(), "fields": fields}

        def restore(array: pa.Array) -> pa.Array:
            _first_branch(array.field(0))
            return inner.restore(array.field(1))

        unwrap = _members({"v": inner.unwrap})
        return Node(layout, pa.struct([("branch", pa.int64()), ("v", inner.raw)]), restore, inner.is_simple, unwrap)

    def _array(self, avro: Array) -> Node:
        item = self._item(avro.items)

        def restore(array: pa.Array) -> pa.Array:
            return pa.ListArray.from_arrays(
                array.offsets, item.restore(array.values), type=avro.arrow, mask=_mask(array)
            )

        layout = {"type": "array", "items": item.layout}
        return Node(layout, pa.list_(item.raw), restore, item.is_simple, _each(item.unwrap))

    def _map(self, avro: Map) -> Node:
        # Polars decodes no nulls without a union.
        value = self._item(avro.values) if not is_null(avro.values) else Node("null", pa.null(), _same, False)
        fields = [{"name": "key", "type": "string"}, {"name": "value", "type": value.layout}]
        layout = {"type": "array", "items": {"type": "record", "name": self._name(), "fields": fields}}

        def restore(array: pa.Array) -> pa.Array:
            keys, values = array.values.field(0), value.restore(array.values.field(1))
            return pa.MapArray.from_arrays(array.offsets, keys, values, type=avro.arrow, mask=_mask(array))

        raw = pa.list_(pa.struct([("key", pa.string()), ("value", value.raw)]))
        unwrap = _each(_members({"value": value.unwrap}))
        return Node(layout, raw, restore, value.is_simple, unwrap)

    def _item(self, avro: AvroType) -> Node:
        if _has_no_bytes(avro):
            raise FormatError("the schema has a list whose items take no bytes; such lists are not supported")
        return self.node(avro)

    def _record(self, avro: Record) -> Node:
        nodes = [None if is_null(member) else self.node(member) for _, member in avro.fields]
        stored = [(f"c{i}", node) for i, node in enumerate(nodes) if node is not None]
        fields = [{"name": name, "type": node.layout} for name, node in stored]
        layout = {"type": "record", "name": self._name(), "fields": fields}
        raw = pa.struct([(name, node.raw) for name, node in stored])
        simple = bool(stored) and all(node.is_simple for _, node in stored)
        unwrap = _members({name: node.unwrap for name, node in stored})
        return Node(layout, raw, _restore_struct(nodes, avro.arrow), simple, unwrap)


def _wrapper(name: str, layout: Any) -> dict[str, Any]:
    return {"type": "record", "name": name, "fields": [{"name": "v", "type": layout}]}


def _first_branch(numbers: pa.Array) -> pa.Array:
    if pc.any(pc.not_equal(numbers, 0)).as_py():
        raise FormatError("a value of a single-type Avro union has an invalid branch")
    return numbers


def _has_no_bytes(avro: AvroType) -> bool:
    if isinstance(avro, Record):
        return all(_has_no_bytes(member) for _, member in avro.fields)
    return is_null(avro) or (isinstance(avro, Fixed) and avro.size == 0)


def _primitive(avro: Primitive) -> Node:
    raw = RAW_TYPES[avro.name]
    if avro.name == "bytes":
        return Node(avro.name, raw, _restore_bytes(avro.arrow))
    return Node(avro.name, raw, _same if raw == avro.arrow else lambda array: array.view(avro.arrow))


def _enum(avro: Enum) -> Node:
    names = pa.array(avro.symbols, pa.string())

    def restore(array: pa.Array) -> pa.Array:
        try:
            return names.take(array)
        except (pa.ArrowIndexError, IndexError) as error:
            raise FormatError(f"a value of an Avro enum with {len(names)} symbols is out of range: {error}") from error

    return Node("int", pa.int32(), restore)


def _restore_bytes(arrow: pa.DataType) -> Restore:
    if is_vector(arrow):
        return lambda array: vectors_of_bytes(array, arrow)
    return (lambda array: decimals_from_bytes(array, arrow)) if pa.types.is_decimal(arrow) else _same


def _restore_struct(nodes: Sequence[Node | None], arrow: pa.DataType) -> Restore:
    """Restore structs from the decoded children of ``nodes``."""

    def restore(array: pa.Array) -> pa.Array:
        # Values that decoders store under nulls are undefined.
        valid = array.is_valid() if array.null_count else None
        child_arrays = (_null_unless(valid, array.field(i)) for i in range(array.type.num_fields))
        children = [pa.nulls(len(array)) if node is None else node.restore(next(child_arrays)) for node in nodes]
        return pa.StructArray.from_arrays(children, fields=list(arrow), mask=_mask(array))

    return restore


def _same(array: pa.Array) -> pa.Array:
    return array


def _null_unless(valid: pa.Array | None, array: pa.Array) -> pa.Array:
    return array if valid is None else pc.if_else(valid, array, pa.scalar(None, array.type))


def _mask(array: pa.Array) -> pa.Array | None:
    return array.is_null() if array.null_count else None


def _optional(unwrap: Unwrap | None) -> Unwrap | None:
    return None if unwrap is None else lambda value: None if value is None else unwrap(value)


def _each(unwrap: Unwrap | None) -> Unwrap | None:
    return None if unwrap is None else lambda values: [unwrap(value) for value in values]


def _members(unwraps: dict[str, Unwrap | None]) -> Unwrap | None:
    needed = {name: unwrap for name, unwrap in unwraps.items() if unwrap is not None}
    if not needed:
        return None
    return lambda record: record | {name: unwrap(record[name]) for name, unwrap in needed.items()}


def _to_members(wrapped: dict[str, tuple[str, Unwrap | None]]) -> Unwrap:
    def unwrap(value: Any) -> Any:
        if value is None:
            return None
        member, inner = wrapped[value[0]]
        return {member: value[1]["v"] if inner is None else inner(value[1]["v"])}

    return unwrap


def _to_value(wrapped: dict[str, tuple[str, Unwrap | None]]) -> Unwrap:
    def unwrap(value: Any) -> Any:
        if value is None:
            return None
        inner = wrapped[value[0]][1]
        return value[1]["v"] if inner is None else inner(value[1]["v"])

    return unwrap
