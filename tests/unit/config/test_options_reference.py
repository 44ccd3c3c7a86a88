from __future__ import annotations

from pathlib import Path

from pyhudi.config.option import NAMED
from pyhudi.config.options_reference import markdown

PAGE = Path(__file__).parents[3] / "docs" / "reference" / "options.md"


def test_the_page_is_current() -> None:
    assert PAGE.read_text(encoding="utf-8") == markdown(), (
        "run: python -m pyhudi.config.options_reference > docs/reference/options.md"
    )


def test_every_named_option_has_an_entry() -> None:
    page = markdown()
    assert all(page.count(f"### `{key}`\n") == 1 for key in NAMED)
