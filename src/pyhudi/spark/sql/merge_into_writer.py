"""``df.mergeInto(name, condition)`` of Hudi tables, a method of Spark 4."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NoReturn

from pyspark.sql import Column, DataFrame

from pyhudi.config import Options
from pyhudi.errors import UnsupportedTableError
from pyhudi.spark.dml.merge.merge_builder import MergeBuilder
from pyhudi.spark.dml.merge.merge_clauses import Clause, MergeAction, check_action
from pyhudi.spark.sql.catalog import CatalogTable
from pyhudi.spark.sql.commands.command_target import write_options
from pyhudi.sql.statements import ClauseKind


@dataclass(slots=True)
class MergeIntoWriter:
    """``df.mergeInto(name, condition)`` of a Hudi table: the methods of Spark's ``MergeIntoWriter``.

    As there, a clause changes the writer, which is returned only for chaining.
    """

    pending: MergeBuilder

    @classmethod
    def into(cls, table: CatalogTable, source: DataFrame, condition: str | Column) -> MergeIntoWriter:
        """Return a writer without clauses.

        Args:
            table: The table, whose columns are qualified by the last part of its name.
            source: The rows to merge.
            condition: Condition for matching rows.
        """
        opts = Options.parse(write_options(source.sparkSession, table))
        return cls(MergeBuilder(table.location, opts, table.name[-1], source, condition))

    def whenMatched(self, condition: Column | None = None) -> WhenClause:  # noqa: N802
        """Begin a clause for pairs of rows that match."""
        return WhenClause(self, ClauseKind.MATCHED, condition)

    def whenNotMatched(self, condition: Column | None = None) -> WhenClause:  # noqa: N802
        """Begin a clause for source rows without a match."""
        return WhenClause(self, ClauseKind.NOT_MATCHED, condition)

    def whenNotMatchedBySource(self, condition: Column | None = None) -> WhenClause:  # noqa: N802
        """Begin a clause for rows of the table without a match."""
        return WhenClause(self, ClauseKind.NOT_MATCHED_BY_SOURCE, condition)

    def withSchemaEvolution(self) -> NoReturn:  # noqa: N802
        """Refuse to add columns to the table.

        Raises:
            UnsupportedTableError: Always.
        """
        raise UnsupportedTableError(
            "mergeInto(…).withSchemaEvolution() is not supported by Hudi tables: add the columns by ALTER TABLE … ADD "
            "COLUMNS first"
        )

    def merge(self) -> None:
        """Run the MERGE, as one commit.

        Raises:
            QueryError: There are no clauses.
            AmbiguousMergeError: Several source rows match a row of the table that is updated.
            SchemaMismatchError: A column is missing, or a value cannot be converted to the type of its column.
            ConflictError: Other writers changed the rows that were read, in every attempt.
        """
        self.pending.execute()


@dataclass(frozen=True, slots=True)
class WhenClause:
    """A clause of `MergeIntoWriter` before its action.

    Attributes:
        writer: The writer to which the action adds the clause.
        kind: Kind of rows to which the clause applies.
        condition: Restriction to some of these rows; None: all.
    """

    writer: MergeIntoWriter
    kind: ClauseKind
    condition: Column | None

    def updateAll(self) -> MergeIntoWriter:  # noqa: N802
        """Update all columns from those of the source with the same names."""
        return self._with(MergeAction.UPDATE)

    def update(self, assignments: Mapping[str, Column]) -> MergeIntoWriter:
        """Update columns by name."""
        return self._with(MergeAction.UPDATE, assignments)

    def insertAll(self) -> MergeIntoWriter:  # noqa: N802
        """Insert the columns of the source by name."""
        return self._with(MergeAction.INSERT)

    def insert(self, assignments: Mapping[str, Column]) -> MergeIntoWriter:
        """Insert values by column; the other columns are null."""
        return self._with(MergeAction.INSERT, assignments)

    def delete(self) -> MergeIntoWriter:
        """Delete the row of the table."""
        return self._with(MergeAction.DELETE)

    def _with(self, action: MergeAction, assignments: Mapping[str, Column] | None = None) -> MergeIntoWriter:
        values = None if assignments is None else dict(assignments)
        clause = Clause(self.kind, action, values, self.condition)
        check_action(clause)
        self.writer.pending = self.writer.pending.with_clause(clause)
        return self.writer
