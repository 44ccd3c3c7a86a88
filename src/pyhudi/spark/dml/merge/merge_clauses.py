"""Clauses of a MERGE."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from enum import Enum
from typing import TypeVar

from pyspark.sql import Column

from pyhudi.errors import QueryError
from pyhudi.sql.statements import ClauseKind

T = TypeVar("T")


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
    values: Mapping[str, object] | None
    condition: str | Column | None

    def with_texts(self, changed: Callable[[str], str]) -> Clause:
        """Return the clause with other SQL texts.

        Args:
            changed: Returns the new text of a condition or value.
        """

        def other(value: T) -> T | str:
            return changed(value) if isinstance(value, str) else value

        values = None if self.values is None else {name: other(value) for name, value in self.values.items()}
        return replace(self, values=values, condition=other(self.condition))


def check_action(clause: Clause) -> None:
    """Check that a clause has an action which its rows allow.

    Raises:
        QueryError: It does not.
    """
    if (clause.action is MergeAction.INSERT) != (clause.kind is ClauseKind.NOT_MATCHED):
        raise QueryError(
            f"WHEN {clause.kind.value} cannot {clause.action.name}: WHEN NOT MATCHED inserts, and WHEN MATCHED and "
            "WHEN NOT MATCHED BY SOURCE update or delete"
        )
    is_update_all = clause.action is MergeAction.UPDATE and clause.values is None
    if clause.kind is ClauseKind.NOT_MATCHED_BY_SOURCE and is_update_all:
        raise QueryError("WHEN NOT MATCHED BY SOURCE has no source row to UPDATE SET * from")
