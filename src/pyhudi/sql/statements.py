"""Statements as frozen dataclasses of their clauses. Names of tables are tuples of parts; SQL texts are as written."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TypeAlias

from pyhudi.sql.scripts.script_nodes import Script

Name: TypeAlias = tuple[str, ...]
PartitionSpec: TypeAlias = Mapping[str, str | None]
"""Partition columns with the SQL of their values; None: the value comes from the rows, or any."""


@dataclass(frozen=True, slots=True)
class CreateTable:
    """CREATE or REPLACE TABLE … USING hudi, with columns, as a query, or like an existing table.

    Attributes:
        name: Its name.
        columns: Text of the columns; empty: those of the query or of the files.
        query: The query after AS.
        like: The existing table.
        partitioned_by: Names of the partition columns.
        properties: Properties, and options other than the path.
        location: Its path; None: in the folder of the database.
        comment: Its comment.
        if_not_exists: An existing table is left as it is.
        replace: An existing table is replaced.
        like_any: LIKE without USING, so that the table is a Hudi table only if the existing one is.
    """

    name: Name
    columns: str = ""
    query: str | None = None
    like: Name | None = None
    partitioned_by: tuple[str, ...] = ()
    properties: Mapping[str, str] = field(default_factory=dict)
    location: str | None = None
    comment: str | None = None
    if_not_exists: bool = False
    replace: bool = False
    like_any: bool = False


@dataclass(frozen=True, slots=True)
class CreateView:
    """CREATE VIEW.

    Attributes:
        name: Its name.
        head: The statement before the query.
        query: The query; None: it is a view of a data source.
        temporary: Whether it is a temporary view.
        replace: Whether it replaces an existing view.
        clauses: The part of ``head`` between the name and AS.
    """

    name: Name
    head: str
    query: str | None
    temporary: bool
    replace: bool = False
    clauses: str = ""


@dataclass(frozen=True, slots=True)
class ChangeView:
    """ALTER or DROP VIEW: ``verb`` is the first word, ``to`` the new name of RENAME TO, ``query`` the new query and
    ``head`` the statement before that."""

    name: Name
    verb: str
    to: Name | None = None
    query: str | None = None
    head: str = ""


@dataclass(frozen=True, slots=True)
class CreateFunction:
    """CREATE FUNCTION in SQL; ``query`` is its body, as a query."""

    name: Name
    query: str


@dataclass(frozen=True, slots=True)
class SelectStatement:
    """A statement that reads: ``head`` is the text before the query (EXPLAIN, an insert into another table)."""

    query: str
    head: str = ""


@dataclass(frozen=True, slots=True)
class ExecuteImmediate:
    """EXECUTE IMMEDIATE.

    Args:
        text: SQL of the text of the statement that is run.
        into: The variables of INTO, with commas between; empty: there is no INTO.
        using: The arguments of USING, with commas between; empty: there is no USING.
    """

    text: str
    into: str = ""
    using: str = ""


@dataclass(frozen=True, slots=True)
class CacheTable:
    """CACHE TABLE; ``query`` is that of a new temporary view, None: an existing table."""

    name: Name
    query: str | None = None
    lazy: bool = False
    options: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class UncacheTable:
    name: Name


@dataclass(frozen=True, slots=True)
class ClearCache:
    """CLEAR CACHE."""


@dataclass(frozen=True, slots=True)
class RepairPartitions:
    """MSCK REPAIR TABLE."""

    name: Name


@dataclass(frozen=True, slots=True)
class UnsupportedStatement:
    """A statement that a Hudi table does not support.

    Attributes:
        name: The table that it would change.
        what: Its words, for the message.
        instead: The alternative, for the message.
        text: The part of it that may read Hudi tables if the table is another format's.
        head: The part before that.
        tail: The part after it.
    """

    name: Name
    what: str
    instead: str
    text: str
    head: str = ""
    tail: str = ""


@dataclass(frozen=True, slots=True)
class Insert:
    """INSERT INTO or OVERWRITE; ``head`` is the statement before the query. ``if_not_exists``: nothing is written if
    the partition exists. ``replace_where``: the condition of REPLACE WHERE."""

    name: Name
    query: str
    head: str
    overwrite: bool = False
    partition: PartitionSpec = field(default_factory=dict)
    columns: tuple[str, ...] = ()
    by_name: bool = False
    if_not_exists: bool = False
    replace_where: str | None = None


@dataclass(frozen=True, slots=True)
class MultiInsert:
    """Several INSERTs after one FROM.

    Attributes:
        names: The tables, in the order of the text.
        source: FROM and what follows it.
        inserts: The INSERTs after it.
    """

    names: tuple[Name, ...]
    source: str
    inserts: tuple[str, ...]

    @property
    def texts(self) -> tuple[str, ...]:
        """One statement for each INSERT."""
        return tuple(f"{self.source} {insert}" for insert in self.inserts)


@dataclass(frozen=True, slots=True)
class Update:
    name: Name
    assigned: Mapping[str, str]
    alias: str | None = None
    where: str | None = None


@dataclass(frozen=True, slots=True)
class Delete:
    name: Name
    alias: str | None = None
    where: str | None = None


class ClauseKind(StrEnum):
    """Rows to which a clause of MERGE applies."""

    MATCHED = "MATCHED"
    NOT_MATCHED = "NOT MATCHED"
    NOT_MATCHED_BY_SOURCE = "NOT MATCHED BY SOURCE"


@dataclass(frozen=True, slots=True)
class MergeClause:
    """A clause of MERGE. ``action`` is UPDATE, DELETE or INSERT; ``values`` None: all columns by name."""

    kind: ClauseKind
    action: str
    condition: str | None = None
    values: Mapping[str, str] | None = None


@dataclass(frozen=True, slots=True)
class Merge:
    """MERGE INTO; ``source`` is SQL that is valid after FROM."""

    name: Name
    alias: str | None
    source: str
    on: str
    clauses: tuple[MergeClause, ...]


@dataclass(frozen=True, slots=True)
class SetProperties:
    """SET or UNSET TBLPROPERTIES. ``if_exists``: properties to remove may be absent."""

    name: Name
    changed: Mapping[str, str] = field(default_factory=dict)
    remove: tuple[str, ...] = ()
    if_exists: bool = True


@dataclass(frozen=True, slots=True)
class RenameTable:
    name: Name
    to: Name


@dataclass(frozen=True, slots=True)
class AddColumns:
    name: Name
    columns: str


@dataclass(frozen=True, slots=True)
class AddColumn:
    """A new column; ``kind`` is the text of its type."""

    path: Name
    kind: str
    comment: str | None = None
    first: bool = False
    after: str | None = None
    not_null: bool = False


@dataclass(frozen=True, slots=True)
class DropColumn:
    path: Name
    if_exists: bool = False


@dataclass(frozen=True, slots=True)
class RenameColumn:
    """Renaming of a column; ``to`` is only the last part of the path."""

    path: Name
    to: str


@dataclass(frozen=True, slots=True)
class ChangeColumn:
    """Change of type (its text), comment, position or nullability of a column; None or False means unchanged."""

    path: Name
    kind: str | None = None
    comment: str | None = None
    first: bool = False
    after: str | None = None
    nullable: bool | None = None


ColumnChange: TypeAlias = AddColumn | DropColumn | RenameColumn | ChangeColumn


@dataclass(frozen=True, slots=True)
class AlterColumns:
    """Changes of columns that require the schema history (schema-on-read evolution)."""

    name: Name
    changes: tuple[ColumnChange, ...]


@dataclass(frozen=True, slots=True)
class DropPartitions:
    name: Name
    partitions: tuple[PartitionSpec, ...]
    if_exists: bool = False


@dataclass(frozen=True, slots=True)
class UnsupportedAlter:
    """An unsupported change of a table, described by ``what``."""

    name: Name
    what: str


@dataclass(frozen=True, slots=True)
class Truncate:
    name: Name
    partition: PartitionSpec = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class DropTable:
    name: Name
    if_exists: bool = False
    purge: bool = False


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

    Args:
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


@dataclass(frozen=True, slots=True)
class CreateIndex:
    index: str
    name: Name
    columns: tuple[str, ...] = ()
    using: str | None = None
    options: Mapping[str, str] = field(default_factory=dict)
    if_not_exists: bool = False


@dataclass(frozen=True, slots=True)
class DropIndex:
    index: str
    name: Name
    if_exists: bool = False


@dataclass(frozen=True, slots=True)
class RefreshIndex:
    index: str
    name: Name


@dataclass(frozen=True, slots=True)
class RefreshTable:
    name: Name


@dataclass(frozen=True, slots=True)
class Call:
    """CALL of a procedure; values are Python texts, numbers, booleans and None."""

    procedure: str
    positional: tuple[object, ...] = ()
    named: Mapping[str, object] = field(default_factory=dict)


Statement: TypeAlias = (
    CreateTable
    | CreateView
    | CreateFunction
    | ChangeView
    | SelectStatement
    | Script
    | ExecuteImmediate
    | CacheTable
    | UncacheTable
    | ClearCache
    | RepairPartitions
    | UnsupportedStatement
    | Insert
    | MultiInsert
    | Update
    | Delete
    | Merge
    | SetProperties
    | RenameTable
    | AddColumns
    | AlterColumns
    | DropPartitions
    | UnsupportedAlter
    | Truncate
    | DropTable
    | Show
    | ShowViews
    | ShowTableExtended
    | Describe
    | CreateIndex
    | DropIndex
    | RefreshIndex
    | RefreshTable
    | Call
)
