"""The code on the page about mergers runs."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import pyhudi

PAGE = Path(__file__).parents[3] / "docs" / "mergers.md"


@pytest.fixture
def page() -> Iterator[dict[str, Any]]:
    """What the page's code defines."""
    names: dict[str, Any] = {"__name__": "page"}
    for code in re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL):
        exec(compile(code, str(PAGE), "exec"), names)
    yield names
    pyhudi.unregister_merger(names["Balance"].strategy_id)


def test_the_merger_of_the_page_is_right(page: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    import sys
    import types

    module = types.ModuleType("page")
    vars(module).update(page)
    monkeypatch.setitem(sys.modules, "page", module)  # as a class must be importable to be pickled
    page["TestBalance"]().test_merger()
