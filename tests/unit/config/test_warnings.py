"""Warnings of a call: each once."""

from __future__ import annotations

import threading
import warnings

import pytest

from pyhudi.config import Options
from pyhudi.errors import UnknownOptionWarning, each_warning_once, warn


def test_a_call_issues_each_warning_once() -> None:
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        for _ in range(2):
            with each_warning_once():
                for key in ("hoodie.zzz", "hoodie.zzz", "hoodie.yyy"):
                    with each_warning_once():
                        Options.parse({key: "1"})
                warn("unknown option 'hoodie.zzz' has no effect")  # of another category
    assert [(one.category, str(one.message)[16:25]) for one in seen] == 2 * [
        (UnknownOptionWarning, "hoodie.zz"),
        (UnknownOptionWarning, "hoodie.yy"),
        (UserWarning, "hoodie.zz"),
    ]
    assert {one.filename for one in seen} == {__file__}


def test_a_warning_may_be_an_error() -> None:
    with warnings.catch_warnings(), each_warning_once():
        warnings.simplefilter("error")
        with pytest.raises(UserWarning, match="once"):
            warn("once")
    with pytest.warns(UserWarning, match="once"):
        warn("once")


def test_calls_of_other_threads_issue_warnings_of_their_own() -> None:
    thread = threading.Thread(target=warn, args=("both",))
    with warnings.catch_warnings(record=True) as seen, each_warning_once():
        warnings.simplefilter("always")
        warn("both")
        thread.start()
        thread.join()
    assert [str(one.message) for one in seen] == ["both", "both"]
