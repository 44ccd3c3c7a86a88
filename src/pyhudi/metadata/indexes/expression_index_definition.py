"""Expression indexes: definitions, supported functions and content.

An expression index has statistics (or bloom filters) of the values of a Spark function of one column, per file;
docs/format/metadata.md, sections 2.5 and 2.11.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from pyhudi.errors import ConfigError
from pyhudi.metadata.indexes.index_definitions import index_definition, is_supported_version, load_definitions
from pyhudi.metadata.metadata_layout import BLOOM_FILTERS, COLUMN_STATS
from pyhudi.metadata.records.stats_values import is_supported
from pyhudi.storage import Storage
from pyhudi.table.config.table_config import TableConfig

EXPRESSION = "expr_index"
"""Prefix of the names of their partitions in the metadata table."""
KINDS = (COLUMN_STATS, BLOOM_FILTERS)
"""Types of content of an expression index."""
IDENTITY = "identity"
EXPR = "expr"
"""Option with the name of the function."""
BLOOM_OPTIONS = ("filtertype", "numentries", "fpp", "maxentries")
"""Options of bloom filters: type, number of keys, false positive rate, maximum number of keys of a dynamic filter."""

_TEXT, _WHOLE, _LONG, _DATE = pa.string(), pa.int32(), pa.int64(), pa.date32()
_TIME = pa.timestamp("us", "UTC")
_TIMES = "yyyy-MM-dd HH:mm:ss"
_NUMBERS = ("pos", "len", "days", "idx")


@dataclass(frozen=True, slots=True)
class Function:
    """A Spark function that expression indexes support: the type of its values (None: that of the column), its required
    options, and its optional ones with their defaults (None: the function without that argument)."""

    result: pa.DataType | None
    needs: tuple[str, ...] = ()
    may_have: Mapping[str, str | None] | None = None

    @property
    def options(self) -> tuple[str, ...]:
        """Names of its arguments after the column, in order."""
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
"""Functions of Apache Hudi, except ``split``, whose lists have no order."""


@dataclass(frozen=True, slots=True)
class Expression:
    """A function of a column, with all of its arguments. Equal expressions have equal values."""

    function: str
    column: str
    arguments: tuple[str | int | None, ...]

    @classmethod
    def from_options(cls, function: str, column: str, options: Mapping[str, str]) -> Expression:
        """Return the expression of index options.

        Raises:
            ConfigError: The function is unknown, or an option of it is missing, unknown or not an integer.
        """
        definition = FUNCTIONS.get(function)
        if definition is None:
            raise ConfigError(
                f"expression indexes do not support the function {function!r}; supported: {', '.join(FUNCTIONS)}"
            )
        unknown = [name for name in options if name not in definition.options]
        if unknown:
            names = ", ".join(definition.options) or "none"
            raise ConfigError(f"the function {function} has no option {', '.join(unknown)}; it has {names}")
        missing = [name for name in definition.needs if name not in options]
        if missing:
            raise ConfigError(f"the function {function} requires the option {', '.join(missing)}")
        settings = {**(definition.may_have or {}), **options}
        return cls(function, column, tuple(_argument(function, name, settings[name]) for name in definition.options))

    def type_of(self, column: pa.DataType) -> pa.DataType:
        """Return the type of its values for a column of the given type."""
        result = FUNCTIONS[self.function].result
        return column if result is None else result

    def __str__(self) -> str:
        parts = [self.column, *(repr(part) for part in self.arguments if part is not None)]
        return f"{self.function}({', '.join(parts)})"


def _argument(function: str, name: str, value: str | None) -> str | int | None:
    if value is None or name not in _NUMBERS:
        return value
    try:
        return int(value)
    except ValueError as error:
        raise ConfigError(f"the option {name} of the function {function} must be an integer, not {value!r}") from error


@dataclass(frozen=True, slots=True)
class ExpressionIndex:
    """An expression index: its ``partition`` of the metadata table, its content (``kind``: column_stats or
    bloom_filters), and its ``expression``. ``bloom``: options of its bloom filters."""

    partition: str
    kind: str
    expression: Expression
    bloom: tuple[tuple[str, str], ...]

    @classmethod
    def from_options(cls, partition: str, kind: str, column: str, options: Mapping[str, str]) -> ExpressionIndex:
        """Return the index of a definition with these options.

        Raises:
            ConfigError: The options are invalid.
        """
        bloom = {name: value for name, value in options.items() if kind == BLOOM_FILTERS and name in BLOOM_OPTIONS}
        rest = {name: value for name, value in options.items() if name != EXPR and name not in bloom}
        expression = Expression.from_options(options.get(EXPR, "").lower(), column, rest)
        return cls(partition, kind, expression, tuple(bloom.items()))


def expression_partition(name: str) -> str:
    """Return the partition of the metadata table for the expression index with that name."""
    return f"{EXPRESSION}_{name}"


def is_expression(partition: str) -> bool:
    """Return True if a partition of the metadata table is an expression index."""
    return partition.startswith(f"{EXPRESSION}_")


def expression_indexes(
    storage: Storage, config: TableConfig, *, include_building: bool = False
) -> list[ExpressionIndex]:
    """Return the expression indexes in use whose definition is supported. ``include_building`` adds those being built,
    which writes maintain, too."""
    names = config.metadata_partitions_kept if include_building else config.metadata_partitions
    declared = [name for name in names if is_expression(name)]
    if not declared or config.version < 8:
        return []
    definitions = load_definitions(storage, config)
    indexes = [parse_expression_index(name, definitions.get(name, {}), config.version) for name in declared]
    return [index for index in indexes if index is not None]


def parse_expression_index(partition: str, definition: Mapping[str, Any], version: int) -> ExpressionIndex | None:
    """Return the expression index of a definition; None if its form is not supported."""
    columns, options = definition.get("sourceFields") or [], definition.get("indexOptions") or {}
    kind = definition.get("indexType")
    if kind not in KINDS or len(columns) != 1 or not is_supported_version(definition, version):
        return None
    if str(definition.get("indexFunction")).lower() != str(options.get(EXPR)).lower():
        return None
    try:
        return ExpressionIndex.from_options(partition, kind, columns[0], options)
    except ConfigError:
        return None


def expression_definition(index: ExpressionIndex, options: Mapping[str, str], version: int) -> dict[str, Any]:
    """Return the definition of an expression index with its original options."""
    expression = index.expression
    return index_definition(
        index.partition, index.kind, expression.function, [expression.column], options=options, version=version
    )


def can_be_indexed(index: ExpressionIndex, column: pa.DataType | None, version: int) -> bool:
    """Return True if the index supports a column of that type (None: the column does not exist) in a table of that
    version."""
    if column is None or pa.types.is_nested(column) or pa.types.is_time(column):
        return False
    data_type = index.expression.type_of(column)
    if index.kind == BLOOM_FILTERS:
        return bool(pa.types.is_string(data_type) or pa.types.is_signed_integer(data_type))
    # Version 8 wraps times differently here than in column statistics.
    return is_supported(data_type, version) and not (pa.types.is_timestamp(data_type) and version < 9)


def can_be_kept(index: ExpressionIndex, config: TableConfig) -> bool:
    """Return True if the index entries of files apply to the rows of the table: not if a merger computes values that
    are in no file, nor for columns that files do not contain."""
    if not config.has_stored_values_only:
        return False
    dropped = {field.name for field in config.partition_fields} if config.drop_partition_columns else set()
    return index.expression.column not in dropped
