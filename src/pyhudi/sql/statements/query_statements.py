"""Statements that return rows, and those that describe tables."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from pyhudi.sql.statements.statement_types import Name, PartitionSpec


@dataclass(frozen=True, slots=True)
class SelectStatement:
    """A statement that reads: ``head`` is the text before the query (EXPLAIN, an insert into another table)."""

    query: str
    head: str = ""


@dataclass(frozen=True, slots=True)
class ExecuteImmediate:
    """EXECUTE IMMEDIATE.

    Attributes:
        text: SQL of the text of the statement that is run.
        into: The variables of INTO, with commas between; empty: there is no INTO.
        using: The arguments of USING, with commas between; empty: there is no USING.
    """

    text: str
    into: str = ""
    using: str = ""


@dataclass(frozen=True, slots=True)
class Call:
    """CALL of a procedure; values are Python texts, numbers, booleans and None."""

    procedure: str
    positional: tuple[object, ...] = ()
    named: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Show:
    """SHOW of one table: ``what`` is PARTITIONS, CREATE TABLE, TBLPROPERTIES or INDEXES."""

    name: Name
    what: str
    key: str | None = None
    partition: PartitionSpec = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ShowViews:
    """SHOW VIEWS."""


@dataclass(frozen=True, slots=True)
class ShowTableExtended:
    """SHOW TABLE EXTENDED.

    Attributes:
        database: The database; None: the current one.
        pattern: The pattern of LIKE; with ``partition``, the name of one table.
        partition: Values of PARTITION; empty: tables are shown, no partition.
    """

    database: Name | None = None
    pattern: str = ""
    partition: PartitionSpec = field(default_factory=dict)

    @property
    def table(self) -> Name:
        """The table whose partition is shown."""
        return (*(self.database or ()), self.pattern)


@dataclass(frozen=True, slots=True)
class Describe:
    """DESCRIBE of a table, of a column, or of a partition. ``as_json``: the result is one JSON text, as in Spark 4."""

    name: Name
    extended: bool = False
    column: str | None = None
    as_json: bool = False
    partition: PartitionSpec = field(default_factory=dict)
