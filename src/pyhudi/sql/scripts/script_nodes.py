"""Scripts of Spark 4 (``BEGIN … END``) as trees of frozen dataclasses. Statements, queries and conditions are texts."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeAlias


@dataclass(frozen=True, slots=True)
class Run:
    """A statement of SQL."""

    text: str


@dataclass(frozen=True, slots=True)
class Declare:
    """DECLARE of local variables; ``clauses`` are their type and default value."""

    names: tuple[str, ...]
    clauses: str


@dataclass(frozen=True, slots=True)
class Assign:
    """SET of local variables; ``text`` follows the word SET."""

    text: str


@dataclass(frozen=True, slots=True)
class If:
    """IF or CASE: conditions with the statements of the first one that holds. With a ``value``, the conditions are
    values that it is compared with."""

    branches: tuple[tuple[str, Nodes], ...]
    otherwise: Nodes = ()
    value: str = ""


@dataclass(frozen=True, slots=True)
class Loop:
    """LOOP, WHILE or REPEAT: ``condition`` is checked before each turn, and ``until`` after it."""

    body: Nodes
    label: str
    condition: str = ""
    until: str = ""


@dataclass(frozen=True, slots=True)
class For:
    """FOR: the rows of a query, whose columns are variables, as in a block with the label ``variable``."""

    query: str
    body: Nodes
    label: str = ""
    variable: str = ""


@dataclass(frozen=True, slots=True)
class DeclareCursor:
    """DECLARE of a cursor. Its name is in lower case, as in the statements that use it."""

    name: str
    query: str


@dataclass(frozen=True, slots=True)
class OpenCursor:
    """OPEN of a cursor.

    Attributes:
        name: Its name, after the label of its block if it has one.
        using: The values of the parameters of its query.
    """

    name: tuple[str, ...]
    using: str = ""


@dataclass(frozen=True, slots=True)
class FetchCursor:
    """FETCH of the next row of a cursor into some variables."""

    name: tuple[str, ...]
    variables: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class CloseCursor:
    """CLOSE of a cursor."""

    name: tuple[str, ...]


GENERAL = frozenset({"SQLEXCEPTION", "NOT FOUND"})
"""Conditions that include others."""


@dataclass(frozen=True, slots=True)
class Handler:
    """DECLARE … HANDLER of a block.

    Attributes:
        conditions: Errors that it handles, in upper case: names of error conditions of Spark (``DIVIDE_BY_ZERO``),
            ``SQLSTATE 22012``, ``NOT FOUND`` and ``SQLEXCEPTION``.
        body: Its statements.
        continues: The script continues after the statement that failed, otherwise after the block.
    """

    conditions: frozenset[str]
    body: Node
    continues: bool = False

    @property
    def names(self) -> frozenset[str]:
        """The conditions that have names, of Spark or of the script."""
        return frozenset(one for one in self.conditions if one not in GENERAL and not one.startswith("SQLSTATE "))


@dataclass(frozen=True, slots=True)
class Block:
    """BEGIN … END: the scope of the variables, conditions, cursors and handlers that are declared in it.

    Attributes:
        body: Its statements, after the declarations of variables and cursors.
        label: Its label.
        handlers: Its handlers.
        conditions: Names of the conditions that it declares, in upper case.
    """

    body: Nodes
    label: str = ""
    handlers: tuple[Handler, ...] = ()
    conditions: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Jump:
    """LEAVE a loop or block, or ITERATE a loop."""

    verb: str
    label: str


Node: TypeAlias = (
    "Run | Declare | Assign | If | Loop | For | Block | Jump | DeclareCursor | OpenCursor | FetchCursor | CloseCursor"
)
Nodes: TypeAlias = tuple[Node, ...]


def nodes_of(node: Node) -> Iterator[Node]:
    """Yield a node and all nodes inside of it, those of handlers included."""
    yield node
    for one in _inner_nodes(node):
        yield from nodes_of(one)


def undeclared_conditions(node: Node, declared: frozenset[str] = frozenset()) -> frozenset[str]:
    """Return the conditions for which a node has handlers, and which no block around them declares.

    Args:
        node: The node.
        declared: Conditions that blocks around it declare.
    """
    names: frozenset[str] = frozenset()
    if isinstance(node, Block):
        declared |= node.conditions
        names = names.union(*(handler.names for handler in node.handlers)) - declared
    return names.union(*(undeclared_conditions(one, declared) for one in _inner_nodes(node)))


def _inner_nodes(node: Node) -> Nodes:
    match node:
        case Block(body=body, handlers=handlers):
            return (*body, *(handler.body for handler in handlers))
        case Loop(body=body) | For(body=body):
            return body
        case If(branches=branches, otherwise=otherwise):
            return (*(one for _, body in branches for one in body), *otherwise)
    return ()


@dataclass(frozen=True, slots=True)
class Script:
    """A script.

    Attributes:
        parts: The statements, queries and conditions in it, in the order of the text.
        body: Its tree; None if it has what only Spark can run.
    """

    parts: tuple[str, ...]
    body: Block | None = None
