"""Avro types reduced to how their bytes lie, and the way from there to a table's Arrow types.

A *layout* is an Avro schema that says the same bytes with the plain types alone: no logical types, no enums (their
numbers), no maps (arrays of key and value), every name different. Decoders then need to know seven types only, and all
of them give the same Arrow values, because the way from layout to table is here and is one.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.errors import FormatError
from pyhudi.format.decimals import decimals_from_bytes
from pyhudi.schema.arrow_avro import from_avro

PREFIX_FIELD = "prefix"
"""What stands before each record, in a layout that has it."""

Restore = Callable[[pa.Array], pa.Array]


class NoLayoutError(FormatError):
    """A schema whose bytes the plain types cannot say: unions of several types, items without bytes."""


@dataclass(frozen=True, slots=True)
class Node:
    """One type: its ``layout`` (Avro JSON), ``raw`` (Arrow type that a decoder gives for the layout) and the way from
    there to ``type``, the table's."""

    layout: Any
    raw: pa.DataType
    type: pa.DataType
    restore: Restore


@dataclass(frozen=True, slots=True)
class RecordLayout:
    """A record's fields with their names. Those of type null have no node: they have no bytes."""

    fields: tuple[tuple[pa.Field, Node | None], ...]

    def avro(self, prefix: Any | None = None) -> dict[str, Any]:
        """Return the layout as an Avro record; a ``prefix`` type stands in front as `PREFIX_FIELD`."""
        fields = [] if prefix is None else [{"name": PREFIX_FIELD, "type": prefix}]
        fields += [
            {"name": f"c{i}", "type": node.layout} for i, (_, node) in enumerate(self.fields) if node is not None
        ]
        return {"type": "record", "name": "row", "fields": fields}

    def chosen(self, columns: Sequence[str] | None) -> list[tuple[str, pa.Field, Node | None]]:
        """Return the named fields that there are, in that order, with what the layout calls them; None is all."""
        every = [(f"c{i}", field, node) for i, (field, node) in enumerate(self.fields)]
        if columns is None:
            return every
        by_name = {entry[1].name: entry for entry in every}
        return [by_name[name] for name in dict.fromkeys(columns) if name in by_name]


@functools.lru_cache(maxsize=256)
def record_layout(schema: str) -> RecordLayout:
    """Return the layout of a record schema (Avro JSON).

    Raises:
        NoLayoutError: there is none.
        SchemaError: the text is no schema of a table.
    """
    table = from_avro(schema)
    builder = _Builder()
    avro = json.loads(schema)
    return RecordLayout(tuple(zip(table, builder.fields(avro, list(table), ""), strict=True)))


class _Builder:
    """Walks an Avro schema beside its Arrow type; named types may be used again by name."""

    def __init__(self) -> None:
        self._named: dict[str, tuple[dict[str, Any], str]] = {}
        self._count = 0

    def fields(self, avro: dict[str, Any], arrow: list[pa.Field], namespace: str) -> list[Node | None]:
        inner = self._declare(avro, namespace)
        return [
            None if field["type"] == "null" else self.node(field["type"], target.type, inner)
            for field, target in zip(avro["fields"], arrow, strict=True)
        ]

    def node(self, avro: Any, arrow: pa.DataType, namespace: str) -> Node:
        if isinstance(avro, list):
            return self._union(avro, arrow, namespace)
        if isinstance(avro, str):
            known = self._named.get(avro) or self._named.get(f"{namespace}.{avro}")
            if known is None:
                return _plain(avro, arrow)
            return self._complex(*known, arrow)
        if isinstance(avro["type"], dict | list):
            return self.node(avro["type"], arrow, namespace)
        if avro["type"] in ("record", "error", "array", "map", "enum", "fixed"):
            return self._complex(avro, namespace, arrow)
        return self.node(avro["type"], arrow, namespace)

    def _union(self, avro: list[Any], arrow: pa.DataType, namespace: str) -> Node:
        branches = [branch for branch in avro if branch != "null"]
        if len(branches) != 1 or len(avro) != 2:
            raise NoLayoutError(f"a union of {len(avro)} types has no layout")
        inner = self.node(branches[0], arrow, namespace)
        layout = [inner.layout if branch != "null" else "null" for branch in avro]
        return Node(layout, inner.raw, inner.type, inner.restore)

    def _complex(self, avro: dict[str, Any], namespace: str, arrow: pa.DataType) -> Node:
        kind = avro["type"]
        if kind == "array":
            return self._array(self.node(avro["items"], arrow.value_type, namespace), arrow)
        if kind == "map":
            return self._map(self.node(avro["values"], arrow.item_type, namespace), arrow)
        if kind == "enum":
            self._declare(avro, namespace)
            return _enum(tuple(avro["symbols"]))
        if kind == "fixed":
            self._declare(avro, namespace)
            layout = {"type": "fixed", "name": self._name(), "size": avro["size"]}
            return Node(layout, pa.binary(), arrow, _restore_bytes(arrow))
        return self._struct(self.fields(avro, list(arrow), namespace), arrow)

    def _array(self, item: Node, arrow: pa.DataType) -> Node:
        if item.layout == "null":
            raise NoLayoutError("an array of items without bytes has no layout")

        def restore(array: pa.Array) -> pa.Array:
            items = item.restore(array.values)
            return pa.ListArray.from_arrays(array.offsets, items, type=arrow, mask=_mask(array))

        return Node({"type": "array", "items": item.layout}, pa.list_(item.raw), arrow, restore)

    def _map(self, value: Node, arrow: pa.DataType) -> Node:
        fields = [{"name": "key", "type": "string"}, {"name": "value", "type": value.layout}]
        entry = {"type": "record", "name": self._name(), "fields": fields}
        raw = pa.list_(pa.struct([("key", pa.string()), ("value", value.raw)]))

        def restore(array: pa.Array) -> pa.Array:
            keys, values = array.values.field(0), value.restore(array.values.field(1))
            return pa.MapArray.from_arrays(array.offsets, keys, values, type=arrow, mask=_mask(array))

        return Node({"type": "array", "items": entry}, raw, arrow, restore)

    def _struct(self, members: list[Node | None], arrow: pa.DataType) -> Node:
        stored = [(f"c{i}", node) for i, node in enumerate(members) if node is not None]
        if not stored:
            raise NoLayoutError("a record without bytes has no layout")
        fields = [{"name": name, "type": node.layout} for name, node in stored]
        layout = {"type": "record", "name": self._name(), "fields": fields}

        def restore(array: pa.Array) -> pa.Array:
            # what decoders put under a null is not to be looked at
            valid = array.is_valid() if array.null_count else None
            found = (_where(valid, array.field(i)) for i in range(len(stored)))
            children = [pa.nulls(len(array)) if node is None else node.restore(next(found)) for node in members]
            return pa.StructArray.from_arrays(children, fields=list(arrow), mask=_mask(array))

        return Node(layout, pa.struct([(name, node.raw) for name, node in stored]), arrow, restore)

    def _name(self) -> str:
        self._count += 1
        return f"t{self._count}"

    def _declare(self, avro: dict[str, Any], namespace: str) -> str:
        """Note a named type; return the namespace inside it."""
        name = avro["name"]
        space: str = name.rpartition(".")[0] if "." in name else avro.get("namespace", namespace)
        self._named[name if "." in name or not space else f"{space}.{name}"] = (avro, namespace)
        return space


_RAW = {
    "boolean": pa.bool_(),
    "int": pa.int32(),
    "long": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "string": pa.string(),
    "bytes": pa.binary(),
}


def _plain(name: str, arrow: pa.DataType) -> Node:
    if name == "null":
        raise NoLayoutError("a value without bytes has no layout here")
    raw = _RAW[name]
    if name == "bytes":
        return Node(name, raw, arrow, _restore_bytes(arrow))
    return Node(name, raw, arrow, _same if raw == arrow else lambda array: array.view(arrow))


def _enum(symbols: tuple[str, ...]) -> Node:
    names = pa.array(symbols, pa.string())

    def restore(array: pa.Array) -> pa.Array:
        try:
            return names.take(array)
        except (pa.ArrowIndexError, IndexError) as e:
            raise FormatError(f"an Avro enum of {len(symbols)} symbols has a value with another number: {e}") from e

    return Node("int", pa.int32(), pa.string(), restore)


def _restore_bytes(arrow: pa.DataType) -> Restore:
    return (lambda array: decimals_from_bytes(array, arrow)) if pa.types.is_decimal(arrow) else _same


def _same(array: pa.Array) -> pa.Array:
    return array


def _where(valid: pa.Array | None, array: pa.Array) -> pa.Array:
    return array if valid is None else pc.if_else(valid, array, pa.scalar(None, array.type))


def _mask(array: pa.Array) -> pa.Array | None:
    return array.is_null() if array.null_count else None
