"""Statements that change the rows of a table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TypeAlias

from pyhudi.sql.statements.statement_types import Name, PartitionSpec


@dataclass(frozen=True, slots=True)
class Insert:
    """INSERT INTO or OVERWRITE; ``head`` is the statement before the query. ``if_not_exists``: nothing is written if
    the partition exists. ``replace_where``: the condition of REPLACE WHERE. ``options``: options of the write, ``WITH
    (key = value)`` after the name."""

    name: Name
    query: str
    head: str
    overwrite: bool = False
    partition: PartitionSpec = field(default_factory=dict)
    columns: tuple[str, ...] = ()
    by_name: bool = False
    if_not_exists: bool = False
    replace_where: str | None = None
    options: Mapping[str, str] = field(default_factory=dict)


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
    """UPDATE; ``assigned`` are SQL texts of the new values by column."""

    name: Name
    assigned: Mapping[str, str]
    alias: str | None
    where: str | None


@dataclass(frozen=True, slots=True)
class Delete:
    """DELETE FROM."""

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


Change: TypeAlias = Insert | Update | Delete | Merge


@dataclass(frozen=True, slots=True)
class ExplainChange:
    """EXPLAIN of a statement that changes a table.

    Attributes:
        name: The table.
        change: The statement.
        head: EXPLAIN, with its mode.
        text: The text of the statement.
    """

    name: Name
    change: Change
    head: str
    text: str
