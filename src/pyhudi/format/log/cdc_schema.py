"""Avro schemas of CDC_DATA blocks, by the mode of supplemental logging (Apache Hudi's ``HoodieCDCUtils``)."""

from __future__ import annotations

import json
from typing import Any

from pyhudi.config.enums import CdcMode
from pyhudi.schema.meta_columns import is_meta_column

INSERT, UPDATE, DELETE = "i", "u", "d"
"""Values of ``op``."""


def cdc_schema(mode: CdcMode, table_schema: str) -> str:
    """Return the schema of a table's CDC blocks as Avro JSON.

    ``table_schema`` is that of its records; images omit meta columns. The second image refers to the record of the
    first one by name, because Avro declares a name once.
    """
    if mode is CdcMode.OP_KEY_ONLY:
        fields = [{"name": name, "type": ["string", "null"]} for name in ("op", "record_key")]
        return _text({"type": "record", "name": "Record", "fields": fields})
    record = json.loads(table_schema)
    record["fields"] = [field for field in record["fields"] if not is_meta_column(field["name"])]
    space = record.pop("namespace", None)
    if mode is CdcMode.DATA_BEFORE:
        columns = [_field("op", "string"), _field("record_key", "string"), _field("before", record)]
    else:
        texts = [_field("op", "string"), _field("ts_ms", "string")]
        columns = [*texts, _field("before", record), _field("after", record["name"])]
    named = {} if space is None else {"namespace": space}
    return _text({"type": "record", "name": "CDC", **named, "fields": columns})


def _field(name: str, kind: Any) -> dict[str, Any]:
    return {"name": name, "type": ["null", kind], "doc": "", "default": None}


def _text(schema: dict[str, Any]) -> str:
    return json.dumps(schema, separators=(",", ":"), ensure_ascii=False)
