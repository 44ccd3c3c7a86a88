"""Documents name modules and functions that exist."""

import ast
import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DOCUMENTS = [ROOT / "README.md", ROOT / "ARCHITECTURE.md", ROOT / "CONTRIBUTING.md", *sorted(ROOT.glob("docs/**/*.md"))]
FOLDERS = (ROOT / "src" / "pyhudi", ROOT)


def named_modules(text: str) -> set[str]:
    """Paths of Python modules in a text, as written."""
    return set(re.findall(r"(?<![\w./-])(?:[\w-]+/)*[\w-]+\.py\b", text))


@cache
def defined_names() -> frozenset[str]:
    """Names of all functions and classes of the package."""
    kinds = (ast.FunctionDef, ast.ClassDef)
    trees = (ast.parse(path.read_text()) for path in (ROOT / "src").rglob("*.py"))
    return frozenset(node.name for tree in trees for node in ast.walk(tree) if isinstance(node, kinds))


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_modules_that_a_document_names_exist(document):
    names = named_modules(document.read_text())
    missing = {name for name in names if not any((folder / name).is_file() for folder in FOLDERS)}
    assert not missing, f"{document.name} names modules that do not exist"


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_links_of_a_document_lead_to_files(document):
    links = re.findall(r"\]\((?!https?:|#)([^)#\s]+)", document.read_text())
    missing = [link for link in links if not (document.parent / link).exists()]
    assert not missing


def test_functions_that_the_architecture_calls_exist():
    called = re.findall(r"`(?:\w+\.)?(\w+)\(\)`", (ROOT / "ARCHITECTURE.md").read_text())
    assert len(called) > 15
    assert set(called) <= defined_names()


def test_a_module_that_does_not_exist_is_noticed():
    assert named_modules("`read/there.py`, [x](a-b/c_d.py) and errors.py.") == {
        "read/there.py",
        "a-b/c_d.py",
        "errors.py",
    }
