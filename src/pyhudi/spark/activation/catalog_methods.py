"""Methods of ``spark.catalog`` that are statements on one table, most of them of Spark 4.2: of a Hudi table, they run
these statements."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame

from pyhudi.spark.activation.method_wrapping import Method, Wrapper


def _nothing(_: DataFrame) -> None:
    return None


def _pairs(rows: DataFrame) -> dict[str, str]:
    return {row[0]: row[1] for row in rows.collect()}


def _text(rows: DataFrame) -> str:
    return str(rows.collect()[0][0])


def _partitions(rows: DataFrame) -> list[Any]:
    from pyspark.sql.catalog import TablePartition  # which Spark 3.5 does not have

    return [TablePartition(partition=row[0]) for row in rows.collect()]


@dataclass(frozen=True, slots=True)
class _Statement:
    """A statement, with the name of the table in place of ``{}``.

    Attributes:
        text: The statement.
        returned: Converts its result to that of the method.
    """

    text: str
    returned: Callable[[DataFrame], Any] = _nothing


_STATEMENTS = {
    "recoverPartitions": _Statement("MSCK REPAIR TABLE {}"),
    "dropTable": _Statement("DROP TABLE {}"),
    "dropView": _Statement("DROP VIEW {}"),
    "truncateTable": _Statement("TRUNCATE TABLE {}"),
    "analyzeTable": _Statement("ANALYZE TABLE {} COMPUTE STATISTICS"),
    "listPartitions": _Statement("SHOW PARTITIONS {}", _partitions),
    "getTableProperties": _Statement("SHOW TBLPROPERTIES {}", _pairs),
    "getCreateTableString": _Statement("SHOW CREATE TABLE {}", _text),
}
CATALOG_STATEMENTS = tuple(_STATEMENTS)
"""Names of the methods."""


def run_statement(method: str) -> Wrapper:
    """Return the wrapper of one of `CATALOG_STATEMENTS`."""
    statement = _STATEMENTS[method]

    def run(original: Method, catalog: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        from pyhudi.spark.sql.command_execution import run_sql
        from pyhudi.spark.sql.tables_by_name import table_of_name

        spark, name = catalog._sparkSession, str(args[0] if args else kwargs.get("tableName", kwargs.get("viewName")))
        if table_of_name(spark, name) is None:
            return original(catalog, *args, **kwargs)
        purge = method == "dropTable" and (kwargs.get("purge") or args[2:3] == (True,))
        return statement.returned(run_sql(spark, statement.text.format(name) + " PURGE" * bool(purge)))

    return run


def list_views(original: Method, catalog: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """``spark.catalog.listViews``: without Hudi tables, which the catalog keeps as views."""
    from pyhudi.spark.sql.catalog import EXTERNAL_TYPE, MANAGED_TYPE
    from pyhudi.spark.sql.catalog_listing import listed_tables

    views = listed_tables(catalog._sparkSession, original(catalog, *args, **kwargs))
    return [view for view in views if view.tableType not in (MANAGED_TYPE, EXTERNAL_TYPE)]
