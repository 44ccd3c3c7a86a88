"""Which cases of a matrix `make test` keeps."""

from __future__ import annotations

from typing import Any

import pytest

from tests.cases import each_choice, every_second, seldom


def kept(cases: list[Any]) -> list[tuple[Any, ...]]:
    return [case.values if hasattr(case, "marks") else (case,) for case in cases if not getattr(case, "marks", ())]


@pytest.mark.parametrize("axes", [([6, 8, 9], ["cow", "mor"]), (["a", "b"], [1, 2]), ([1], ["x", "y"], [0, 1, 2, 3])])
def test_every_choice_is_kept(axes: tuple[list[Any], ...]) -> None:
    cases = each_choice(*axes)
    usual = kept(cases)
    assert len(usual) == max(map(len, axes))
    for place, axis in enumerate(axes):
        assert {values[place] for values in usual} == set(axis)
    assert len({case.values for case in cases}) == len(cases)
    assert {mark.name for case in cases for mark in case.marks} <= {"slow"}


def test_the_whole_product_is_there() -> None:
    cases = each_choice(["a", "b"], [pytest.param({}, id="plain"), pytest.param({"k": 1}, id="hive")])
    assert [case.id for case in cases] == ["a-plain", "a-hive", "b-plain", "b-hive"]
    assert kept(cases) == [("a", {}), ("b", {"k": 1})]


def test_cases_that_are_left_out_keep_their_names() -> None:
    case = seldom(pytest.param("1.0.2", 8, id="v8"))
    assert (case.id, case.values, [mark.name for mark in case.marks]) == ("v8", ("1.0.2", 8), ["slow"])
    assert kept(every_second(["a", "b", "c"])) == [("a",), ("c",)]
