"""Rows of the queries of FOR and of cursors, which a script has one at a time, as a temporary view."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql.types import StructType

from pyhudi.errors import QueryError
from pyhudi.spark.sql.typed_values import cast_columns, with_python_types


def local_rows(rows: DataFrame) -> Iterator[Row]:
    """Return an iterator over rows, for `show_row`, which fetches one partition at a time."""
    fetched: Iterator[Row] = cast_columns(rows, with_python_types(rows.schema)).toLocalIterator()
    return fetched


def show_row(spark: SparkSession, row: Row, schema: StructType, view: str) -> None:
    """Replace a temporary view by a row of `local_rows`.

    Args:
        spark: The session.
        row: The row.
        schema: The schema of the rows before they were fetched.
        view: The name of the view.
    """
    local_row = spark.createDataFrame([row], with_python_types(schema))
    cast_columns(local_row, schema).createOrReplaceTempView(view)


@dataclass
class ScriptCursor:
    """A cursor of a script, with the rows of its query while it is open. Its errors have the conditions of Spark's.

    Attributes:
        name: The name.
        query: The query.
    """

    name: str
    query: str
    _schema: StructType = field(default_factory=StructType)
    _rows: Iterator[Row] | None = None

    def check_closed(self) -> None:
        """Raise an error if the cursor is open.

        Raises:
            QueryError: It is.
        """
        if self._rows is not None:
            raise self._error("CURSOR_ALREADY_OPEN", "24502", "is open already; CLOSE it first")

    def open(self, rows: DataFrame) -> None:
        """Begin with the first one of some rows."""
        numbered = rows.toDF(*(f"_{number}" for number in range(len(rows.columns))))  # names may repeat
        self._schema, self._rows = numbered.schema, local_rows(numbered)

    def fetch(self, spark: SparkSession, variables: Sequence[str], view: str) -> str:
        """Replace a temporary view by the next row.

        Args:
            spark: The session.
            variables: Names of the variables that take the columns of the row, or of one that is a struct of them.
            view: The name of the view.

        Returns:
            The query of the values of the variables.

        Raises:
            QueryError: There are no more rows, there are too few or too many variables, or the cursor is not open.
        """
        row = next(self._opened(), None)
        if row is None:
            raise self._error("CURSOR_NO_MORE_ROWS", "02000", "has no more rows")
        columns = len(self._schema)
        if len(variables) not in (1, columns):
            what = f"has {columns} columns, and INTO {len(variables)} variables; name one for each column"
            raise self._error("ASSIGNMENT_ARITY_MISMATCH", "42802", what)
        show_row(spark, row, self._schema, view)
        return f"SELECT {'struct(*)' if len(variables) < columns else '*'} FROM {view}"

    def close(self) -> None:
        """Forget the rows.

        Raises:
            QueryError: The cursor is not open.
        """
        self._opened()
        self._rows = None

    def _opened(self) -> Iterator[Row]:
        if self._rows is None:
            raise self._error("CURSOR_NOT_OPEN", "24501", "is not open; OPEN it first")
        return self._rows

    def _error(self, condition: str, sqlstate: str, what: str) -> QueryError:
        return QueryError(f"[{condition}] the cursor {self.name!r} {what}. SQLSTATE: {sqlstate}")
