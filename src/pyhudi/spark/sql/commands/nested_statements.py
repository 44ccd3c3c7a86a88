"""Statements with statements in them: scripts (``BEGIN … END`` of Spark 4), and EXECUTE IMMEDIATE.

Spark would fail at the first statement of a script that uses a Hudi table, after those before it. So such a script is
run here, or refused before any of it has run.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from pyhudi.errors import HudiError, QueryError, SqlSyntaxError, UnsupportedTableError
from pyhudi.spark.session import spark_sql
from pyhudi.spark.sql.catalog import SESSION_CATALOG, find_table
from pyhudi.spark.sql.queries.query_rewriting import reads_hudi_tables
from pyhudi.spark.sql.typed_values import TypedValue, evaluate
from pyhudi.sql import statements as s
from pyhudi.sql.computed_texts import names_in_computed_texts
from pyhudi.sql.parsers.statement_parser import parse, table_of
from pyhudi.sql.procedure_signatures import signatures
from pyhudi.sql.rewriting.identifier_clauses import has_identifier_clause, with_plain_identifiers
from pyhudi.sql.rewriting.parameter_literals import SqlLiteral, has_positional_parameters, with_literals
from pyhudi.sql.scripts.script_nodes import Block, Script
from pyhudi.sql.token_cursor import Cursor, literal_text


def uses_hudi_tables(spark: SparkSession, script: Script) -> bool:
    """Return True if a statement or condition of a script uses a Hudi table, or if it executes computed texts and has
    the name of a Hudi table in a literal. Nothing of it is run."""
    namespaces = {None, *map(_used_namespace, script.parts)}
    if any(_uses_hudi_tables(spark, part, namespace) for namespace in namespaces for part in script.parts):
        return True
    names = names_in_computed_texts(script)
    return any(_is_hudi_table(spark, name, namespace) for namespace in namespaces for name in names)


def _used_namespace(part: str) -> s.Name | None:
    """Return the catalog and database to which a statement changes; None for other statements."""
    try:
        cursor = Cursor(part)
        if not cursor.take("USE"):
            return None
        if cursor.word() in ("DATABASE", "SCHEMA", "NAMESPACE") and cursor.kind(1):
            cursor.at += 1
        name = cursor.name()
    except SqlSyntaxError:
        return None
    return name if len(name) > 1 else (SESSION_CATALOG, *name)


def runnable_script(spark: SparkSession, script: Script) -> Block:
    """Return a script that uses Hudi tables, if it can be run.

    Args:
        spark: The session.
        script: The script, with values in place of its parameters.

    Raises:
        UnsupportedTableError: It has what only Spark can run.
        SqlSyntaxError: A statement of it on a Hudi table is invalid.
    """
    reason = ""
    if spark.version.startswith("3."):
        reason = "scripts need Spark 4"
    elif script.body is None:
        reason = "its syntax is invalid"
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
    """Return the statement that EXECUTE IMMEDIATE runs, if that uses Hudi tables; None otherwise, for Spark to run it.
    It has literals in place of its parameters, and sets the variables of INTO.

    Raises:
        QueryError: The statement uses Hudi tables, and an argument is missing, named twice, or has a type without
            literals; or it is a script; or it has INTO, and runs something else than a query.
    """
    literal = literal_text(statement.text)
    if literal is not None and not _may_use_hudi_tables(spark, literal):
        return None  # before its arguments are evaluated
    columns = ", ".join(filter(None, (statement.text, statement.using)))
    try:
        text, *arguments = evaluate(spark_sql(spark, f"SELECT {columns}", **({"args": args} if args else {})))
    except PySparkException:  # which Spark reports
        return None
    if not isinstance(text.value, str) or not _may_use_hudi_tables(spark, text.value):
        return None
    try:
        bound = with_plain_identifiers(_with_arguments(text.value, arguments))
    except QueryError:
        if not _uses_hudi_tables(spark, text.value):
            return None
        raise
    if not _uses_hudi_tables(spark, bound):
        return None
    if isinstance(parse(bound), Script):
        raise QueryError(
            "EXECUTE IMMEDIATE takes one statement, as in Spark, and no script (BEGIN … END); run that itself"
        )
    return _into_variables(statement.into, bound) if statement.into else bound


def _may_use_hudi_tables(spark: SparkSession, text: str) -> bool:
    """Return True if a statement uses Hudi tables, or may do so when it has values in place of its parameters."""
    try:
        return has_identifier_clause(text) or _uses_hudi_tables(spark, text)
    except (HudiError, PySparkException):  # it is invalid, or only without the values, as arguments of functions
        return True


def _with_arguments(text: str, arguments: Sequence[TypedValue]) -> str:
    """Return the text of a statement with literals in place of its parameters.

    Raises:
        QueryError: An argument is missing, named twice, or has a type without literals.
    """
    if not arguments:
        return text
    literals = [SqlLiteral(argument.literal()) for argument in arguments]
    if has_positional_parameters(text):
        return with_literals(text, literals)
    names = [argument.name for argument in arguments]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise QueryError(f"EXECUTE IMMEDIATE … USING has two arguments named {twice!r}; give one of them another name")
    return with_literals(text, dict(zip(names, literals, strict=True)))


def _into_variables(variables: str, query: str) -> str:
    """Return the statement that sets variables to the row of a query.

    Raises:
        QueryError: The statement is no query.
    """
    parsed = parse(query)
    if not isinstance(parsed, s.SelectStatement) or parsed.head:
        raise QueryError(f"EXECUTE IMMEDIATE … INTO takes a query, not {query!r}; leave INTO out")
    return f"SET VARIABLE ({variables}) = ({parsed.query})"


def _is_hudi_table(spark: SparkSession, name: s.Name, namespace: s.Name | None) -> bool:
    full = (*namespace, *name) if namespace and len(name) == 1 else name
    return find_table(spark, full) is not None


def _uses_hudi_tables(spark: SparkSession, part: str, namespace: s.Name | None = None) -> bool:
    def is_hudi(name: s.Name | None) -> bool:
        return name is not None and _is_hudi_table(spark, name, namespace)

    try:
        statement: Any = parse(part)
    except SqlSyntaxError:
        return is_hudi(table_of(part))
    match statement:
        case None | s.ClearCache() | s.ShowViews():
            return False
        case s.ShowTableExtended():
            return bool(statement.partition) and is_hudi(statement.table)
        case s.ExecuteImmediate(text=text):
            literal = literal_text(text)
            return literal is not None and _uses_hudi_tables(spark, literal, namespace)
        case Script(parts=parts):
            return any(_uses_hudi_tables(spark, part, namespace) for part in parts)
        case (
            s.SelectStatement(query=query)
            | s.CacheTable(query=str(query))
            | s.CreateView(query=str(query))
            | s.CreateFunction(query=query)
        ):
            return reads_hudi_tables(spark, query, namespace)
        case s.CreateView():
            return False
        case s.MultiInsert(names=names, source=source):
            return any(map(is_hudi, names)) or reads_hudi_tables(spark, source, namespace)
        case s.CreateTable(like=tuple(like), like_any=True):
            return is_hudi(like)
        case s.CreateTable():
            return True
        case s.Call(procedure=procedure):
            return procedure in signatures()
    if isinstance(statement, s.INDEX_STATEMENTS) or is_hudi(statement.name):
        return True
    match statement:
        case s.Insert(query=query) | s.ChangeView(query=str(query)):
            return reads_hudi_tables(spark, query, namespace)
        case s.Update() | s.Delete() | s.Merge() | s.ExplainChange() | s.UnsupportedStatement():
            return reads_hudi_tables(spark, part, namespace)
    return False
