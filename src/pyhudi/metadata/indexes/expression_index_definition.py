"""Expression indexes: which a table has, which functions they may be of, and what they hold.

An expression index has statistics (or bloom filters) of the values that a function of Spark makes of one column, file
by file; docs/format/metadata.md, sections 2.5 and 2.11.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from pyhudi.config.enums import MergeMode, TableType
from pyhudi.errors import ConfigError
from pyhudi.metadata.indexes.index_definitions import load_definitions
from pyhudi.metadata.metadata_layout import BLOOM_FILTERS, COLUMN_STATS
from pyhudi.metadata.records.stats_values import is_supported

if TYPE_CHECKING:
    from pyhudi.storage import Storage
    from pyhudi.table.config.table_config import TableConfig

EXPRESSION = "expr_index"
"""Prefix of the names of these partitions of the metadata table."""
KINDS = (COLUMN_STATS, BLOOM_FILTERS)
"""Contents of an expression index."""
IDENTITY = "identity"
EXPR = "expr"
"""The option that names the function."""
BLOOM_OPTIONS = ("filtertype", "numentries", "fpp", "maxentries")
"""Options of those of bloom filters: type, number of keys, rate of false positives, most keys of a dynamic filter."""

_TEXT, _WHOLE, _LONG, _DATE = pa.string(), pa.int32(), pa.int64(), pa.date32()
_TIME = pa.timestamp("us", "UTC")
_TIMES = "yyyy-MM-dd HH:mm:ss"
_NUMBERS = ("pos", "len", "days", "idx")


@dataclass(frozen=True, slots=True)
class Function:
    """A function of Spark that expression indexes may be of: the type of its values (None: that of the column), the
    options that it needs, and those that it may have with what is meant without them (None: the function without that
    argument)."""

    result: pa.DataType | None
    needs: tuple[str, ...] = ()
    may_have: Mapping[str, str | None] | None = None

    @property
    def options(self) -> tuple[str, ...]:
        """Names of its arguments behind the column, in order."""
        return (*self.needs, *(self.may_have or {}))


FUNCTIONS: Mapping[str, Function] = {
    IDENTITY: Function(None),
    "year": Function(_WHOLE),
    "month": Function(_WHOLE),
    "day": Function(_WHOLE),
    "hour": Function(_WHOLE),
    "date_format": Function(_TEXT, ("format",)),
    "from_unixtime": Function(_TEXT, (), {"format": _TIMES}),
    "unix_timestamp": Function(_LONG, (), {"format": _TIMES}),
    "to_date": Function(_DATE, (), {"format": None}),
    "to_timestamp": Function(_TIME, (), {"format": None}),
    "date_add": Function(_DATE, ("days",)),
    "date_sub": Function(_DATE, ("days",)),
    "lower": Function(_TEXT),
    "upper": Function(_TEXT),
    "trim": Function(_TEXT, (), {"trimString": " "}),
    "ltrim": Function(_TEXT, (), {"trimString": " "}),
    "rtrim": Function(_TEXT, (), {"trimString": " "}),
    "length": Function(_WHOLE),
    "substring": Function(_TEXT, ("pos", "len")),
    "regexp_replace": Function(_TEXT, ("pattern", "replacement")),
    "regexp_extract": Function(_TEXT, ("pattern", "idx")),
}
"""Those of Apache Hudi, less ``split``: its lists have no order."""


@dataclass(frozen=True, slots=True)
class Expression:
    """A function of a column, with all of its arguments: two that are equal have the same values."""

    function: str
    column: str
    arguments: tuple[str | int | None, ...] = ()

    @classmethod
    def of(cls, function: str, column: str, options: Mapping[str, str]) -> Expression:
        """The expression that options name.

        Raises:
            ConfigError: the function is unknown, or an option of it is missing, unknown or no number.
        """
        found = FUNCTIONS.get(function)
        if found is None:
            raise ConfigError(f"no expression index is of the function {function!r}; there are {', '.join(FUNCTIONS)}")
        unknown = [name for name in options if name not in found.options]
        if unknown:
            known = ", ".join(found.options) or "none"
            raise ConfigError(f"the function {function} has no option {', '.join(unknown)}; it has {known}")
        missing = [name for name in found.needs if name not in options]
        if missing:
            raise ConfigError(f"the function {function} needs the option {', '.join(missing)}")
        given = {**(found.may_have or {}), **options}
        return cls(function, column, tuple(_argument(function, name, given[name]) for name in found.options))

    def type_of(self, column: pa.DataType) -> pa.DataType:
        """The type of its values, made of a column of a type."""
        found = FUNCTIONS[self.function].result
        return column if found is None else found

    def __str__(self) -> str:
        parts = [self.column, *(repr(part) for part in self.arguments if part is not None)]
        return f"{self.function}({', '.join(parts)})"


def _argument(function: str, name: str, value: str | None) -> str | int | None:
    if value is None or name not in _NUMBERS:
        return value
    try:
        return int(value)
    except ValueError as e:
        raise ConfigError(f"the option {name} of the function {function} must be a whole number, not {value!r}") from e


@dataclass(frozen=True, slots=True)
class ExpressionIndex:
    """An expression index: its ``partition`` of the metadata table, what it holds (``kind``: column_stats or
    bloom_filters), and of which ``expression``. ``bloom``: the options of its bloom filters."""

    partition: str
    kind: str
    expression: Expression
    bloom: tuple[tuple[str, str], ...] = ()

    @classmethod
    def of(cls, partition: str, kind: str, column: str, options: Mapping[str, str]) -> ExpressionIndex:
        """The index that a definition with these options means.

        Raises:
            ConfigError: it means nothing.
        """
        bloom = {name: value for name, value in options.items() if kind == BLOOM_FILTERS and name in BLOOM_OPTIONS}
        rest = {name: value for name, value in options.items() if name != EXPR and name not in bloom}
        expression = Expression.of(options.get(EXPR, "").lower(), column, rest)
        return cls(partition, kind, expression, tuple(bloom.items()))


def partition_of(name: str) -> str:
    """The partition of the metadata table of the expression index of that name."""
    return f"{EXPRESSION}_{name}"


def is_expression(partition: str) -> bool:
    """Return True if a partition of the metadata table is an expression index."""
    return partition.startswith(f"{EXPRESSION}_")


def expression_indexes(storage: Storage, config: TableConfig, *, kept: bool = False) -> list[ExpressionIndex]:
    """The expression indexes that are in use, those of a form that is known here; ``kept``: also those that are being
    built, which writes keep up to date, too."""
    names = config.metadata_partitions_kept if kept else config.metadata_partitions
    declared = [name for name in names if is_expression(name)]
    if not declared or config.version < 8:
        return []
    definitions = load_definitions(storage, config)
    found = [expression_of(name, definitions.get(name, {}), config.version) for name in declared]
    return [index for index in found if index is not None]


def expression_of(partition: str, definition: Mapping[str, Any], version: int) -> ExpressionIndex | None:
    """The expression index that a definition means; None if it is of a form that is not known here."""
    columns, options = definition.get("sourceFields") or [], definition.get("indexOptions") or {}
    kind = definition.get("indexType")
    if kind not in KINDS or len(columns) != 1 or definition.get("version") not in _VERSIONS.get(version, ()):
        return None
    if str(definition.get("indexFunction")).lower() != str(options.get(EXPR)).lower():
        return None
    try:
        return ExpressionIndex.of(partition, kind, columns[0], options)
    except ConfigError:
        return None


_VERSIONS = {8: (None, "V1"), 9: ("V2",)}


def expression_definition(index: ExpressionIndex, options: Mapping[str, str], version: int) -> dict[str, Any]:
    """The definition of an expression index with the options that it was asked for by."""
    found: dict[str, Any] = {
        "indexName": index.partition,
        "indexType": index.kind,
        "indexFunction": index.expression.function,
        "sourceFields": [index.expression.column],
        "indexOptions": dict(options),
    }
    return found | ({"version": "V2"} if version >= 9 else {})


def can_be_indexed(index: ExpressionIndex, column: pa.DataType | None, version: int) -> bool:
    """Return True if an index can be of a column of that type (None: there is none), in a table of that version."""
    if column is None or pa.types.is_nested(column) or pa.types.is_time(column):
        return False
    kind = index.expression.type_of(column)
    if index.kind == BLOOM_FILTERS:
        return bool(pa.types.is_string(kind) or pa.types.is_signed_integer(kind))
    # version 8 has another wrapper for times here than in column statistics
    return is_supported(kind, version) and not (pa.types.is_timestamp(kind) and version < 9)


def can_be_kept(index: ExpressionIndex, config: TableConfig) -> bool:
    """Return True if what the index says of files is so of the table's rows: not where a merger makes values that are
    in no file, nor of columns that files do not hold."""
    if config.table_type is TableType.MERGE_ON_READ and config.merge_mode is MergeMode.CUSTOM:
        return False
    dropped = {field.name for field in config.partition_fields} if config.drop_partition_columns else set()
    return index.expression.column not in dropped
