"""Checks of a script before any of it is run."""

from __future__ import annotations

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from pyhudi.errors import QueryError, SqlSyntaxError
from pyhudi.spark.column_names import quoted
from pyhudi.spark.session import spark_sql
from pyhudi.sql.scripts.script_nodes import Block, Declare, nodes_of, undeclared_conditions


def check_script(spark: SparkSession, body: Block) -> None:
    """Refuse a script that cannot be run in a session.

    Raises:
        QueryError: A variable of the session has the name of one of the script.
        SqlSyntaxError: A handler is for a condition that there is not.
    """
    _check_names(spark, body)
    _check_conditions(spark, body)


def _check_names(spark: SparkSession, body: Block) -> None:
    for name in (name for node in nodes_of(body) if isinstance(node, Declare) for name in node.names):
        if is_session_variable(spark, name):
            raise QueryError(
                f"the session has a variable {name!r}, as the script has: drop it, or take another name in the script"
            )


def _check_conditions(spark: SparkSession, body: Block) -> None:
    """Refuse handlers of conditions that neither a block around them has declared nor Spark has."""
    for name in sorted(undeclared_conditions(body)):
        try:
            spark_sql(spark, f"BEGIN DECLARE EXIT HANDLER FOR {quoted(name.split('.'))} BEGIN END; END")
        except Exception as error:
            if "CONDITION_NOT_FOUND" not in str(error):
                raise
            raise SqlSyntaxError(
                f"there is no condition {name}, for which the script has a handler: Spark has none of that name, and "
                "no block around the handler declares it; nothing has run"
            ) from None


def is_session_variable(spark: SparkSession, name: str) -> bool:
    """Return True if the session has a variable."""
    try:
        _ = spark_sql(spark, f"SELECT system.session.{quoted([name])}").schema  # which Spark Connect resolves then
    except PySparkException:
        return False
    return True
