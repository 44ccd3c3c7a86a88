"""Schema evolution by writes: the next schema of a table for an incoming batch.

The rules are those of Apache Hudi 1.2 on Spark:

- New columns (and new fields inside structs) are added after the existing ones, nullable.
- A column may be promoted: int → long → float → double → string. If the table's type is wider, the incoming values are
  promoted. Dates, decimals and bytes can be written to string columns, numbers and text to decimal columns, and text to
  date and bytes columns. Of two decimals, the one that holds all digits of both is used; if there is none, the batch is
  refused.
- A missing column is an error, unless options fill it with null (`hoodie.write.set.null.for.missing.columns`, or
  `hoodie.datasource.write.reconcile.schema`) or drop it from the table
  (`hoodie.datasource.write.schema.allow.auto.evolution.column.drop`).
- Names must match in case.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

import pyarrow as pa

from pyhudi.errors import SchemaMismatchError
from pyhudi.schema.logical_types.blobs import BLOB, BLOB_SQL, BLOB_TEXT, has_blob_fields
from pyhudi.schema.logical_types.variants import VARIANT, VARIANT_SQL, VARIANT_TEXT, has_variant_fields
from pyhudi.schema.logical_types.vectors import is_vector, vector_text
from pyhudi.schema.meta_columns import remove_meta_columns
from pyhudi.schema.table_types import DEFAULT, LIST_ITEM, is_list, nullable_type, to_table_types


class _Opaque(NamedTuple):
    """A type that Spark has as a struct: its name, which structs can be written to it, and its struct as SQL."""

    name: str
    fits: Callable[[pa.DataType], bool]
    sql: str


_OPAQUE = {
    BLOB: _Opaque(BLOB_TEXT, has_blob_fields, BLOB_SQL),
    VARIANT: _Opaque(VARIANT_TEXT, has_variant_fields, VARIANT_SQL),
}
_NUMBERS = (pa.int32(), pa.int64(), pa.float32(), pa.float64())


@dataclass(frozen=True, slots=True)
class EvolutionOptions:
    """Treatment of missing columns. If all are false, the batch is refused."""

    set_null_for_missing: bool = False
    """`hoodie.write.set.null.for.missing.columns`"""
    reconcile: bool = False
    """`hoodie.datasource.write.reconcile.schema`"""
    allow_column_drop: bool = False
    """`hoodie.datasource.write.schema.allow.auto.evolution.column.drop`"""


@dataclass(slots=True)
class _Merge:
    options: EvolutionOptions
    problems: list[str] = field(default_factory=list)

    def fields(self, table: list[pa.Field], incoming: list[pa.Field], path: str) -> list[pa.Field]:
        by_name = {f.name: f for f in incoming}
        added = [f for f in incoming if f.name not in {t.name for t in table}]
        self._check_case(table, by_name, added, path)
        fields = []
        for old in table:
            where = f"{path}.{old.name}" if path else old.name
            new = by_name.get(old.name)
            if new is not None:
                fields.append(self.field(old, new, where))
            elif self.options.set_null_for_missing or self.options.reconcile:
                fields.append(_optional(old))
            elif not self.options.allow_column_drop:
                self.problems.append(
                    f"column {where!r} is missing; add it, or set hoodie.write.set.null.for.missing.columns=true to "
                    "fill it with null"
                )
        new_fields = [self._new(f, f"{path}.{f.name}" if path else f.name) for f in added]
        everything = [*fields, *new_fields]
        if self.options.reconcile and not path and new_fields and len(by_name) == len(everything):
            # With reconciliation, Apache Hudi uses the order of a batch that has all columns and additional ones.
            order = {name: i for i, name in enumerate(by_name)}
            everything.sort(key=lambda f: order[f.name])
        return everything

    def _check_case(
        self, table: list[pa.Field], by_name: dict[str, pa.Field], added: list[pa.Field], path: str
    ) -> None:
        folded = {old.name.lower(): old.name for old in table}
        for new in added:
            old = folded.get(new.name.lower())
            if old is not None:
                twice = " and exists as well" if old in by_name else ""
                self.problems.append(
                    f"column {(path + '.' if path else '') + new.name!r} differs from the table's {old!r} only in "
                    f"case{twice}; rename it to {old!r}"
                )

    def _new(self, new: pa.Field, path: str) -> pa.Field:
        if pa.types.is_null(new.type):
            self.problems.append(
                f"new column {path!r} contains only nulls and has no type; cast it to the intended type"
            )
        return new.with_type(nullable_type(new.type)).with_nullable(True)

    def field(self, old: pa.Field, new: pa.Field, path: str) -> pa.Field:
        strict = self.options.reconcile or self.options.set_null_for_missing
        evolved = old.with_type(self.type(old.type, new.type, path))
        if pa.types.is_nested(old.type) and evolved.type != old.type:
            evolved = _without_default(evolved)  # which may not be a value of the new type
        return _optional(evolved) if new.nullable and not strict else evolved

    def type(self, old: pa.DataType, new: pa.DataType, path: str) -> pa.DataType:
        t = pa.types
        if old == new or t.is_null(new):
            return old
        if is_vector(old) or is_vector(new):
            return self._vector(old, new, path)
        if old in _OPAQUE or new in _OPAQUE:
            return self._opaque(old, new, path)
        if t.is_struct(old) and t.is_struct(new):
            return pa.struct(self.fields(_members(old), _members(new), path))
        if t.is_list(old) and t.is_list(new):
            return pa.list_(self.field(old.value_field, new.value_field, f"{path}.{LIST_ITEM}"))
        if t.is_map(old) and t.is_map(new):
            return pa.map_(old.key_type, self.field(old.item_field, new.item_field, f"{path}.value"))
        result = promote(old, new)
        if result is None:
            self.problems.append(
                f"column {path!r} is {old} in the table and {new} in the incoming rows; cast it to {old}"
            )
            return old
        return result

    def _vector(self, old: pa.DataType, new: pa.DataType, path: str) -> pa.DataType:
        """Return the type of a vector, which never changes; lists can be written to it, if they have its elements."""
        named = [vector_text(kind) if is_vector(kind) else str(kind) for kind in (old, new)]
        if not is_vector(old) or not is_list(new) or (is_vector(new) and new != old):
            self.problems.append(f"column {path!r} is {named[0]} in the table and {named[1]} in the incoming rows")
        elif promote(old.value_type, new.value_type) != old.value_type and new.value_type != pa.int32():
            self.problems.append(
                f"column {path!r} is {named[0]} in the table and {named[1]} in the incoming rows; cast its elements to "
                f"{old.value_type}"
            )
        return old

    def _opaque(self, old: pa.DataType, new: pa.DataType, path: str) -> pa.DataType:
        """Return the type of a blob or variant, which never changes; structs of its fields can be written to it."""
        stored = _OPAQUE.get(old)
        if stored is None or not stored.fits(new):
            old_name, new_name = (str(kind) if kind not in _OPAQUE else _OPAQUE[kind].name for kind in (old, new))
            cure = "" if stored is None else f"; write a {stored.sql}"
            self.problems.append(
                f"column {path!r} is {old_name} in the table and {new_name} in the incoming rows{cure}"
            )
        return old


def promote(table: pa.DataType, incoming: pa.DataType) -> pa.DataType | None:
    """Return the type of a primitive table column after a write of values of another type; None if they are
    incompatible.

    >>> promote(pa.int32(), pa.int64())
    DataType(int64)
    """
    t = pa.types
    if table == incoming:
        return table
    if table in _NUMBERS and incoming in _NUMBERS:
        return max(table, incoming, key=_NUMBERS.index)
    if table in _NUMBERS and t.is_string(incoming):
        return incoming
    if t.is_string(table):
        fits = incoming in _NUMBERS or t.is_date(incoming) or t.is_decimal(incoming) or t.is_binary(incoming)
        return table if fits else None
    if t.is_decimal(table):
        if t.is_decimal(incoming):
            return _wider_decimal(table, incoming)
        return table if incoming in _NUMBERS or t.is_string(incoming) else None
    if (t.is_binary(table) or t.is_date(table)) and t.is_string(incoming):
        return table
    if t.is_timestamp(table) and t.is_timestamp(incoming) and table.tz == incoming.tz:
        return table
    if t.is_time(table) and incoming == (pa.int32() if t.is_time32(table) else pa.int64()):
        return table  # Spark has no time-of-day type and returns its integer representation.
    return None


def keeps_texts(table: pa.DataType, incoming: pa.DataType) -> bool:
    """Return True if a write of such values leaves the texts of a column's values as they are, so that a record key or
    a partition path of the column stays the same.

    Values of a narrower type are written with the table's, so only a wider type can change texts: 1 is ``1`` as an
    integer of any size, and ``1.0`` as a double.
    """
    result = promote(table, incoming)
    if result is None or result == table:
        return result is not None
    if pa.types.is_decimal(result):
        return bool(result.scale == table.scale)
    return bool(pa.types.is_integer(result))


def _wider_decimal(a: pa.Decimal128Type, b: pa.Decimal128Type) -> pa.DataType | None:
    for wide, narrow in ((a, b), (b, a)):
        if wide.scale >= narrow.scale and wide.precision - wide.scale >= narrow.precision - narrow.scale:
            return wide
    return None


def _optional(old: pa.Field) -> pa.Field:
    """Return a column of the table that may be null from now on.

    Its default becomes null, as in Apache Hudi, whose Spark readers fail on nullable columns with another default.
    """
    return old if old.nullable else _without_default(old).with_nullable(True)


def _without_default(old: pa.Field) -> pa.Field:
    metadata = {key: value for key, value in (old.metadata or {}).items() if key != DEFAULT}
    return old.with_metadata(metadata or None)


def _members(struct: pa.StructType) -> list[pa.Field]:
    return [struct.field(i) for i in range(struct.num_fields)]


def reconcile(table: pa.Schema, incoming: pa.Schema, options: EvolutionOptions | None = None) -> pa.Schema:
    """Return the schema of the table after a write of such rows. Meta columns are omitted on both sides.

    Raises:
        SchemaMismatchError: Incoming columns cannot be converted to those of the table. The message lists all of them.
        SchemaError: A column has an unsupported type or an invalid name.
    """
    merge = _Merge(options or EvolutionOptions())
    stored, new = to_table_types(remove_meta_columns(table)), to_table_types(remove_meta_columns(incoming))
    result = merge.fields(list(stored), list(new), "")
    if merge.problems:
        head = "the incoming rows do not match the table schema"
        raise SchemaMismatchError(f"{head}: " + "; ".join(merge.problems))
    return pa.schema(result)
