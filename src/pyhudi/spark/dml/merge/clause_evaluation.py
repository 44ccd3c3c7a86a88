"""Evaluation of the clauses of a MERGE on pairs of rows: which clause applies, and the resulting row."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812

from pyhudi.spark.column_names import quoted
from pyhudi.spark.dml.assignments.column_assignments import (
    AssignedPath,
    as_column,
    assigned_values,
    convert_values,
    resolve_assignments,
)
from pyhudi.spark.dml.assignments.row_expressions import row_expression_types
from pyhudi.spark.dml.merge.merge_clauses import Clause, MergeAction
from pyhudi.spark.dml.target_table import TargetTable
from pyhudi.spark.spark_types import null_columns
from pyhudi.sql.statements import ClauseKind

ROW_ID = "_pyhudi_row_id"
"""Number of a row of the table; null for new records."""
KIND = "_pyhudi_kind"
"""Value of `MergeAction`."""
IN_TARGET, IN_SOURCE = "_pyhudi_in_target", "_pyhudi_in_source"
"""Whether a pair has a row of the table, and one of the source: true or null."""
CLAUSE, STORED = "_pyhudi_clause", "_pyhudi_stored"
"""Number of the clause that applies to a pair, and, if rows may move, the stored row."""
EQUATED = "_pyhudi_equated_"
"""Prefix of copies of the source's columns that the condition equates with columns of the table."""
_CALL = re.compile(r"(?<![\w`])(?!(?:and|or|not|in|is|like|between|when|then|else|case)\b)[\w`]+\s*\(", re.IGNORECASE)
_NEW, _COPY = "_pyhudi_new_", "_pyhudi_copy_of_"


@dataclass(frozen=True, slots=True)
class ClauseEvaluator:
    """Clauses of a MERGE into a table.

    Attributes:
        clauses: The clauses, in the order in which they are tried.
        alias: Name of the table in them.
        target: The table.
        case_sensitive: Names of columns are compared case-sensitively.
        source_columns: Names of the columns of the source.
    """

    clauses: Sequence[Clause]
    alias: str
    target: TargetTable
    case_sensitive: bool
    source_columns: Sequence[str]

    def has(self, kind: ClauseKind) -> bool:
        """Return True if there is a clause for rows of a kind."""
        return any(clause.kind is kind for clause in self.clauses)

    def folded(self, name: str) -> str:
        """Return a name of a column in the form in which names are compared."""
        return name if self.case_sensitive else name.lower()

    def copy_name(self, name: str) -> str:
        """Return the name of the copy of a source column that is copied by name."""
        return _COPY + self.folded(name)

    def evaluate(
        self,
        joined: DataFrame,
        kinds: Sequence[ClauseKind],
        unassigned: frozenset[str],
        equated: Sequence[str] = (),
    ) -> DataFrame:
        """Evaluate the clauses for some kinds of rows: the number of the clause that applies to a pair (null: none),
        and the resulting row, of which updates have no values of ``unassigned`` columns.

        In clauses for source rows without a match, an unqualified name is a column of the source; those of the table
        are null. ``equated``: columns of the source whose copies the result keeps.
        """
        stored = [kind for kind in kinds if kind is not ClauseKind.NOT_MATCHED]
        self._check_conditions(joined, stored)
        numbered = joined.withColumn(CLAUSE, self._clause_number(stored))
        before = {name: F.col(quoted([self.alias, name])) for name in self.target.schema.names}
        updated = numbered.withColumns(self._updated(numbered, stored, before, unassigned)).drop(*before.values())
        if ClauseKind.NOT_MATCHED in kinds:
            if self.folded(self.alias) not in {self.folded(name) for name in self.source_columns}:
                updated = updated.withColumn(self.alias, self._absent())
            self._check_conditions(updated, [ClauseKind.NOT_MATCHED])
            number = F.coalesce(F.col(CLAUSE), self._clause_number([ClauseKind.NOT_MATCHED]))
            updated = updated.withColumn(CLAUSE, number)
        return self._result(updated, kinds, equated)

    def _absent(self) -> Column:
        """Return a null in place of the stored row of source rows without a match, as a struct, so that its columns can
        be qualified."""
        return F.lit(None).cast(self.target.schema)

    def _numbered(self, kinds: Sequence[ClauseKind]) -> list[tuple[int, Clause]]:
        return [(number, clause) for number, clause in enumerate(self.clauses) if clause.kind in kinds]

    def _check_conditions(self, rows: DataFrame, kinds: Sequence[ClauseKind]) -> None:
        """Check that the conditions of clauses have one value for each row.

        Raises:
            QueryError: One has a window function, an aggregate, or a function that makes several rows.
        """
        conditions = {
            f"the condition of clause {number + 1}": as_column(clause.condition)
            for number, clause in self._numbered(kinds)
            if _may_call_function(clause.condition)
        }
        if conditions:
            row_expression_types(rows, conditions)

    def _clause_number(self, kinds: Sequence[ClauseKind]) -> Column:
        chosen = F.lit(None).cast("int")
        for number, clause in reversed(self._numbered(kinds)):
            in_target, in_source = F.col(IN_TARGET).isNotNull(), F.col(IN_SOURCE).isNotNull()
            fits = {
                ClauseKind.MATCHED: in_target & in_source,
                ClauseKind.NOT_MATCHED: ~in_target & in_source,
                ClauseKind.NOT_MATCHED_BY_SOURCE: in_target & ~in_source,
            }[clause.kind]
            if clause.condition is not None:
                fits &= F.coalesce(as_column(clause.condition), F.lit(False))
            chosen = F.when(fits, F.lit(number)).otherwise(chosen)
        return chosen

    def _updated(
        self, joined: DataFrame, kinds: Sequence[ClauseKind], stored: dict[str, Column], unassigned: frozenset[str]
    ) -> dict[str, Column]:
        """Return the values of the table's columns after the updates, null for unassigned ones, and, if rows may move,
        those before, ``stored``."""
        values = self._assign(kinds, joined, stored | self.target.absent(unassigned))
        updated = {_NEW + name: value for name, value in values.items()}
        if self.moves:
            updated[STORED] = F.struct(*(value.alias(name) for name, value in stored.items()))
        return updated

    def _assign(self, kinds: Sequence[ClauseKind], rows: DataFrame, before: dict[str, Column]) -> dict[str, Column]:
        """Return the values of the table's columns after clauses for some kinds of rows."""
        values = dict(before)
        for number, clause in self._numbered(kinds):
            for name, value in self._values(clause, rows).items():
                values[name] = F.when(F.col(CLAUSE) == number, value).otherwise(values[name])
        return values

    def _result(self, updated: DataFrame, kinds: Sequence[ClauseKind], equated: Sequence[str]) -> DataFrame:
        """Return the rows with new values, helper columns, and, if rows may move, stored values."""
        numbered, new_names = self._numbered(kinds), {name: _NEW + name for name in self.target.schema.names}
        added = {}
        if ClauseKind.NOT_MATCHED in kinds:
            values = {name: F.col(quoted([new])) for name, new in new_names.items()}
            values = self._assign([ClauseKind.NOT_MATCHED], updated, values)
            added = {new: values[name] for name, new in new_names.items()}
        added[KIND] = reduce(
            lambda others, pair: F.when(F.col(CLAUSE) == pair[0], F.lit(pair[1].action.value)).otherwise(others),
            numbered[1:],
            F.lit(numbered[0][1].action.value),
        )
        columns = [f"{quoted([new])} AS {quoted([name])}" for name, new in new_names.items()]
        copies = [EQUATED + name for name in equated]
        helpers = [*([STORED] if self.moves else []), *self.target.helpers, ROW_ID, *copies, CLAUSE, KIND]
        return updated.withColumns(added).selectExpr(*columns, *(quoted([name]) for name in helpers))

    def _values(self, clause: Clause, joined: DataFrame) -> dict[str, Column]:
        """Return the assignments of a clause, converted to the types of the table's columns."""
        target = self.target
        if clause.action is MergeAction.DELETE:
            return {}
        if clause.values is None:
            copies = {name: F.col(quoted([self.copy_name(name)])) for name in target.schema.names}
            return convert_values(joined, copies, target.schema)
        values = assigned_values(self._assignments(clause), target.schema, self.alias)
        values = convert_values(joined, values, target.schema)
        if clause.action is MergeAction.INSERT:
            values |= null_columns(field for field in target.schema.fields if field.name not in values)
            return {name: values[name] for name in target.schema.names}
        return values

    def _assignments(self, clause: Clause) -> dict[AssignedPath, object]:
        return resolve_assignments(
            clause.values or {},
            self.target.schema,
            case_sensitive=self.case_sensitive,
            alias=self.alias,
            inserts=clause.action is MergeAction.INSERT,
        )

    @property
    def assigned(self) -> frozenset[str]:
        """Columns that are assigned by an update."""
        updates = [clause for clause in self.clauses if clause.action is MergeAction.UPDATE]
        if any(clause.values is None for clause in updates):
            return frozenset(self.target.schema.names)
        return frozenset(path[0] for clause in updates for path in self._assignments(clause))

    @property
    def moves(self) -> bool:
        """True if an update may move a row to another partition."""
        return bool(self.target.partition_columns & self.assigned)


def _may_call_function(condition: str | Column | None) -> bool:
    """Return True unless a condition certainly has only operators: a word before a parenthesis is one then."""
    return condition is not None and _CALL.search(str(condition)) is not None
