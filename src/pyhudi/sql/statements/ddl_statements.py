"""Statements that create, change and drop tables, partitions and indexes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from pyhudi.sql.statements.statement_types import Name, PartitionSpec


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
class CreateFunction:
    """CREATE FUNCTION in SQL; ``query`` is its body, as a query."""

    name: Name
    query: str


@dataclass(frozen=True, slots=True)
class SetProperties:
    """SET or UNSET TBLPROPERTIES. ``if_exists``: properties to remove may be absent."""

    name: Name
    changed: Mapping[str, str] = field(default_factory=dict)
    remove: tuple[str, ...] = ()
    if_exists: bool = True


@dataclass(frozen=True, slots=True)
class RenameTable:
    """ALTER TABLE … RENAME TO."""

    name: Name
    to: Name


@dataclass(frozen=True, slots=True)
class AddColumns:
    """ALTER TABLE … ADD COLUMNS; ``columns`` is their text."""

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
    """Removal of a column or of a field of a struct."""

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
class DropTable:
    """DROP TABLE."""

    name: Name
    if_exists: bool
    purge: bool


@dataclass(frozen=True, slots=True)
class DropPartitions:
    """ALTER TABLE … DROP PARTITION."""

    name: Name
    partitions: tuple[PartitionSpec, ...]
    if_exists: bool


@dataclass(frozen=True, slots=True)
class Truncate:
    """TRUNCATE TABLE, or one partition of it."""

    name: Name
    partition: PartitionSpec


@dataclass(frozen=True, slots=True)
class RepairPartitions:
    """MSCK REPAIR TABLE."""

    name: Name


@dataclass(frozen=True, slots=True)
class CreateIndex:
    """CREATE INDEX ``index`` ON ``name``; ``using`` is its type."""

    index: str
    name: Name
    columns: tuple[str, ...]
    using: str | None
    options: Mapping[str, str]
    if_not_exists: bool = False


@dataclass(frozen=True, slots=True)
class DropIndex:
    """DROP INDEX ``index`` ON ``name``."""

    index: str
    name: Name
    if_exists: bool


@dataclass(frozen=True, slots=True)
class RefreshIndex:
    """REFRESH INDEX ``index`` ON ``name``."""

    index: str
    name: Name


INDEX_STATEMENTS = (CreateIndex, DropIndex, RefreshIndex)
"""Statements that only Hudi tables have."""
