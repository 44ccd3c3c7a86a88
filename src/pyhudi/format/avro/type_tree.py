"""Avro schema of a table as a tree, with the Arrow type of each Avro type and with named types resolved.

Encoders and decoders traverse this tree. `pyhudi.schema` defines the Arrow type of each Avro type.
"""

from __future__ import annotations

import functools
import json
from dataclasses import dataclass
from typing import Any, TypeAlias

import pyarrow as pa

from pyhudi.schema.converters.arrow_avro import from_avro


@dataclass(frozen=True, slots=True)
class Primitive:
    """null, boolean, int, long, float, double, bytes or string, regardless of logical types."""

    name: str
    arrow: pa.DataType


@dataclass(frozen=True, slots=True)
class Fixed:
    """Fixed number of bytes."""

    size: int
    arrow: pa.DataType


@dataclass(frozen=True, slots=True)
class Enum:
    """Index of a symbol; text in Arrow."""

    symbols: tuple[str, ...]
    arrow: pa.DataType


@dataclass(frozen=True, slots=True)
class Array:
    """List of items."""

    items: AvroType
    arrow: pa.DataType


@dataclass(frozen=True, slots=True)
class Map:
    """Map from texts to values."""

    values: AvroType
    arrow: pa.DataType


@dataclass(frozen=True, slots=True)
class Record:
    """Fields one after another; ``arrow`` is their struct."""

    fields: tuple[tuple[str, AvroType], ...]
    arrow: pa.DataType


@dataclass(frozen=True, slots=True)
class Union:
    """Branch index, then the value.

    With one non-null branch, ``arrow`` is the type of that branch. With several it is the widest number type if all are
    integers or all are floating-point numbers, otherwise a struct with a nullable member for each non-null branch, in
    their order.
    """

    branches: tuple[AvroType, ...]
    arrow: pa.DataType

    @property
    def null_branch(self) -> int | None:
        """Index of the null branch."""
        return next((i for i, branch in enumerate(self.branches) if is_null(branch)), None)

    @property
    def values(self) -> list[tuple[int, AvroType]]:
        """The non-null branches with their indexes."""
        return [(i, branch) for i, branch in enumerate(self.branches) if not is_null(branch)]

    @property
    def is_members(self) -> bool:
        """True if the Arrow type is a struct of members."""
        values = self.values
        return len(values) > 1 and bool(pa.types.is_struct(self.arrow))


AvroType: TypeAlias = Primitive | Fixed | Enum | Array | Map | Record | Union


def is_exact(avro: AvroType) -> bool:
    """Return True if the Arrow values determine the encoded bytes.

    They do not if several branches have the same Arrow type, nor for decimals as bytes, which some writers pad.
    """
    match avro:
        case Primitive("bytes"):
            return not pa.types.is_decimal(avro.arrow)
        case Union():
            several = len(avro.values) > 1 and not avro.is_members
            return not several and all(is_exact(branch) for branch in avro.branches)
        case Array():
            return is_exact(avro.items)
        case Map():
            return is_exact(avro.values)
        case Record():
            return all(is_exact(member) for _, member in avro.fields)
    return True


def is_null(avro: AvroType) -> bool:
    """Return True for the null type."""
    return isinstance(avro, Primitive) and avro.name == "null"


@functools.lru_cache(maxsize=256)
def record_type(schema: str) -> Record:
    """Return the tree of a record schema (Avro JSON).

    Raises:
        SchemaError: The text is not a table schema.
    """
    table = from_avro(schema)
    result = _Builder().build(json.loads(schema), pa.struct(list(table)), "")
    assert isinstance(result, Record)
    return result


class _Builder:
    """Builder that traverses the JSON together with its Arrow type, which has been validated before."""

    def __init__(self) -> None:
        self._named: dict[str, tuple[dict[str, Any], str]] = {}

    def build(self, avro: Any, arrow: pa.DataType, namespace: str) -> AvroType:
        if isinstance(avro, list):
            return self._union(avro, arrow, namespace)
        if isinstance(avro, str):
            named = self._named.get(avro) or self._named.get(f"{namespace}.{avro}")
            return Primitive(avro, arrow) if named is None else self._complex(*named, arrow)
        if isinstance(avro["type"], str) and avro["type"] in ("record", "error", "array", "map", "enum", "fixed"):
            return self._complex(avro, namespace, arrow)
        return self.build(avro["type"], arrow, namespace)

    def _union(self, avro: list[Any], arrow: pa.DataType, namespace: str) -> Union:
        values = [branch for branch in avro if branch != "null"]
        if len(values) < 2:
            types = iter([arrow])
        elif pa.types.is_struct(arrow):
            types = iter([field.type for field in arrow])
        else:
            types = iter([_NUMBERS[branch if isinstance(branch, str) else branch["type"]] for branch in values])
        return Union(
            tuple(
                Primitive("null", pa.null()) if branch == "null" else self.build(branch, next(types), namespace)
                for branch in avro
            ),
            arrow,
        )

    def _complex(self, avro: dict[str, Any], namespace: str, arrow: pa.DataType) -> AvroType:
        kind = avro["type"]
        if kind == "array":
            return Array(self.build(avro["items"], arrow.value_type, namespace), arrow)
        if kind == "map":
            return Map(self.build(avro["values"], arrow.item_type, namespace), arrow)
        inner = self._declare(avro, namespace)
        if kind == "enum":
            return Enum(tuple(avro["symbols"]), arrow)
        if kind == "fixed":
            return Fixed(avro["size"], arrow)
        fields = zip(avro["fields"], arrow, strict=True)
        return Record(tuple((f["name"], self.build(f["type"], target.type, inner)) for f, target in fields), arrow)

    def _declare(self, avro: dict[str, Any], namespace: str) -> str:
        """Register a named type. Return the namespace inside it."""
        name = avro["name"]
        space: str = name.rpartition(".")[0] if "." in name else avro.get("namespace", namespace)
        self._named[name if "." in name or not space else f"{space}.{name}"] = (avro, namespace)
        return space


_NUMBERS = {"int": pa.int32(), "long": pa.int64(), "float": pa.float32(), "double": pa.float64()}
