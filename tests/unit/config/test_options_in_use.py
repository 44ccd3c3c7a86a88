"""Every declared option is read somewhere, or its description says that it has no effect."""

from __future__ import annotations

import re
from pathlib import Path

from pyhudi.config import options
from pyhudi.config.option import NAMED, Option

SOURCES = Path(__file__).parents[3] / "src"
DECLARATIONS = SOURCES / "pyhudi" / "config" / "options"
NO_EFFECT = "No effect"
# read together, by what their keys begin with
BY_PREFIX = "hoodie.keygen.timebased."


def test_options_are_in_use_or_say_that_they_are_not() -> None:
    code = "\n".join(p.read_text("utf-8") for p in SOURCES.rglob("*.py") if DECLARATIONS not in p.parents)
    used = {*re.findall(r"\w+", code), *re.findall(r'"([\w.]+)"', code)}
    names = {option.key: name for name, option in vars(options).items() if isinstance(option, Option)}
    read = {key for key, name in names.items() if name in used or key in used}
    silent = {key for key, option in NAMED.items() if key not in read and NO_EFFECT not in option.doc}
    assert {key for key in silent if not key.startswith(BY_PREFIX)} == set()
    assert {key for key in read if NAMED[key].doc.startswith(NO_EFFECT)} == set()
