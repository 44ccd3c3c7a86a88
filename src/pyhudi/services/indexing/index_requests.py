"""Index requests: interpretation of names and options.

Names are those of Apache Hudi's ``CREATE INDEX`` and ``DROP INDEX``: ``column_stats``, ``partition_stats``,
``bloom_filters`` and ``record_index`` for indexes that exist once per table, and a user-defined name for secondary
indexes and for expression indexes, which are statistics or bloom filters of function values.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pyhudi.config import Options, options
from pyhudi.errors import ConfigError, InvalidOptionError, UnsupportedTableError
from pyhudi.metadata.indexes import expression_index_definition
from pyhudi.metadata.indexes.expression_index_definition import (
    EXPR,
    KINDS,
    ExpressionIndex,
    expression_definition,
    expression_partition,
)
from pyhudi.metadata.indexes.index_definitions import load_definitions
from pyhudi.metadata.indexes.secondary_index_definition import (
    SECONDARY,
    SecondaryIndex,
    is_secondary,
    parse_secondary_index,
    secondary_definition,
    secondary_indexes,
    secondary_partition,
)
from pyhudi.metadata.metadata_layout import BLOOM_FILTERS, COLUMN_STATS, PARTITION_STATS, RECORD_INDEX
from pyhudi.metadata.writer.enabled_partitions import is_metadata_enabled
from pyhudi.services.indexing.index_names import BUILT_IN, built_in_name
from pyhudi.storage import Storage
from pyhudi.table.config.table_config import TableConfig

_COLUMNS_KEY = options.METADATA_COLUMN_STATS_COLUMNS.key
_KINDS = (SECONDARY, *BUILT_IN)
_LETTERS = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_")


@dataclass(frozen=True, slots=True)
class IndexRequest:
    """An index to build.

    Attributes:
        partition: Its partition of the metadata table.
        kind: Its type.
        columns: Its columns; none for indexes that exist once per table.
        expression: The indexed expression.
        index_options: Options of the expression index.
        if_not_exists: An index that exists already is no error.
    """

    partition: str
    kind: str
    columns: tuple[str, ...] = ()
    expression: ExpressionIndex | None = None
    index_options: tuple[tuple[str, str], ...] = ()
    if_not_exists: bool = False

    @classmethod
    def from_arguments(
        cls, name: str | None, columns: Sequence[str], using: str | None, index_options: Mapping[str, str]
    ) -> IndexRequest:
        """Parse the arguments of ``build_index``.

        Raises:
            ConfigError: The arguments are invalid.
            UnsupportedTableError: The index is not supported.
        """
        if name is not None and not columns and not index_options:
            name = built_in_name(name)
        kind = (using or (name if name in BUILT_IN else SECONDARY)).lower()
        if kind not in _KINDS:
            raise ConfigError(
                f"unknown index type {using!r}: a column has an index of type {SECONDARY}, the default; an expression "
                f"one of {' or '.join(KINDS)} with {EXPR}=function; and a table has {', '.join(BUILT_IN)} once"
            )
        if name is not None and using is None and name not in BUILT_IN and not columns and not index_options:
            raise ConfigError(
                f"{name!r} is not an index of a whole table ({', '.join(BUILT_IN)}); for an index on a column "
                "pass the column"
            )
        if EXPR in index_options or (kind in KINDS and columns):
            return cls._from_expression(name, columns, kind, index_options)
        if index_options:
            raise ConfigError(f"an index of type {kind} has no options {', '.join(sorted(index_options))}")
        if kind != SECONDARY:
            if name is not None and name != kind:
                raise ConfigError(
                    f"an index of type {kind} must be named {kind}, not {name!r}, because there is one per table"
                )
            return cls(kind, kind)
        return cls(secondary_partition(_checked_index_name(name, columns, "a secondary index")), kind, tuple(columns))

    @classmethod
    def from_options(cls, opts: Options) -> IndexRequest | None:
        """Return the secondary index that a write builds by its options; None if they ask for none.

        Raises:
            InvalidOptionError: The options name several columns, or the name of the index is not allowed.
        """
        column = opts.get_typed(options.METADATA_SECONDARY_COLUMN)
        enabled = is_metadata_enabled(opts) and opts.get_typed(options.METADATA_SECONDARY_ENABLE)
        if not column or not enabled:
            return None
        if "," in column:
            raise InvalidOptionError(options.METADATA_SECONDARY_COLUMN.key, column, "the name of one column")
        name = (opts.get_typed(options.INDEX_NAME) or column).removeprefix(secondary_partition(""))
        if not name or not set(name) <= _LETTERS:
            allowed = "letters, digits and underscores; the default is the name of the column"
            raise InvalidOptionError(options.INDEX_NAME.key, name, allowed)
        return cls(secondary_partition(name), SECONDARY, (column,), if_not_exists=True)

    @classmethod
    def _from_expression(
        cls, name: str | None, columns: Sequence[str], kind: str, index_options: Mapping[str, str]
    ) -> IndexRequest:
        if kind not in KINDS:
            raise ConfigError(f"an expression index has the type {' or '.join(KINDS)}; pass it as using=, not {kind!r}")
        partition = expression_partition(_checked_index_name(name, columns, "an expression index"))
        if EXPR not in index_options:
            passed = f", not {', '.join(index_options)}" if index_options else ""
            raise ConfigError(
                f"{kind} of a column is an expression index, which requires the option {EXPR} with its function"
                f"{passed}; {kind} without columns is the index of the table"
            )
        texts = {name: str(value) for name, value in index_options.items()}
        texts[EXPR] = texts[EXPR].lower()
        index = ExpressionIndex.from_options(partition, kind, columns[0], texts)
        if index.expression.function == expression_index_definition.IDENTITY and kind == COLUMN_STATS:
            raise ConfigError(
                f"{kind} without a function is the metadata partition {kind}: add the column {columns[0]!r} to "
                f"{_COLUMNS_KEY}"
            )
        return cls(partition, kind, tuple(columns), index, tuple(texts.items()))

    def is_missing(self, storage: Storage, config: TableConfig) -> bool:
        """Return True if a table with a record index lacks this secondary index, and any other one of its column. A
        second one would be of no use, and would keep queries of a merge-on-read table from asking the first."""
        if config.version < 8 or RECORD_INDEX not in config.metadata_partitions:
            return False
        if self.partition in config.metadata_partitions_kept:
            return False
        existing = secondary_indexes(storage, config, include_building=True)
        return all(index.column not in self.columns for index in existing)

    @property
    def secondary(self) -> SecondaryIndex:
        """Return the requested secondary index."""
        return SecondaryIndex(self.partition, self.columns[0])

    @property
    def needs_spark(self) -> bool:
        """True if it has as many records as the table, or values computed by Spark."""
        return self.kind in (SECONDARY, RECORD_INDEX) or self.expression is not None

    def definition(self, version: int) -> dict[str, Any] | None:
        """Return its definition in a table of that version, if its builder does not declare it."""
        if self.expression is not None:
            return expression_definition(self.expression, dict(self.index_options), version)
        return secondary_definition(self.partition, self.columns[0], version) if self.kind == SECONDARY else None


def _checked_index_name(name: str | None, columns: Sequence[str], what: str) -> str:
    if not name or not set(name) <= _LETTERS:
        raise ConfigError(f"{what} requires a name of letters, digits and underscores, not {name!r}")
    if len(columns) != 1:
        listed_columns = ", ".join(columns) or "none"
        raise ConfigError(f"{what} has exactly one column, but index {name!r} has {listed_columns}")
    return name


def request_of(storage: Storage, config: TableConfig, partition: str) -> IndexRequest:
    """Return the index of a partition of the metadata table, using its definition if a table may have several of its
    type.

    Raises:
        UnsupportedTableError: The index is not supported, or has no definition.
    """
    if partition in BUILT_IN:
        return IndexRequest(partition, partition)
    definition = load_definitions(storage, config).get(partition)
    if definition is None and (is_secondary(partition) or expression_index_definition.is_expression(partition)):
        raise UnsupportedTableError(
            f"the index {partition} is planned, but the file of index definitions has no definition of it; drop "
            "it, and plan it again"
        )
    definition = definition or {}
    secondary = parse_secondary_index(partition, definition, config.version) if is_secondary(partition) else None
    if secondary is not None:
        return IndexRequest(partition, SECONDARY, (secondary.column,))
    expression = expression_index_definition.parse_expression_index(partition, definition, config.version)
    if expression is not None and expression_index_definition.is_expression(partition):
        index_options = tuple((definition.get("indexOptions") or {}).items())
        return IndexRequest(partition, expression.kind, (expression.expression.column,), expression, index_options)
    raise UnsupportedTableError(
        f"the definition of the index {partition} is not supported; Apache Hudi can execute its plan, or drop the index"
    )


def build_options(request: IndexRequest, opts: Options) -> dict[str, str]:
    """Return the options with which a write would build this index, which exists once per table, and no other. A record
    index is global unless ``opts`` request a partitioned one."""
    column, partition = (
        option.key for option in (options.METADATA_COLUMN_STATS_ENABLE, options.METADATA_PARTITION_STATS_ENABLE)
    )
    records = {options.METADATA_GLOBAL_RECORD_INDEX_ENABLE.key: "true"}
    enabling = {
        COLUMN_STATS: {column: "true"},
        PARTITION_STATS: {column: "true", partition: "true"},
        BLOOM_FILTERS: {options.METADATA_BLOOM_ENABLE.key: "true"},
        RECORD_INDEX: {} if opts.get_typed(options.METADATA_PARTITIONED_RECORD_INDEX_ENABLE) else records,
    }
    enabling_options = {} if request.expression is not None else enabling.get(request.kind, {})
    return {column: "false", partition: "false", **enabling_options}


def check_metadata_enabled(opts: Options) -> None:
    """Check that the options do not disable the metadata table, which has the indexes.

    Args:
        opts: Options of the service.

    Raises:
        ConfigError: They disable it.
    """
    if not is_metadata_enabled(opts):
        raise ConfigError(f"{options.METADATA_ENABLE.key} is false, but indexes require a metadata table")
