"""Statements that are refused if their table is a Hudi table."""

from __future__ import annotations

from dataclasses import dataclass

from pyhudi.sql.statements.statement_types import Name


@dataclass(frozen=True, slots=True)
class UnsupportedStatement:
    """A statement that a Hudi table does not support.

    Attributes:
        name: The table that it would change.
        what: Its words, for the message.
        instead: The alternative, for the message.
        text: The part of it that may read Hudi tables if the table is another format's.
        head: The part before that.
    """

    name: Name
    what: str
    instead: str
    text: str
    head: str = ""


@dataclass(frozen=True, slots=True)
class UnsupportedAlter:
    """An unsupported change of a table, described by ``what``."""

    name: Name
    what: str
