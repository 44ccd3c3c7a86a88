"""Statements that would change a view of Hudi tables, on which Spark fails with an internal error."""

from __future__ import annotations

from pyspark.sql import SparkSession

from pyhudi.errors import QueryError
from pyhudi.spark.column_names import quoted
from pyhudi.spark.read.table_lineage import SNAPSHOT_ID_PREFIX
from pyhudi.spark.sql.catalog import CatalogView, find
from pyhudi.spark.sql.queries.query_rewriting import reads_hudi_tables
from pyhudi.spark.sql.queries.view_refresh import plan_of_view
from pyhudi.spark.sql.queries.view_registry import is_temporary, load_of_view, temporary_view
from pyhudi.sql.statements import Name
from pyhudi.sql.table_references import Reference, find_references


def refuse_view_target(spark: SparkSession, name: Name, verb: str) -> None:
    """Refuse to change a view of Hudi tables.

    Args:
        spark: The session.
        name: Name of a view, of a table of another format, or of nothing.
        verb: First word of the statement.

    Raises:
        QueryError: It is such a view. The message has the tables to use instead.
    """
    entry = find(spark, name)
    if isinstance(entry, CatalogView):
        kind = "view"
        references = find_references(entry.query) if reads_hudi_tables(spark, _query(name)) else None
        instead = None if references is None else _tables(references)
    elif entry is None and len(name) < 3 and is_temporary(spark, name):
        kind, instead = "temporary view", _tables_of_temporary_view(spark, name)
    else:
        return
    if instead is not None:
        raise QueryError(
            f"{quoted(name)} is a {kind} of Hudi tables, and {verb} changes tables only; name the table instead: "
            f"{instead}"
        )


def _query(name: Name) -> str:
    return f"SELECT * FROM {quoted(name)}"


def _tables(references: list[Reference] | tuple[Reference, ...]) -> str:
    names = dict.fromkeys(quoted(reference.name) for reference in references if reference.arguments is None)
    return ", ".join(names) or "hudi.`path of the table`"


def _tables_of_temporary_view(spark: SparkSession, name: Name) -> str | None:
    """Return the tables that a temporary view reads, for the message; None if it reads no Hudi tables."""
    view = temporary_view(spark, name)
    if view is not None and reads_hudi_tables(spark, _query(name)):
        return _tables(view.references)
    if SNAPSHOT_ID_PREFIX not in plan_of_view(spark, name):
        return None
    loaded = load_of_view(spark, name)
    return "hudi.`path of the table`" if loaded is None else quoted(["hudi", loaded.path])
