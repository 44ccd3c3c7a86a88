"""Rules of the source text: imports of each name from its module, and calls that go through one function."""

from __future__ import annotations

import ast
from pathlib import Path

ROOT = Path(__file__).parents[2]
SOURCES = {path: ast.parse(path.read_text()) for path in sorted((ROOT / "src").rglob("*.py"))}


def module_name(path: Path) -> str:
    parts = path.relative_to(ROOT / "src").with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {module_name(path): path for path in SOURCES}


def imports(tree: ast.Module) -> list[tuple[str, str, str]]:
    """Modules of pyhudi with the names that are imported from them, there and here."""
    return [
        (node.module, alias.name, alias.asname or alias.name)
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.module in MODULES
        for alias in node.names
    ]


def test_modules_do_not_export_names_of_others() -> None:
    imported = {path: imports(tree) for path, tree in SOURCES.items()}
    borrowed = {
        (module, name)
        for module, path in MODULES.items()
        if path.name != "__init__.py"
        for _, _, name in imported[path]
    }
    wrong = [
        f"{module_name(path)} imports {name} from {source}"
        for path, names in imported.items()
        for source, name, _ in names
        if (source, name) in borrowed
    ]
    assert not wrong


def test_tasks_run_in_prepared_workers() -> None:
    calls = {path for path in SOURCES if ".mapInArrow(" in path.read_text()}
    assert {module_name(path) for path in calls} == {"pyhudi.spark.execution.row_tasks"}
