"""Statements of views and of cached tables."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from pyhudi.sql.statements.statement_types import Name


@dataclass(frozen=True, slots=True)
class CreateView:
    """CREATE VIEW.

    Attributes:
        name: Its name.
        head: The statement before the query.
        query: The query; None: it is a view of a data source.
        temporary: It is a temporary view.
        replace: It replaces an existing view.
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
    """ALTER or DROP VIEW: ``verb`` is the first word, ``to`` the new name of RENAME TO, ``query`` the new query,
    ``head`` the statement before that, and ``clauses`` the text of another change."""

    name: Name
    verb: str
    to: Name | None = None
    query: str | None = None
    head: str = ""
    clauses: str = ""


@dataclass(frozen=True, slots=True)
class CacheTable:
    """CACHE TABLE; ``query`` is that of a new temporary view, None: an existing table."""

    name: Name
    query: str | None = None
    lazy: bool = False
    options: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class UncacheTable:
    """UNCACHE TABLE."""

    name: Name


@dataclass(frozen=True, slots=True)
class ClearCache:
    """CLEAR CACHE."""


@dataclass(frozen=True, slots=True)
class RefreshTable:
    """REFRESH TABLE."""

    name: Name
