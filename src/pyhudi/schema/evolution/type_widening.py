"""Changes of types of columns that lose no values."""

from __future__ import annotations

import pyarrow as pa

from pyhudi.errors import SchemaMismatchError
from pyhudi.schema.evolution.internal_types import Type, primitive_to_arrow

_DIGITS = {"int": 10, "long": 19}
_WIDER = {
    "int": {"long", "double", "string"},
    "long": {"string"},
    "float": {"double", "string"},
    "double": {"string"},
    "date": {"string"},
}


def widened_type(old: Type, new: str, path: str) -> str:
    """Return the new type of a column.

    Raises:
        SchemaMismatchError: Values would be lost, or the column is a struct, list or map.
    """
    if not isinstance(old, str):
        raise SchemaMismatchError(
            f"cannot change the type of column {path!r}: it is nested; change the types of its fields, elements or "
            "values instead"
        )
    if _is_wider(old, new):
        return new
    raise SchemaMismatchError(
        f"cannot change the type of column {path!r} from {old} to {new}: values could be lost. Allowed are int to "
        "long, double, string or decimal; long to string or decimal; float to double or string; double, date and "
        "decimal to string; and decimal to a wider decimal. Otherwise add a column of the new type and fill it"
    )


def _is_wider(old: str, new: str) -> bool:
    before, after = primitive_to_arrow(old), primitive_to_arrow(new)
    if before == after:
        return True
    if pa.types.is_decimal(after):
        digits = after.precision - after.scale
        if pa.types.is_decimal(before):
            return bool(after.scale >= before.scale and digits >= before.precision - before.scale)
        return old in _DIGITS and bool(digits >= _DIGITS[old])
    if pa.types.is_decimal(before):
        return new == "string"
    return new in _WIDER.get(old, ())
