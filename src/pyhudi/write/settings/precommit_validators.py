"""Pre-commit validators: SQL queries that check the state of a table after a write before the write is published.

The three validators of Apache Hudi that run SQL queries are supported by their class names. Others are Java classes.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from pyhudi.config import Options, options
from pyhudi.errors import ConfigError, OptionWithoutEffectWarning, warn

_TABLE_NAME = "<TABLE_NAME>"
_PACKAGE = "org.apache.hudi.client.validator."


class Expectation(Enum):
    """Expected result of the queries of a validator. The value is the name of its class."""

    SINGLE_RESULT = "SqlQuerySingleResultPreCommitValidator"
    EQUAL = "SqlQueryEqualityPreCommitValidator"
    DIFFERENT = "SqlQueryInequalityPreCommitValidator"


_QUERIES = {
    Expectation.SINGLE_RESULT: options.SINGLE_RESULT_QUERIES,
    Expectation.EQUAL: options.EQUALITY_QUERIES,
    Expectation.DIFFERENT: options.INEQUALITY_QUERIES,
}


@dataclass(frozen=True, slots=True)
class QueryValidation:
    """One query that must give the expected result, or else the write is rolled back.

    Attributes:
        query: SQL text with ``<TABLE_NAME>`` for the table.
        expectation: SINGLE_RESULT: after the write, the query returns one row with one value, ``expected``. EQUAL,
            DIFFERENT: after the write, it returns the same rows as before, or not the same.
        expected: The expected value as a text; empty unless SINGLE_RESULT.
    """

    query: str
    expectation: Expectation
    expected: str = ""

    def query_for(self, name: str) -> str:
        """Return the SQL text for a table or view of that name."""
        return self.query.replace(_TABLE_NAME, name)


def query_validations(opts: Options) -> tuple[QueryValidation, ...]:
    """Return the validations that the options of a write request.

    Raises:
        ConfigError: A validator is not one of Apache Hudi's SQL validators, or has no queries, or a query does not
            contain ``<TABLE_NAME>`` or lacks the expected value.
    """
    names = [name.strip() for name in opts.get_typed(options.PRECOMMIT_VALIDATORS).split(",")]
    return tuple(validation for name in names if name for validation in _validations_of_class(_expectation(name), opts))


def warn_of_unused_queries(opts: Options) -> None:
    """Issue OptionWithoutEffectWarning for queries whose validator the options do not name."""
    used = {validation.expectation for validation in query_validations(opts)}
    for expectation, option in _QUERIES.items():
        if opts.get_typed(option).strip() and expectation not in used:
            warn(
                f"{option.key} has no effect: {options.PRECOMMIT_VALIDATORS.key} does not name "
                f"{_PACKAGE}{expectation.value}",
                OptionWithoutEffectWarning,
            )


def _expectation(name: str) -> Expectation:
    for expectation in Expectation:
        if name == _PACKAGE + expectation.value:
            return expectation
    validators = ", ".join(_PACKAGE + expectation.value for expectation in Expectation)
    raise ConfigError(
        f"{options.PRECOMMIT_VALIDATORS.key}={name}: validators are Java classes, which pyhudi cannot run, except for "
        f"{validators}; use one of these, or validate the DataFrame before the write"
    )


def _validations_of_class(expectation: Expectation, opts: Options) -> list[QueryValidation]:
    option = _QUERIES[expectation]
    queries = [query.strip() for query in opts.get_typed(option).split(";")]
    validations = [_validation(query, expectation, option.key) for query in queries if query]
    if not validations:
        raise ConfigError(
            f"{options.PRECOMMIT_VALIDATORS.key}={_PACKAGE}{expectation.value} requires {option.key}: SQL queries, "
            "separated by ';'"
        )
    return validations


def _validation(text: str, expectation: Expectation, key: str) -> QueryValidation:
    query, expected = text, ""
    if expectation is Expectation.SINGLE_RESULT:
        query, separator, expected = (part.strip() for part in text.rpartition("#"))
        if not separator or not query or not expected:
            raise ConfigError(f"{key}: {text!r} lacks the expected value; write it as query#value")
    if _TABLE_NAME not in query:
        raise ConfigError(f"{key}: {text!r} does not contain {_TABLE_NAME}, the placeholder for the table")
    return QueryValidation(query, expectation, expected)
