"""Parameters of a statement passed to ``spark.sql``."""

from __future__ import annotations

import string
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar, cast
from uuid import uuid4

from pyspark.sql import Column, DataFrame, SparkSession

from pyhudi.errors import QueryError
from pyhudi.spark.column_names import quoted
from pyhudi.spark.execution.cached_frames import is_cached
from pyhudi.spark.execution.temporary_views import with_separate_plan
from pyhudi.spark.session import spark_sql
from pyhudi.spark.session_settings import is_column, is_dataframe
from pyhudi.sql.parsers.statement_parser import parse
from pyhudi.sql.rewriting.parameter_literals import with_literals
from pyhudi.sql.string_literals import string_literal

_T = TypeVar("_T")


class StatementParameters:
    """Values of the parameters of a statement, and of the ``{fields}`` in its text.

    Spark replaces fields before it parses a statement: DataFrames by names of temporary views, Columns by their names,
    texts by literals. Here, `text` has generated names for DataFrames and Columns. In statements that Spark executes,
    `run` restores the fields; for others, `frames_as_views` creates the views.

    Args:
        text: The statement.
        args: Values of parameters (``?`` and ``:name``).
        fields: Values of fields by name.
        escapes: Backslashes in literals are escapes (`pyhudi.sql.string_literals`).
    """

    def __init__(self, text: str, args: Any, fields: Mapping[str, Any] | None, *, escapes: bool) -> None:
        self.args = args
        self._escapes = escapes
        self._fields = dict(fields or {})
        self._formatter = _Formatter()
        self.text = self._formatter.vformat(text, (), self._fields) if self._fields else text
        """The statement without fields."""

    def run(self, spark: SparkSession, text: str) -> DataFrame:
        """Execute `text`, or a text derived from it, by Spark."""
        parameters = {} if self.args is None else {"args": self.args}
        names = self._formatter.names
        if not names:
            return spark_sql(spark, text, **parameters)
        text = text.replace("{", "{{").replace("}", "}}")
        for name, (field, _) in names.items():
            text = text.replace(name, f"{{{field}}}")
        return spark_sql(spark, text, **parameters, **self._fields)

    def with_literals(self, statement: _T) -> _T:
        """Return a statement that was parsed from `text`, with literals in place of its parameters.

        Args:
            statement: The parsed `text`, with its parameters.

        Raises:
            QueryError: A parameter is no single value.
        """
        if not self.args:
            return statement
        parsed: Any = parse(with_literals(self.text, self.args, escapes=self._escapes))
        return cast("_T", parsed)

    @contextmanager
    def frames_as_views(self, spark: SparkSession) -> Iterator[None]:
        """Return a context manager in which `text` can be executed in parts: its DataFrames are temporary views.

        Raises:
            QueryError: The text has a Column.
        """
        shown: list[str] = []
        try:
            for name, (field, value) in self._formatter.names.items():
                if not is_dataframe(value):
                    raise QueryError(f"{{{field}}} is {value}: write the name of the column into the statement instead")
                (with_separate_plan(value) if is_cached(value) else value).createOrReplaceTempView(name)
                shown.append(name)
            yield
        finally:
            for name in shown:
                spark.catalog.dropTempView(name)


class _Formatter(string.Formatter):
    """Replaces fields as Spark does, but DataFrames, and Columns other than ``{frame.column}``, by new names, because a
    Column may be a name or a value."""

    def __init__(self) -> None:
        self.names: dict[str, tuple[str, DataFrame | Column]] = {}

    def get_field(self, field_name: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        value, first = super().get_field(field_name, args, kwargs)
        name, _, column = field_name.partition(".")
        frame = kwargs.get(name)
        if frame is not None and is_dataframe(frame) and column in frame.columns:
            return quoted([column]), first
        return self._as_sql(value, field_name), first

    def _as_sql(self, value: Any, field: str) -> Any:
        if isinstance(value, str):
            return string_literal(value)
        if not (is_dataframe(value) or is_column(value)):
            return value
        names = (name for name, (_, parameter) in self.names.items() if parameter is value)
        name = next(names, f"_pyhudi_frame_{uuid4().hex}")
        self.names[name] = (field, value)
        return name
