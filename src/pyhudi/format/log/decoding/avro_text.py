"""Avro records with text that is not valid UTF-8. Text and bytes have the same encoding, so such records are read as
bytes."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pyarrow as pa

from pyhudi.config.enums import InvalidText
from pyhudi.errors import FormatError, SchemaError
from pyhudi.format.avro.binary_layout import record_layout
from pyhudi.format.utf8_validation import as_text, invalid_text

Decode = Callable[[str], pa.Table]
"""Decodes records with a schema."""


def avro_table(decode: Decode, schema: str, invalid: InvalidText) -> pa.Table:
    """Decode with the schema; invalid UTF-8 is refused or replaced.

    Raises:
        FormatError: The records do not match the schema, or invalid UTF-8 is to be refused.
    """
    try:
        return decode(schema)
    except FormatError as error:
        raw = _decode_as_bytes(decode, schema)
        if raw is None:
            raise
        if invalid is InvalidText.FAIL:
            raise invalid_text("an Avro record", error) from error
    if not raw.num_columns:
        return raw
    fields = [field for _, field, _ in record_layout(schema).select_fields(raw.column_names)]
    columns = [
        as_text(column.combine_chunks(), field.type, field.name)
        for column, field in zip(raw.columns, fields, strict=True)
    ]
    return pa.Table.from_arrays(columns, schema=pa.schema(fields))


def _decode_as_bytes(decode: Decode, schema: str) -> pa.Table | None:
    """Return the records with bytes instead of text; None if invalid text is not the reason why they cannot be read."""
    plain = json.loads(schema)
    changed = _bytes_for_text(plain)
    try:
        return None if changed == plain else decode(json.dumps(changed))
    except (FormatError, SchemaError):
        return None


def _bytes_for_text(avro: Any) -> Any:
    """Return an Avro type with bytes instead of text (except keys of maps)."""
    if isinstance(avro, list):
        return [_bytes_for_text(one) for one in avro]
    if not isinstance(avro, dict):
        return "bytes" if avro == "string" else avro
    if avro["type"] == "string":
        return "bytes"
    changed = {key: _bytes_for_text(avro[key]) for key in ("type", "items", "values") if key in avro}
    if "fields" in avro:
        changed["fields"] = [{**field, "type": _bytes_for_text(field["type"])} for field in avro["fields"]]
    return {**avro, **changed}
