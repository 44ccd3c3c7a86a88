"""Required fields of structs that are null: below a null struct Arrow's writers of files refuse their nulls, too."""

from __future__ import annotations

from functools import lru_cache

import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.errors import SchemaMismatchError
from pyhudi.schema.table_types import is_list
from pyhudi.schema.type_conversion import convert_children


@lru_cache(maxsize=1024)
def has_required_fields(data_type: pa.DataType) -> bool:
    """Return True if a type has structs with required fields."""
    if pa.types.is_map(data_type):
        return has_required_fields(data_type.item_type)
    if pa.types.is_struct(data_type):
        return any(not field.nullable or has_required_fields(field.type) for field in data_type)
    return is_list(data_type) and has_required_fields(data_type.value_type)


def with_required_fields_filled(array: pa.Array, path: str) -> pa.Array:
    """Return the same values, with other values than null in required fields below null structs.

    Raises:
        SchemaMismatchError: A required field of a non-null struct is null.
    """
    return _filled(array, array.type, path)


def batch_with_required_fields_filled(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Return the rows with `with_required_fields_filled` applied to all columns.

    Raises:
        SchemaMismatchError: A required field of a non-null struct is null.
    """
    if not any(has_required_fields(kind) for kind in batch.schema.types):
        return batch
    named = zip(batch.columns, batch.schema.names, strict=True)
    columns = [with_required_fields_filled(column, name) for column, name in named]
    return pa.RecordBatch.from_arrays(columns, schema=batch.schema)


def _filled(array: pa.Array, data_type: pa.DataType, path: str) -> pa.Array:
    if not has_required_fields(data_type):
        return array
    if not pa.types.is_struct(data_type):
        return convert_children(array, data_type, path, _filled)
    is_valid = array.is_valid()
    children = []
    for i, field in enumerate(data_type):
        where, child = f"{path}.{field.name}", array.field(i)
        if not field.nullable and child.null_count:
            if pc.any(pc.and_(is_valid, child.is_null())).as_py():
                raise SchemaMismatchError(f"field {where!r} is not nullable, but a value has null; provide values")
            child = pc.if_else(is_valid, child, _empty(field))
        children.append(_filled(child, field.type, where))
    return pa.StructArray.from_arrays(children, fields=list(data_type), mask=array.is_null())


def _empty(field: pa.Field) -> pa.Scalar:
    """Return what Arrow has below a null struct: no null, as the field is required."""
    return pa.array([None], pa.struct([field])).field(0)[0]
