"""Names in scripts: labels around a statement, and the variables, cursors and conditions that blocks declare."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from pyhudi.errors import SqlSyntaxError

_NO_LABELS = frozenset({"builtin", "session", "system"})


@dataclass(frozen=True, slots=True)
class BlockNames:
    """Names that a block declares, in lower case."""

    label: str
    variables: set[str] = field(default_factory=set)
    cursors: set[str] = field(default_factory=set)
    conditions: set[str] = field(default_factory=set)

    def declare_variable(self, name: str) -> None:
        """Declare a variable.

        Raises:
            SqlSyntaxError: The block has declared it already.
        """
        _add(self.variables, name, "variable")

    def declare_cursor(self, name: str) -> None:
        """Declare a cursor. Raises the errors of `declare_variable`."""
        _add(self.cursors, name, "cursor")


def _add(names: set[str], name: str, what: str) -> None:
    if name in names:
        raise SqlSyntaxError(f"the {what} {name!r} is declared twice")
    names.add(name)


class ScriptNames:
    """Names that are known at one place of a script while it is parsed."""

    def __init__(self) -> None:
        self._labels: list[tuple[str, bool]] = []
        self._rows: list[str] = []
        self._blocks: list[BlockNames] = []

    @contextmanager
    def inside_block(self, label: str) -> Iterator[BlockNames]:
        """Enter a block. Return its own names."""
        self._blocks.append(BlockNames(label))
        yield self._blocks[-1]
        self._blocks.pop()

    @contextmanager
    def inside_body(self, label: str, *, loop: bool) -> Iterator[None]:
        """Enter statements that can be left by their label and, in a loop, iterated."""
        self._labels.append((label, loop))
        yield
        self._labels.pop()

    @contextmanager
    def inside_handler(self) -> Iterator[None]:
        """Enter the statement of a handler, which cannot leave or iterate what is around the handler."""
        around, self._labels = self._labels, []
        yield
        self._labels = around

    @contextmanager
    def inside_rows(self, variable: str) -> Iterator[None]:
        """Enter the statements of a FOR, whose variable is like the label of a block with its columns."""
        self._rows.append(variable)
        yield
        self._rows.pop()

    def check_label(self, label: str) -> None:
        """Check that a label, or the variable of a FOR, may have this name here.

        Raises:
            SqlSyntaxError: It is reserved, or one around has it.
        """
        if label in (*_NO_LABELS, *self._rows, *(name for name, _ in self._labels)):
            raise SqlSyntaxError(f"{label!r} cannot be a label, or is one around it; take another name")

    def check_jump(self, verb: str, label: str) -> None:
        """Check that LEAVE or ITERATE is inside of what it names.

        Raises:
            SqlSyntaxError: It is not.
        """
        if not any(name == label and (loop or verb == "LEAVE") for name, loop in self._labels):
            raise SqlSyntaxError(f"{verb} is not inside of {label!r}")

    def check_cursor(self, verb: str, name: tuple[str, ...]) -> None:
        """Check that a block around declares a cursor, named with or without the label of the block.

        Raises:
            SqlSyntaxError: None does.
        """
        if not any(name in ((key,), (block.label, key)) for block in self._blocks for key in block.cursors):
            raise SqlSyntaxError(f"{verb} of {'.'.join(name)!r}, which is no cursor of the script")

    def declare_condition(self, name: str) -> None:
        """Declare a condition in the innermost block.

        Raises:
            SqlSyntaxError: A block around has declared it, or it cannot be the name of a condition.
        """
        if not re.fullmatch(r"\w+", name) or any(name in block.conditions for block in self._blocks):
            raise SqlSyntaxError(f"the condition {name!r} is declared already, or has a name with other characters")
        self._blocks[-1].conditions.add(name)
