"""Scripts of Spark 4 (``BEGIN … END``) as trees of frozen dataclasses. Statements, queries and conditions are texts."""

from __future__ import annotations

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
    """IF or CASE: conditions with what is run if they hold, the first of which counts."""

    branches: tuple[tuple[str, Nodes], ...]
    otherwise: Nodes = ()


@dataclass(frozen=True, slots=True)
class Loop:
    """LOOP, WHILE or REPEAT: ``condition`` is checked before each turn, and ``until`` after it."""

    body: Nodes
    label: str = ""
    condition: str = ""
    until: str = ""


@dataclass(frozen=True, slots=True)
class For:
    """FOR: the rows of a query, whose columns are variables, also as fields of ``variable``."""

    query: str
    body: Nodes
    label: str = ""
    variable: str = ""


@dataclass(frozen=True, slots=True)
class Block:
    """BEGIN … END: the scope of the variables that are declared in it."""

    body: Nodes
    label: str = ""


@dataclass(frozen=True, slots=True)
class Jump:
    """LEAVE a loop or block, or ITERATE a loop."""

    verb: str
    label: str


Node: TypeAlias = "Run | Declare | Assign | If | Loop | For | Block | Jump"
Nodes: TypeAlias = tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Script:
    """A script.

    Attributes:
        parts: The statements, queries and conditions in it, in the order of the text.
        body: Its tree; None if it has what only Spark can run, such as handlers of conditions and cursors.
    """

    parts: tuple[str, ...]
    body: Block | None = None
