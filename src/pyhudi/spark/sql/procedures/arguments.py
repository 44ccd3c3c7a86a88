"""Arguments of a procedure, and the table that they name."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, cast

from pyspark.sql import SparkSession

from pyhudi.config import Options
from pyhudi.errors import QueryError
from pyhudi.spark.read.load_table import session_settings
from pyhudi.spark.sql.catalog import find_table
from pyhudi.spark.sql.queries.functions.table_functions import locate
from pyhudi.spark.sql.session_config import session_options
from pyhudi.spark.sql.sql_table import SqlTable
from pyhudi.sql.procedure_signatures import Signature
from pyhudi.sql.token_cursor import Cursor
from pyhudi.storage import open_storage
from pyhudi.table.meta_client import TableMetaClient

Rows: TypeAlias = Iterable[Sequence[Any]]


@dataclass(frozen=True, slots=True)
class Arguments:
    """The arguments of a call, by name."""

    signature: Signature
    values: Mapping[str, object]

    def text(self, name: str) -> str | None:
        return cast("str | None", self.values[name])

    def number(self, name: str) -> int | None:
        return cast("int | None", self.values[name])

    def texts(self, name: str) -> list[str]:
        """Return the parts of a text with commas between; none without the argument."""
        return [part.strip() for part in (self.text(name) or "").split(",") if part.strip()]

    def flag(self, name: str) -> bool:
        """Return a boolean."""
        return bool(self.values[name])

    def limited(self, rows: Rows) -> list[Sequence[Any]]:
        """Return as many rows as ``limit`` allows; no more are made."""
        limit = self.number("limit")
        return list(rows if limit is None or limit < 0 else itertools.islice(rows, limit))

    def file(self, spark: SparkSession, name: str) -> bytes:
        """Return the content of the file whose path is an argument, by the session's settings of its storage.

        Raises:
            QueryError: The path is empty.
        """
        path = self.text(name)
        if not path:
            raise QueryError(f"{self.signature.name} needs the path of a file as {name}")
        folder, _, file_name = path.rpartition("/")
        return open_storage(folder or "/", Options.parse(session_settings(spark, folder))).read(file_name)

    def location(self, spark: SparkSession) -> str:
        """Return where the table of ``table`` or ``path`` is.

        Raises:
            QueryError: Neither is given, or the catalog has no such table.
        """
        path = self.values.get("path")
        if path is not None:
            return str(path)
        name = self.values.get("table")
        if name is None:
            raise QueryError(f"{self.signature.name} needs table or path")
        return locate(spark, str(name))

    def client(self, spark: SparkSession) -> TableMetaClient:
        """Open the table."""
        location = self.location(spark)
        return TableMetaClient.open(location, Options.parse(session_settings(spark, location)))

    def table(self, spark: SparkSession, options: Mapping[str, str] | None = None) -> SqlTable:
        """Open the table with options. Later sources take precedence: table properties, session, the argument
        ``options`` of the procedure, ``options``."""
        session, pairs = session_options(spark), _pairs(self.values.get("options"))
        table_options = {**self._properties(spark), **session, **pairs, **(options or {})}
        return SqlTable.at(spark, self.location(spark), table_options)

    def _properties(self, spark: SparkSession) -> dict[str, str]:
        """Options of the properties with which the table of ``table`` was declared, if it is given by name."""
        name = self.values.get("table")
        if name is None or self.values.get("path") is not None or "/" in str(name):
            return {}
        entry = find_table(spark, Cursor(str(name)).name())
        return {} if entry is None else entry.options

    def opened(self, spark: SparkSession, options: Mapping[str, str] | None = None) -> tuple[TableMetaClient, Options]:
        """Open the table for a service, by the same options as `table`.

        Raises:
            TableConfigConflictError: An option contradicts the table.
        """
        client = self.table(spark, options).client
        return client, client.config.validate_against(client.options)

    def pairs(self, name: str) -> dict[str, str]:
        """Return an argument of the form ``key=value,key=value``.

        Raises:
            QueryError: It is of another form.
        """
        return _pairs(self.values.get(name))

    def as_options(self, names: Mapping[str, str]) -> dict[str, str]:
        """Return the arguments that are given as options: ``names`` has the option of each."""
        return {option: str(self.values[name]) for name, option in names.items() if self.values[name] is not None}


def _pairs(text: object) -> dict[str, str]:
    """Parse ``key=value,key=value``."""
    pairs = {}
    for pair in str(text or "").split(","):
        if pair.strip():
            key, equal, value = pair.partition("=")
            if not equal:
                raise QueryError(f"options are key=value pairs with commas between, not {pair!r}")
            pairs[key.strip()] = value.strip()
    return pairs


Procedure: TypeAlias = Callable[[SparkSession, Arguments], Rows]
