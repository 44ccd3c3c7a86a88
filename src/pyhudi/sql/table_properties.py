"""Conversion of table properties in SQL to options of Apache Hudi."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from pyhudi.config import options
from pyhudi.config.enums import TableType
from pyhudi.config.misspelled_options import refuse_misspelled
from pyhudi.config.option_registry import canonical
from pyhudi.config.sql_property_aliases import option_of_short_name, suggest_short_name
from pyhudi.errors import ConfigError, InvalidOptionError

_TYPES = {
    "cow": TableType.COPY_ON_WRITE,
    "mor": TableType.MERGE_ON_READ,
    "copy_on_write": TableType.COPY_ON_WRITE,
    "merge_on_read": TableType.MERGE_ON_READ,
}
_COLUMNS = (options.RECORDKEY_FIELD.key, options.PRECOMBINE_FIELD.key, options.PARTITIONPATH_FIELD.key)
"""Options whose values are names of columns, those of partitions with kinds: ``ts:timestamp``."""
_TYPE = "type"
_OURS = ("hoodie.", "pyhudi.")
MARK = "pyhudi.catalog."
"""Prefix of the catalog's own properties."""
_USUAL_NAMES = frozenset({"branch", "tag"})
"""Names of properties that are options of Iceberg, too."""


def table_options(properties: Mapping[str, str]) -> dict[str, str]:
    """Return the options of table properties: ``primaryKey``, ``type``, ``preCombineField`` and similar ones are
    converted, ``hoodie.…`` is unchanged.

    Raises:
        InvalidOptionError: ``type`` is neither cow nor mor.
    """
    opts: dict[str, str] = {}
    for key, value in properties.items():
        if key.lower() == _TYPE:
            kind = _TYPES.get(value.lower())
            if kind is None:
                raise InvalidOptionError("type", value, "cow, mor")
            opts[options.TABLE_TYPE.key] = str(kind)
        elif (option := option_of_short_name(key)) is not None:
            opts[option] = ",".join(part.strip() for part in value.split(","))
        elif key.lower().startswith(_OURS) and not key.startswith(MARK):
            opts[key] = value
    return opts


def refuse_misspelled_properties(properties: Mapping[str, str]) -> None:
    """Raise an error for properties that resemble one which defines the table or its writes.

    Other properties may have any name: the catalog keeps them.

    Args:
        properties: Those of a statement.

    Raises:
        ConfigError: There is such a property.
    """
    for key in properties:
        if key.lower().startswith(_OURS):
            continue
        suggestion = suggest_short_name(key)
        if suggestion is not None:
            raise ConfigError(f"unknown table property {key!r}; did you mean {suggestion!r}?")
    refuse_misspelled(
        {
            key: value
            for key, value in properties.items()
            if option_of_short_name(key) is None and key.lower() not in _USUAL_NAMES
        }
    )


def with_columns(properties: Mapping[str, str], table_column: Callable[[str], str]) -> dict[str, str]:
    """Return properties with other names of the columns of record keys and ordering.

    Args:
        properties: The properties of a statement.
        table_column: Returns the name of a column in the table.
    """
    return {
        key: ",".join(_with_column(part.strip(), table_column) for part in value.split(",") if part.strip())
        if canonical(option_of_short_name(key) or key) in _COLUMNS
        else value
        for key, value in properties.items()
    }


def _with_column(part: str, table_column: Callable[[str], str]) -> str:
    column, mark, kind = part.partition(":")
    return table_column(column) + mark + kind


def shown_properties(properties: Mapping[str, str], table_type: TableType, location: str) -> dict[str, str]:
    """Return the properties that SHOW TBLPROPERTIES lists, as in Apache Hudi's catalog."""
    shown = {key: value for key, value in properties.items() if not key.startswith(MARK)}
    shown.setdefault("type", "mor" if table_type is TableType.MERGE_ON_READ else "cow")
    shown["path"] = location
    return dict(sorted(shown.items()))


def registered_properties(record_keys: Sequence[str], ordering: Sequence[str], table_type: TableType) -> dict[str, str]:
    """Return the properties of an existing table, in SQL's spelling."""
    properties = {"type": "mor" if table_type is TableType.MERGE_ON_READ else "cow"}
    if record_keys:
        properties["primaryKey"] = ",".join(record_keys)
    if ordering:
        properties["preCombineField"] = ",".join(ordering)
    return properties
