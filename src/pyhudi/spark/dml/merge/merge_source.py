"""Source of a MERGE: its columns, and the columns of the table that the condition equates with them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql import types as T  # noqa: N812

from pyhudi.errors import SchemaMismatchError
from pyhudi.schema.meta_columns import is_meta_column, is_reserved
from pyhudi.spark.column_names import quoted
from pyhudi.spark.dml.merge.clause_evaluation import EQUATED, IN_SOURCE, ClauseEvaluator
from pyhudi.spark.dml.merge.merge_clauses import MergeAction
from pyhudi.spark.lookup.key_constraint import are_equal_as_key_text, summarize_keys
from pyhudi.spark.spark_errors import task_errors
from pyhudi.sql.conditions.merge_condition import MergeSides, equalities, equated_columns
from pyhudi.sql.rewriting.moment_functions import MOMENTS, with_moment_columns
from pyhudi.sql.statements import ClauseKind

_MOMENT = "_pyhudi_moment_"


@dataclass(frozen=True, slots=True)
class SourceSummary:
    """Properties of the rows of a source.

    Attributes:
        count: Number of rows.
        unique: No two rows match the same row of the table.
        exact: Values of the columns that the condition equates are equal if and only if their key texts are.
    """

    count: int
    unique: bool
    exact: bool


@dataclass(frozen=True, slots=True)
class MergeSource:
    """Source of a MERGE, and the condition under which its rows match rows of the table.

    Attributes:
        rows: The source.
        on: The condition.
        evaluator: The clauses, with the table.
        alias: Name of the source in the condition; None: unknown.
    """

    rows: DataFrame
    on: str | Column
    evaluator: ClauseEvaluator
    alias: str | None

    def check_columns(self) -> None:
        """Check the names of the source's columns.

        Raises:
            SchemaMismatchError: A column is missing, or has a reserved name.
        """
        clash = sorted(filter(is_reserved, self.rows.columns))
        if clash:
            raise SchemaMismatchError(f"the source's column name {clash[0]!r} is reserved; rename the column")
        self._copied()

    def _copied(self) -> list[str]:
        """Return the columns of the source that are copied by name."""
        if all(clause.values is not None or clause.action is MergeAction.DELETE for clause in self.evaluator.clauses):
            return []
        folded = self.evaluator.folded
        names = [name for name in self.rows.columns if not is_meta_column(name)]
        available = {folded(name) for name in names}
        missing = [name for name in self.evaluator.target.schema.names if folded(name) not in available]
        if missing:
            raise SchemaMismatchError(
                f"the source lacks the column {missing[0]!r}, which updating or inserting all columns needs; its "
                f"columns are {', '.join(names)}"
            )
        table_columns = {folded(name) for name in self.evaluator.target.schema.names}
        return [name for name in names if folded(name) in table_columns]

    def with_one_moment(self) -> MergeSource:
        """Return the source with the time of the statement (``current_timestamp()``) as a column, if rows with a match
        and those without one are evaluated one after the other, each at a time of its own."""
        evaluator = self.evaluator
        apart = evaluator.has(ClauseKind.MATCHED) and evaluator.has(ClauseKind.NOT_MATCHED)
        if not apart or evaluator.has(ClauseKind.NOT_MATCHED_BY_SOURCE) or not self.equated:
            return self
        columns = {function: f"{_MOMENT}{n}" for n, function in enumerate(dict.fromkeys(MOMENTS.values()))}
        names = {name.lower() for name in (*evaluator.target.schema.names, *self.rows.columns)}
        changed = partial(with_moment_columns, columns=columns, names=names)
        clauses = tuple(clause.with_texts(changed) for clause in evaluator.clauses)
        if clauses == tuple(evaluator.clauses):
            return self
        rows = self.rows.select("*", *(F.expr(function).alias(name) for function, name in columns.items()))
        return replace(self, rows=rows, evaluator=replace(evaluator, clauses=clauses, source_columns=rows.columns))

    def marked(self) -> DataFrame:
        """Return the source with the helper columns of a join with the table: copies of the columns that are copied by
        name or equated, and the mark `IN_SOURCE`."""
        copies = [(name, self.evaluator.copy_name(name)) for name in self._copied()]
        copies += [(name, EQUATED + name) for name in self.equated]
        copied = (f"{quoted([name])} AS {quoted([copy])}" for name, copy in copies)
        return self.rows.selectExpr("*", *copied, f"true AS {IN_SOURCE}")

    @property
    def _sides(self) -> MergeSides:
        evaluator = self.evaluator
        names = evaluator.target.schema.names
        return MergeSides.from_columns(evaluator.alias, names, self.rows.columns, self.alias)

    @property
    def equated_by_name(self) -> frozenset[str] | None:
        """Names, in lower case, of the columns that the condition equates with columns of the same name; None if it has
        other conditions."""
        return equated_columns(self.on, self._sides) if isinstance(self.on, str) else None

    @property
    def equated(self) -> list[str]:
        """Columns of the source that the condition equates with columns of the table, if it does nothing else."""
        pairs = equalities(self.on, self._sides) if isinstance(self.on, str) else None
        source_names = {other for _, other in pairs or ()}
        names = [name for name in self.rows.columns if name.lower() in source_names]
        return names if len(names) == len(source_names) else []

    def summarize(self, rows: DataFrame) -> SourceSummary:
        """Count the rows of the source, which are cached. Runs a Spark job. Spark then knows their size, and can decide
        whether to broadcast them."""
        names = self.equated
        with task_errors():
            summary = summarize_keys(rows, names).first()
        assert summary is not None
        count, max_rows_of_key, is_ambiguous = summary
        pairs = self._equated_types()
        # If types differ, Spark casts: two strings may equal the same number.
        unique = (max_rows_of_key or 0) <= 1 and all(table_type == source_type for table_type, source_type in pairs)
        return SourceSummary(count or 0, unique, exact=not is_ambiguous and are_equal_as_key_text(pairs))

    def _equated_types(self) -> list[tuple[T.DataType | None, T.DataType | None]]:
        """Return the types of the equated columns, in the table and in the source."""
        assert isinstance(self.on, str)
        table_types, source_types = (
            {field.name.lower(): field.dataType for field in schema.fields}
            for schema in (self.evaluator.target.schema, self.rows.schema)
        )
        return [
            (table_types.get(name), source_types.get(source)) for name, source in equalities(self.on, self._sides) or ()
        ]
