"""Documents name modules and functions that exist."""

from __future__ import annotations

import ast
import builtins
import importlib.util
import re
import sys
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DOCUMENTS = [ROOT / "README.md", ROOT / "ARCHITECTURE.md", ROOT / "CONTRIBUTING.md", *sorted(ROOT.glob("docs/**/*.md"))]
FOLDERS = (ROOT / "src" / "pyhudi", ROOT)


def named_modules(text: str) -> set[str]:
    """Paths of Python modules in a text, as written."""
    return set(re.findall(r"(?<![\w./-])(?:[\w-]+/)*[\w-]+\.py\b", text))


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
    assert set(called) <= {name for module in modules() for name in module.defined}


def test_a_module_that_does_not_exist_is_noticed():
    assert named_modules("`read/there.py`, [x](a-b/c_d.py) and errors.py.") == {
        "read/there.py",
        "a-b/c_d.py",
        "errors.py",
    }


PACKAGE = ROOT / "src" / "pyhudi"
PUBLIC_MODULES = (
    *(
        PACKAGE / "api" / name
        for name in ("hudi_table.py", "table_queries.py", "table_writes.py", "scan.py", "vector_search.py")
    ),
    *sorted(set((PACKAGE / "api/services").glob("*_services.py")) - {PACKAGE / "api/services/table_services.py"}),
    *(PACKAGE / name for name in ("merge/mergers/record_merger.py", "merge/mergers/merger_registry.py")),
    PACKAGE / "keygen/custom_key_generator.py",
    *(
        PACKAGE / name
        for name in ("read/inspection/table_inspection.py", "read/inspection/result_table.py", "write/write_result.py")
    ),
    *(
        PACKAGE / name
        for name in ("spark/activation/activate.py", "spark/session.py", "spark/dml/merge/merge_builder.py")
    ),
)
"""Modules of the functions that `pyhudi` exports, and of the classes whose methods users call."""


def parameters(function: ast.FunctionDef) -> set[str]:
    """Names of the parameters of a function, ``self`` and ``cls`` aside."""
    given = function.args
    found = [*given.posonlyargs, *given.args, *given.kwonlyargs, given.vararg, given.kwarg]
    return {one.arg for one in found if one is not None} - {"self", "cls"}


def described(docstring: str) -> set[str]:
    """Names in the section ``Args`` of a docstring."""
    _, _, section = docstring.partition("\nArgs:\n")
    return set(re.findall(r"^    \*{0,2}(\w+)(?: \([^)]*\))?:", section.split("\n\n")[0], re.MULTILINE))


def raised(docstring: str) -> set[str]:
    """Names in the section ``Raises`` of a docstring."""
    _, _, section = docstring.partition("\nRaises:\n")
    heads = re.findall(r"^    (\w[\w, ]*):", section.split("\n\n")[0], re.MULTILINE)
    return {name for head in heads for name in head.split(", ")}


def exported() -> set[str]:
    """Names that `pyhudi` exports."""
    tree = ast.parse((PACKAGE / "__init__.py").read_text())
    lists = (n.value for n in tree.body if isinstance(n, ast.Assign) and ast.unparse(n.targets[0]) == "__all__")
    return set(ast.literal_eval(next(lists)))


def public_functions(path: Path) -> dict[str, ast.FunctionDef]:
    """Functions of a module that users call: exported ones, and public methods and properties of public classes."""
    tree, names = ast.parse(path.read_text()), exported()
    found = {n.name: n for n in tree.body if isinstance(n, ast.FunctionDef) and n.name in names}
    for owner in tree.body:
        if isinstance(owner, ast.ClassDef) and not owner.name.startswith("_"):
            methods = (n for n in owner.body if isinstance(n, ast.FunctionDef) and not n.name.startswith("_"))
            found |= {
                f"{owner.name}.{n.name}": n for n in methods if "overload" not in map(ast.unparse, n.decorator_list)
            }
    return found


@pytest.mark.parametrize("path", PUBLIC_MODULES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_what_users_call_is_described(path):
    functions = public_functions(path)
    assert functions
    for name, function in functions.items():
        text = ast.get_docstring(function)
        assert text, f"{name} has no docstring"
        if re.search(r"\bas of (`|:meth:)", text):  # Arguments as of `another`
            continue
        assert described(text) == parameters(function), f"{name} describes other parameters than it has"
        result = function.returns is None or ast.unparse(function.returns) in ("None", "Self")
        is_property = any("property" in ast.unparse(decorator) for decorator in function.decorator_list)
        tells = "\nReturns:\n" in text or text.startswith(("Return ", "Create "))
        assert result or is_property or tells, f"{name} does not say what it returns"


def parts(node: ast.FunctionDef | ast.ClassDef) -> set[str]:
    """Names that a docstring may describe: parameters of a function, fields of a class and parameters of its maker."""
    if isinstance(node, ast.FunctionDef):
        return parameters(node)
    fields = {ast.unparse(n.target) for n in node.body if isinstance(n, ast.AnnAssign)}
    makers = (n for n in node.body if isinstance(n, ast.FunctionDef) and n.name == "__init__")
    return fields.union(*map(parameters, makers))


def misplaced(tree: ast.Module) -> list[int]:
    """Lines of texts in a module or class that describe nothing, because no assignment is before them."""
    found = []
    for owner in ast.walk(tree):
        if isinstance(owner, ast.Module | ast.ClassDef):
            for before, node in pairwise(owner.body):
                is_text = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
                if is_text and not isinstance(before, ast.Assign | ast.AnnAssign):
                    found.append(node.lineno)
    return found


@dataclass(frozen=True)
class Module:
    """What the tests ask of a module: its docstring, what it defines and imports, and what its docstrings describe that
    is not there, or name as raised."""

    path: Path
    docstring: str
    defined: frozenset[str]
    imported: frozenset[str]
    not_there: tuple[str, ...]
    raised: tuple[tuple[str, str], ...]
    misplaced: tuple[int, ...]

    @classmethod
    def from_path(cls, path: Path) -> Module:
        tree = ast.parse(path.read_text())
        nodes = list(ast.walk(tree))
        owners = [node for node in nodes if isinstance(node, ast.FunctionDef | ast.ClassDef)]
        texts = [(node, text) for node in owners if (text := ast.get_docstring(node))]
        imports = (node.names for node in nodes if isinstance(node, ast.ImportFrom))
        return cls(
            path,
            ast.get_docstring(tree) or "",
            frozenset(node.name for node in owners),
            frozenset(name.name for names in imports for name in names),
            tuple(f"{node.name}({name})" for node, text in texts for name in described(text) - parts(node)),
            tuple((node.name, name) for node, text in texts for name in raised(text)),
            tuple(misplaced(tree)),
        )


@cache
def modules() -> tuple[Module, ...]:
    """All modules of the package; a tree is large, so that none is kept."""
    return tuple(Module.from_path(path) for path in sorted((ROOT / "src").rglob("*.py")))


def test_descriptions_of_parameters_name_parameters():
    assert not [f"{module.path.name}: {wrong}" for module in modules() for wrong in module.not_there]


def test_descriptions_of_exceptions_name_classes():
    known = set(dir(builtins)).union(*(module.defined | module.imported for module in modules()))
    assert not [
        f"{module.path.name}: {owner}({name})"
        for module in modules()
        for owner, name in module.raised
        if name not in known
    ]


def test_descriptions_of_values_follow_them():
    assert not [f"{module.path.name}:{line}" for module in modules() for line in module.misplaced]
    assert misplaced(ast.parse('"""A."""\na = 1\n"""B."""\n"""C."""\nimport b\n"""D."""')) == [4, 6]


def test_every_package_says_its_job():
    packages = [module for module in modules() if module.path.name == "__init__.py" and PACKAGE in module.path.parents]
    assert len(packages) > 50
    assert not [module.path for module in packages if len(module.docstring) < 80]


def test_a_missing_description_is_noticed():
    assert described("Do it.\n\nArgs:\n    a: One.\n        b: of it.\n    *c: Two.\n\nReturns:\n    d: None.") == {
        "a",
        "c",
    }


def test_the_names_of_exceptions_are_found():
    assert raised("Do it.\n\nRaises:\n    KeyError: Now.\n        Or: then.\n    A, B: Never.") == {
        "KeyError",
        "A",
        "B",
    }


def test_the_api_reference_is_current():
    """Made of the docstrings, by a script that no package contains."""
    script = importlib.util.spec_from_file_location("api_reference", ROOT / "scripts" / "api_reference.py")
    assert script is not None
    assert script.loader is not None
    api_reference = importlib.util.module_from_spec(script)
    sys.modules["api_reference"] = api_reference  # its dataclasses look themselves up
    script.loader.exec_module(api_reference)
    page = (ROOT / "docs" / "reference" / "api.md").read_text()
    assert page == api_reference.markdown(), "run: python scripts/api_reference.py > docs/reference/api.md"
    assert page.count("\n#### HudiTable.") > 25
