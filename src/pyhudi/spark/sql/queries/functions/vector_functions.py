"""The table functions ``hudi_vector_search`` and ``hudi_vector_search_batch`` of Apache Hudi 1.2."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

from pyspark.sql import DataFrame

from pyhudi.errors import QueryError
from pyhudi.read.functions.vector_distance import Metric
from pyhudi.spark.read.nearest_neighbors import nearest, nearest_to_each

_PARAMETERS = {
    "hudi_vector_search": ("table", "embedding_col", "query_vector", "k", "metric", "algorithm"),
    "hudi_vector_search_batch": (
        "corpus_table",
        "corpus_col",
        "query_table",
        "query_col",
        "k",
        "metric",
        "algorithm",
    ),
}
_TABLES = frozenset({"table", "corpus_table", "query_table"})
_OPTIONAL = {"metric": "'cosine'", "algorithm": "'brute_force'"}
"""Parameters that may be left out, with the SQL of their defaults."""
_NAMED = re.compile(r"(\w+)\s*=>\s*(.+)", re.DOTALL)


def ordered_arguments(function: str, arguments: Sequence[str]) -> tuple[str, ...]:
    """Return the SQL of all arguments in the order of the parameters.

    Args:
        function: Name of the function.
        arguments: SQL of the given arguments; the last ones may be named: ``k => 10``.

    Raises:
        QueryError: An argument is missing, or there is no such parameter.
    """
    parameters = _PARAMETERS[function]
    values: dict[str, str] = {}
    for number, text in enumerate(arguments):
        named = _NAMED.fullmatch(text)
        name = named[1].lower() if named else parameters[number] if number < len(parameters) else text
        if name not in parameters or name in values:
            raise QueryError(f"{function} has no parameter for {text}; {_signature(function)}")
        values[name] = named[2] if named else text
    missing = [name for name in parameters if name not in values and name not in _OPTIONAL]
    if missing:
        raise QueryError(f"{function} needs a value for {missing[0]}; {_signature(function)}")
    return tuple(values.get(name) or _OPTIONAL[name] for name in parameters)


def table_positions(function: str) -> tuple[int, ...]:
    """Return the positions of the parameters that are tables."""
    return tuple(n for n, name in enumerate(_PARAMETERS[function]) if name in _TABLES)


def _signature(function: str) -> str:
    shown = (f"[{name}]" if name in _OPTIONAL else name for name in _PARAMETERS[function])
    return f"call it as {function}({', '.join(shown)})"


def run_vector_function(function: str, values: Sequence[Any], rows_of: Callable[[str], DataFrame]) -> DataFrame:
    """Return the rows of a table function.

    Args:
        function: Name of the function.
        values: Values of all arguments, in the order of `ordered_arguments`.
        rows_of: Returns the rows of a table or view, given by name or path.

    Raises:
        QueryError: A value is invalid for its parameter.
    """
    by_name = dict(zip(_PARAMETERS[function], values, strict=True))
    for name in by_name.keys() - {"query_vector", "k"}:
        if not isinstance(by_name[name], str):
            raise QueryError(f"{name} of {function} must be a text, not {by_name[name]!r}")
    metric = Metric.parse(by_name["metric"])
    if by_name["algorithm"].lower() != "brute_force":
        raise QueryError(f"there is no search algorithm {by_name['algorithm']!r}; use brute_force")
    if function == "hudi_vector_search":
        return nearest(
            rows_of(by_name["table"]), by_name["embedding_col"], by_name["query_vector"], by_name["k"], metric
        )
    rows, queries = rows_of(by_name["corpus_table"]), rows_of(by_name["query_table"])
    return nearest_to_each(rows, by_name["corpus_col"], queries, by_name["query_col"], k=by_name["k"], metric=metric)
