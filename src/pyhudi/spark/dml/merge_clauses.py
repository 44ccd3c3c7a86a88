"""Clauses of a MERGE."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum

from pyspark.sql import Column

from pyhudi.sql.statements import ClauseKind


class MergeAction(Enum):
    """Action of a clause on a row."""

    UPDATE = 0
    DELETE = 1
    INSERT = 2


@dataclass(frozen=True, slots=True)
class Clause:
    """A clause of a MERGE.

    Attributes:
        kind: Kind of rows to which it applies.
        action: The change of these rows.
        values: New values by column, SQL texts or Columns; None: those of the source columns with the same names.
        condition: Restriction to some of these rows; None: all.
    """

    kind: ClauseKind
    action: MergeAction
    values: Mapping[str, object] | None = None
    condition: str | Column | None = None
