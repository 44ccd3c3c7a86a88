"""Pre-commit validators: which SQL queries the options of a write request."""

from __future__ import annotations

import pytest

from pyhudi.config import Options
from pyhudi.errors import ConfigError, OptionWithoutEffectWarning
from pyhudi.write.settings.precommit_validators import Expectation, QueryValidation, query_validations
from pyhudi.write.settings.unsupported_options import check_unsupported_options

PACKAGE = "org.apache.hudi.client.validator."
KEY = "hoodie.precommit.validators"
SINGLE = {KEY: f"{PACKAGE}SqlQuerySingleResultPreCommitValidator"}


def test_queries_of_several_validators():
    opts = {
        KEY: f"{PACKAGE}SqlQuerySingleResultPreCommitValidator, {PACKAGE}SqlQueryInequalityPreCommitValidator",
        f"{KEY}.single.value.sql.queries": "select 1 from <TABLE_NAME> where a = 1#0; select 'x#' from <TABLE_NAME>#x;",
        f"{KEY}.equality.sql.queries": "select 1 from <TABLE_NAME>",
        f"{KEY}.inequality.sql.queries": "select count(*) from <TABLE_NAME>",
    }
    found = query_validations(Options.parse(opts))
    assert found == (
        QueryValidation("select 1 from <TABLE_NAME> where a = 1", Expectation.SINGLE_RESULT, "0"),
        QueryValidation("select 'x#' from <TABLE_NAME>", Expectation.SINGLE_RESULT, "x"),
        QueryValidation("select count(*) from <TABLE_NAME>", Expectation.DIFFERENT),
    )
    assert found[0].query_for("staged") == "select 1 from staged where a = 1"


@pytest.mark.parametrize("opts", [{}, {KEY: ""}, {f"{KEY}.equality.sql.queries": "select 1 from <TABLE_NAME>"}])
def test_no_validators(opts):
    assert query_validations(Options.parse(opts)) == ()


@pytest.mark.parametrize(
    ("opts", "message"),
    [
        (
            {KEY: "org.example.Mine"},
            "org.example.Mine: validators are Java.*SqlQueryEqualityPreCommitValidator",
        ),
        (SINGLE, r"requires hoodie.precommit.validators.single.value.sql.queries"),
        ({**SINGLE, f"{KEY}.single.value.sql.queries": "select 1 from <TABLE_NAME>"}, "lacks the expected value"),
        ({**SINGLE, f"{KEY}.single.value.sql.queries": "select 1 from t#1"}, "does not contain <TABLE_NAME>"),
    ],
)
def test_refused_before_the_write(opts, message):
    with pytest.raises(ConfigError, match=message):
        check_unsupported_options(Options.parse(opts))


def test_queries_without_their_validator_are_warned_of(recwarn):
    queries = {f"{KEY}.single.value.sql.queries": "select 1 from <TABLE_NAME>#1"}
    with pytest.warns(OptionWithoutEffectWarning, match="queries has no effect: .*SqlQuerySingleResultPreCommitV"):
        check_unsupported_options(Options.parse(queries))
    recwarn.clear()
    check_unsupported_options(Options.parse({**SINGLE, **queries}))
    assert not recwarn
