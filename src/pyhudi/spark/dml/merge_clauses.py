"""Clauses of a MERGE."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum

from pyspark.sql import Column


class When(Enum):
    """Kind of rows that a clause is for."""

    MATCHED = "matched"
    NOT_MATCHED = "not matched"
    NOT_MATCHED_BY_SOURCE = "not matched by source"


class MergeAction(Enum):
    """Action of a clause on a row."""

    UPDATE = 0
    DELETE = 1
    INSERT = 2


@dataclass(frozen=True, slots=True)
class Clause:
    """A clause of a MERGE.

    Args:
        when: Which rows it is for.
        do: What it does with them.
        values: New values by column, SQL texts or Columns; None: those of the source's columns of the same names.
        condition: Which of the rows it takes; None: all.
    """

    when: When
    do: MergeAction
    values: Mapping[str, object] | None = None
    condition: str | Column | None = None
