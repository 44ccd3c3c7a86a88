"""Statements with statements in them: scripts (``BEGIN … END`` of Spark 4), and EXECUTE IMMEDIATE.

Spark would fail at the first statement of a script that uses a Hudi table, after those before it. So such a script is
run here, or refused before any of it has run.
"""

from __future__ import annotations

from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from pyhudi.errors import SqlSyntaxError, UnsupportedTableError
from pyhudi.spark.session_settings import is_connect
from pyhudi.spark.sql.catalog import find_table
from pyhudi.spark.sql.queries.query_rewriting import reads_hudi_tables
from pyhudi.spark.sql.spark_statements import collect_statement
from pyhudi.sql import statements as s
from pyhudi.sql.parsers.statement_parser import parse, table_of
from pyhudi.sql.procedure_signatures import signatures
from pyhudi.sql.script_nodes import Block, Script
from pyhudi.sql.token_cursor import literal_text

_ONLY_OF_HUDI = (s.CreateIndex, s.DropIndex, s.RefreshIndex)


def uses_hudi_tables(spark: SparkSession, script: Script) -> bool:
    """Return True if a statement or condition of a script uses a Hudi table. Nothing of it is run."""
    return any(_uses_hudi_tables(spark, part) for part in script.parts)


def runnable_script(spark: SparkSession, script: Script, *, has_parameters: bool) -> Block:
    """Return a script that uses Hudi tables, if it can be run.

    Args:
        spark: The session.
        script: The script.
        has_parameters: It has parameters or fields.

    Raises:
        UnsupportedTableError: It has what only Spark can run.
        SqlSyntaxError: A statement of it on a Hudi table is invalid.
    """
    reason = ""
    if spark.version.startswith("3."):
        reason = "scripts need Spark 4"
    elif is_connect(spark):
        reason = "Spark Connect resolves the result only after the variables of the script are gone"
    elif has_parameters:
        reason = "it has parameters (args)"
    elif script.body is None:
        reason = (
            "it has a handler, condition, cursor, EXECUTE IMMEDIATE with INTO or USING, a label before a name, a "
            "variable that hides another one, or invalid syntax"
        )
    if reason or script.body is None:
        raise UnsupportedTableError(
            f"this script (BEGIN … END) uses Hudi tables, and nothing of it has run: {reason}; run its statements one "
            "by one by spark.sql, with conditions and loops in Python"
        )
    for part in script.parts:
        _check_syntax(spark, part)
    return script.body


def _check_syntax(spark: SparkSession, part: str) -> None:
    try:
        parse(part)
    except SqlSyntaxError:
        name = table_of(part)
        if name is None or find_table(spark, name) is not None:
            raise


def hudi_statement_of(spark: SparkSession, statement: s.ExecuteImmediate, args: Any) -> str | None:
    """Return the text that EXECUTE IMMEDIATE runs, if that uses Hudi tables; None otherwise, for Spark to run it.

    Args:
        spark: The session.
        statement: The statement.
        args: Values of its parameters.

    Raises:
        UnsupportedTableError: It uses Hudi tables, and has INTO or USING.
    """
    try:
        text = collect_statement(spark, f"SELECT {statement.text}", args)[0][0]
    except PySparkException:  # which Spark reports
        return None
    if not isinstance(text, str) or not _uses_hudi_tables(spark, text):
        return None
    if statement.clauses:
        raise UnsupportedTableError(
            f"EXECUTE IMMEDIATE of a statement that uses Hudi tables has no INTO and no USING: {statement.clauses!r}; "
            "use spark.sql(text, args=…)"
        )
    return text


def _uses_hudi_tables(spark: SparkSession, part: str) -> bool:
    try:
        statement: Any = parse(part)
    except SqlSyntaxError:
        name = table_of(part)
        return name is not None and find_table(spark, name) is not None
    match statement:
        case None | s.ClearCache() | s.ShowViews() | s.ShowTableExtended():
            return False
        case s.ExecuteImmediate(text=text):
            literal = literal_text(text)
            return literal is not None and _uses_hudi_tables(spark, literal)
        case Script(parts=parts):
            return any(_uses_hudi_tables(spark, part) for part in parts)
        case s.SelectStatement(query=query) | s.CacheTable(query=str(query)) | s.CreateView(query=str(query)):
            return reads_hudi_tables(spark, query)
        case s.CreateView():
            return False
        case s.CreateTable(like=tuple(like), like_any=True):
            return find_table(spark, like) is not None
        case s.CreateTable():
            return True
        case s.Call(procedure=procedure):
            return procedure in signatures()
    if isinstance(statement, _ONLY_OF_HUDI) or find_table(spark, statement.name) is not None:
        return True
    match statement:
        case s.Insert(query=query) | s.ChangeView(query=str(query)):
            return reads_hudi_tables(spark, query)
        case s.Update() | s.Delete() | s.Merge() | s.UnsupportedStatement():
            return reads_hudi_tables(spark, part)
    return False
