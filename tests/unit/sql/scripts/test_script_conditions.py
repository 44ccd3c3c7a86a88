"""Which handler of a block is the one for an error."""

from __future__ import annotations

import pytest

from pyhudi.sql.scripts.script_conditions import ErrorCondition
from pyhudi.sql.scripts.script_nodes import Handler, Run


def _handler(*conditions: str) -> Handler:
    return Handler(frozenset(conditions), Run("SELECT 1"))


HANDLERS = {
    "any": _handler("SQLEXCEPTION"),
    "none": _handler("NOT FOUND"),
    "state": _handler("SQLSTATE 22012", "SQLSTATE 02001"),
    "main": _handler("INVALID_ARRAY"),
    "name": _handler("INVALID_ARRAY.INDEX", "DIVIDE_BY_ZERO"),
}


@pytest.mark.parametrize(
    ("condition", "handler"),
    [
        (ErrorCondition("DIVIDE_BY_ZERO", "22012"), "name"),
        (ErrorCondition("REMAINDER_BY_ZERO", "22012"), "state"),
        (ErrorCondition("INVALID_ARRAY.INDEX", "22012"), "name"),
        (ErrorCondition("INVALID_ARRAY.SIZE", "22012"), "main"),
        (ErrorCondition("CAST_INVALID_INPUT", "22018"), "any"),
        (ErrorCondition("NO_ROWS", "02000"), "none"),
        (ErrorCondition("NO_ROWS", "02001"), "state"),
        (ErrorCondition("INTERNAL_ERROR", "XX000"), None),
        (ErrorCondition(), "any"),
    ],
)
def test_the_most_specific_handler(condition: ErrorCondition, handler: str | None) -> None:
    assert condition.handler(tuple(HANDLERS.values())) == (handler and HANDLERS[handler])


def test_no_handler() -> None:
    assert ErrorCondition("NO_ROWS", "02000").handler((HANDLERS["any"],)) is None
    assert ErrorCondition("CAST_INVALID_INPUT", "22018").handler((HANDLERS["none"], HANDLERS["state"])) is None
