"""Procedures and their arguments."""

from __future__ import annotations

import pytest

from pyhudi.errors import QueryError
from pyhudi.sql.procedure_signatures import signature_of, signatures
from pyhudi.sql.statements import Call


def test_all_are_known():
    assert len(signatures()) == 72
    assert signature_of("SHOW_COMMITS").columns[:2] == (("commit_time", "string"), ("state_transition_time", "string"))
    assert all(kind for one in signatures().values() for _, kind in one.columns)


def test_arguments_are_bound():
    show = signature_of("show_commits")
    assert show.bind(Call("show_commits", ("t",), {})) == {"table": "t", "limit": 10}
    assert show.bind(Call("show_commits", (), {"limit": "3", "table": "t"})) == {"table": "t", "limit": 3}
    run = signature_of("run_compaction")
    assert run.bind(Call("run_compaction", ("run", "t"), {}))["timestamp"] is None
    # names are compared without their case, as Apache Hudi's own have capitals
    assert signature_of("show_cleans").bind(Call("", ("t",), {"showarchived": True}))["showArchived"] is True


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (Call("show_commits", ("t", 1, 2)), "takes 2 arguments"),
        (Call("show_commits", ("t",), {"limt": 1}), "did you mean 'limit'"),
        (Call("show_commits", ("t",), {"table": "u"}), "twice"),
        (Call("show_commits", (), {"limit": 1}), "requires the argument 'table'"),
        (Call("show_commits", ("t", "many")), "of type integer, not 'many'"),
    ],
)
def test_what_is_refused(call, message):
    with pytest.raises(QueryError, match=message):
        signature_of(call.procedure).bind(call)


def test_unknown_procedures_are_guessed():
    with pytest.raises(QueryError, match="did you mean 'show_commits'"):
        signature_of("show_comits")
    with pytest.raises(QueryError, match="unknown procedure 'expire_snapshots'; use run_clean; CALL help"):
        signature_of("expire_snapshots")
