"""Properties of tables as SQL spells them, as options of Apache Hudi."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pyhudi.config import options
from pyhudi.config.enums import TableType
from pyhudi.errors import InvalidOptionError

_TYPES = {
    "cow": TableType.COPY_ON_WRITE,
    "mor": TableType.MERGE_ON_READ,
    "copy_on_write": TableType.COPY_ON_WRITE,
    "merge_on_read": TableType.MERGE_ON_READ,
}
_SPELLED = {
    "primarykey": options.RECORDKEY_FIELD.key,
    "precombinefield": options.PRECOMBINE_FIELD.key,
    "orderingfields": options.PRECOMBINE_FIELD.key,
    "payloadclass": options.PAYLOAD_CLASS.key,
    "mergemode": options.MERGE_MODE.key,
    "recordmergemode": options.MERGE_MODE.key,
    "recordmergestrategyid": options.MERGE_STRATEGY_ID.key,
}
_TYPE = "type"
_OURS = ("hoodie.", "pyhudi.")
MARK = "pyhudi.catalog."
"""Properties that begin so are the catalog's own."""


def table_options(properties: Mapping[str, str]) -> dict[str, str]:
    """Return the options that table properties mean: ``primaryKey``, ``type``, ``preCombineField`` and their like, and
    ``hoodie.…`` as they are.

    Raises:
        InvalidOptionError: ``type`` is neither cow nor mor.
    """
    found: dict[str, str] = {}
    for key, value in properties.items():
        if key.lower() == _TYPE:
            kind = _TYPES.get(value.lower())
            if kind is None:
                raise InvalidOptionError("type", value, "cow, mor")
            found[options.TABLE_TYPE.key] = str(kind)
        elif key.lower() in _SPELLED:
            found[_SPELLED[key.lower()]] = ",".join(part.strip() for part in value.split(","))
        elif key.startswith(_OURS) and not key.startswith(MARK):
            found[key] = value
    return found


def shown_properties(properties: Mapping[str, str], table_type: TableType, location: str) -> dict[str, str]:
    """Return the properties that SHOW TBLPROPERTIES lists, as Apache Hudi's catalog keeps them."""
    shown = {key: value for key, value in properties.items() if not key.startswith(MARK)}
    shown.setdefault("type", "mor" if table_type is TableType.MERGE_ON_READ else "cow")
    shown["path"] = location
    return dict(sorted(shown.items()))


def registered_properties(record_keys: Sequence[str], ordering: Sequence[str], table_type: TableType) -> dict[str, str]:
    """Return the properties of a table that is there already, in SQL's spelling."""
    found = {"type": "mor" if table_type is TableType.MERGE_ON_READ else "cow"}
    if record_keys:
        found["primaryKey"] = ",".join(record_keys)
    if ordering:
        found["preCombineField"] = ",".join(ordering)
    return found
