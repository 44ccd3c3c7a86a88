"""Names of helper columns."""

import ast
import re
from collections import Counter
from pathlib import Path

import pyhudi

_NAME = re.compile(r"_pyhudi_[a-z_]+")


def names_in(path: Path) -> list[str]:
    """Return the literals of a module that are names of helper columns."""
    nodes = ast.walk(ast.parse(path.read_text()))
    texts = (node.value for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str))
    return [text for text in texts if _NAME.fullmatch(text)]


def test_each_name_has_one_declaration() -> None:
    modules = Path(pyhudi.__file__).parent.rglob("*.py")
    counts = Counter(name for path in modules for name in names_in(path))
    assert len(counts) > 50
    assert [name for name, count in counts.items() if count > 1] == []
