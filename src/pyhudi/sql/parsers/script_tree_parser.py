"""Parser of scripts of Spark 4 (``BEGIN … END``) into trees."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NoReturn

from pyhudi.errors import SqlSyntaxError
from pyhudi.sql.script_nodes import (
    Assign,
    Block,
    CloseCursor,
    Declare,
    DeclareCursor,
    FetchCursor,
    For,
    Handler,
    If,
    Jump,
    Loop,
    Node,
    Nodes,
    OpenCursor,
    Run,
)
from pyhudi.sql.token_cursor import Cursor

_GENERAL = frozenset({"SQLEXCEPTION", "NOT FOUND"})
_ONLY_OF_SPARK = frozenset({"SIGNAL", "RESIGNAL", "GET"})


def parse_tree(cursor: Cursor) -> Block:
    """Parse a whole script.

    Raises:
        SqlSyntaxError: It is invalid, or has what only Spark can run: declared conditions, variables or cursors of one
            name in nested scopes, and labels before names.
    """
    parser = _TreeParser(cursor)
    block = parser.block("")
    cursor.finish()
    for label in parser.labels:
        if re.search(rf"\b{re.escape(label)}`?\s*\.", cursor.text, re.IGNORECASE):
            raise SqlSyntaxError(f"the label {label!r} is used as a qualifier of a name")
    return block


def query_of_cursor(cursor: Cursor, start: int, end: int) -> str:
    """Return the text of the query of a cursor, without FOR READ ONLY, of some tokens."""
    last = [token.text.upper() for token in cursor.tokens[max(start, end - 3) : end]]
    return cursor.slice(start, end - 3 if last == ["FOR", "READ", "ONLY"] else end)


def _names(cursor: Cursor) -> tuple[str, ...]:
    """Consume names with commas between them. Return their texts."""
    texts: list[str] = []
    while not texts or cursor.take(","):
        start = cursor.at
        cursor.name()
        texts.append(cursor.slice(start, cursor.at))
    return tuple(texts)


class _TreeParser:
    """Parser of one script, with the labels, variables and cursors of the scopes around the next token."""

    def __init__(self, cursor: Cursor) -> None:
        self._cursor = cursor
        self._around: list[tuple[str, bool]] = []
        self._variables: list[str] = []
        self._cursors: list[str] = []
        self.labels: set[str] = set()

    def block(self, label: str) -> Block:
        """Parse BEGIN … END."""
        cursor, before, cursors = self._cursor, len(self._variables), len(self._cursors)
        cursor.expect("BEGIN")
        cursor.take("NOT", "ATOMIC")
        declarations: list[Node] = []
        handlers: list[Handler] = []
        while cursor.sees("DECLARE"):
            if cursor.word(2) == "HANDLER":
                handlers.append(self._handler(handlers))
            elif handlers:
                self._fail("a statement, or another handler")
            else:
                declarations.append(self._declaration())
            self._semicolon()
        body = self._body(label, "END")
        cursor.expect("END")
        self._repeated(label)
        del self._variables[before:]
        del self._cursors[cursors:]
        return Block((*declarations, *body), label, tuple(handlers))

    def _body(self, label: str, *ends: str, loop: bool = False) -> Nodes:
        """Parse statements up to one of some words, which may be left and iterated by a label."""
        self._around.append((label, loop))
        nodes: list[Node] = []
        while self._cursor.word() not in ends:
            nodes.append(self._node())
            self._semicolon()
        self._around.pop()
        return tuple(nodes)

    def _node(self) -> Node:
        cursor, label = self._cursor, ""
        if cursor.word(1) == ":":
            label = cursor.identifier().lower()
            cursor.at += 1
            self.labels.add(label)
        match cursor.word():
            case "BEGIN":
                return self.block(label)
            case "WHILE" | "REPEAT" | "LOOP" | "FOR":
                return self._loop(label)
            case "IF" if not label:
                return self._if()
            case "CASE" if not label:
                return self._case()
            case "LEAVE" | "ITERATE":
                return self._jump()
            case "OPEN" | "FETCH" | "CLOSE" if not label:
                return self._use_of_cursor()
            case "SET":
                cursor.at += 1
                if cursor.word() in ("VAR", "VARIABLE") and cursor.word(1) not in ("=", ",", "."):
                    cursor.at += 1
                return Assign(self._text())
            case "DECLARE" | ";" | "":
                self._fail("a statement")
            case word if word in _ONLY_OF_SPARK or label:
                self._fail("a statement")
        return Run(self._text())

    def _declaration(self) -> Declare | DeclareCursor:
        cursor = self._cursor
        cursor.expect("DECLARE")
        cursor.take("VARIABLE")
        names = [cursor.identifier()]
        while cursor.take(","):
            names.append(cursor.identifier())
        if len(names) == 1 and cursor.word() in ("ASENSITIVE", "INSENSITIVE", "CURSOR"):
            return self._cursor_declaration(names[0])
        if cursor.word() in ("CONDITION", "HANDLER", "REPLACE", "ASENSITIVE", "INSENSITIVE", "CURSOR"):
            self._fail("the type of a variable")
        for name in names:
            self._add_variable(name)
        return Declare(tuple(names), self._text())

    def _cursor_declaration(self, name: str) -> DeclareCursor:
        """Parse the rest of DECLARE … CURSOR."""
        cursor = self._cursor
        _ = cursor.take("ASENSITIVE") or cursor.take("INSENSITIVE")  # the rows are those of OPEN in any case
        cursor.expect("CURSOR", "FOR")
        start = cursor.at
        if not self._text():
            self._fail("a query")
        if name.lower() in self._cursors:
            raise SqlSyntaxError(f"the cursor {name!r} hides another one")
        self._cursors.append(name.lower())
        return DeclareCursor(name.lower(), query_of_cursor(cursor, start, cursor.at))

    def _use_of_cursor(self) -> OpenCursor | FetchCursor | CloseCursor:
        cursor = Cursor(self._text())  # sqlglot keeps the rest of FETCH as one token
        verb = cursor.word()
        cursor.at += 1
        if verb == "FETCH":
            _ = cursor.take("NEXT", "FROM") or cursor.take("FROM")
        name = cursor.identifier().lower()
        if name not in self._cursors:
            raise SqlSyntaxError(f"{verb} of {name!r}, which is no cursor of the script")
        use: OpenCursor | FetchCursor | CloseCursor
        match verb:
            case "FETCH":
                cursor.expect("INTO")
                use = FetchCursor(name, _names(cursor))
            case "OPEN" if cursor.take("USING"):
                use = OpenCursor(name, cursor.rest())
                if not use.using:
                    cursor.fail("the values of parameters")
            case "OPEN":
                use = OpenCursor(name)
            case _:
                use = CloseCursor(name)
        cursor.finish()
        return use

    def _handler(self, others: Sequence[Handler]) -> Handler:
        """Parse DECLARE … HANDLER. ``others``: those of the same block, for other conditions."""
        cursor = self._cursor
        cursor.expect("DECLARE")
        continues = cursor.take("CONTINUE")
        if not continues:
            cursor.expect("EXIT")
        cursor.expect("HANDLER", "FOR")
        conditions = [self._condition()]
        while cursor.take(","):
            conditions.append(self._condition())
        handled = [*conditions, *(condition for other in others for condition in other.conditions)]
        if len(set(handled)) < len(handled):
            raise SqlSyntaxError(f"a block has one handler for each of {', '.join(handled)}")
        if _GENERAL & set(conditions) and not _GENERAL.issuperset(conditions):
            raise SqlSyntaxError(f"a handler of {', '.join(conditions)} mixes general and specific conditions")
        around, self._around = self._around, []  # LEAVE and ITERATE stay inside of a handler
        body = self._node()
        self._around = around
        if not isinstance(body, Block | Run | Assign):
            self._fail("BEGIN or a statement")
        return Handler(frozenset(conditions), body, continues)

    def _condition(self) -> str:
        """Parse the condition of a handler."""
        cursor = self._cursor
        if cursor.take("NOT", "FOUND"):
            return "NOT FOUND"
        if cursor.take("SQLSTATE"):
            cursor.take("VALUE")
            return f"SQLSTATE {cursor.string().upper()}"
        return ".".join(cursor.name()).upper()

    def _add_variable(self, name: str) -> None:
        if name.lower() in self._variables:
            raise SqlSyntaxError(f"the variable {name!r} hides another one")
        self._variables.append(name.lower())

    def _loop(self, label: str) -> Node:
        cursor = self._cursor
        if cursor.take("WHILE"):
            condition = self._until("DO")
            return Loop(self._turn(label, "WHILE"), label, condition=condition)
        if cursor.take("LOOP"):
            return Loop(self._turn(label, "LOOP"), label)
        if cursor.take("REPEAT"):
            body = self._body(label, "UNTIL", loop=True)
            cursor.expect("UNTIL")
            until = self._until("END")
            cursor.expect("REPEAT")
            self._repeated(label)
            return Loop(body, label, until=until)
        cursor.expect("FOR")
        variable = ""
        if cursor.word(1) == "AS" and cursor.word() != "(":
            variable = cursor.identifier()
            cursor.expect("AS")
        query, before = self._until("DO"), len(self._variables)
        if variable:
            self._add_variable(variable)
        body = self._turn(label, "FOR")
        del self._variables[before:]
        return For(query, body, label, variable)

    def _turn(self, label: str, verb: str) -> Nodes:
        """Parse the statements of a loop, and the end of it."""
        body = self._body(label, "END", loop=True)
        self._cursor.expect("END", verb)
        self._repeated(label)
        return body

    def _if(self) -> If:
        cursor = self._cursor
        branches: list[tuple[str, Nodes]] = []
        otherwise: Nodes = ()
        while cursor.take("ELSEIF") if branches else cursor.take("IF"):
            condition = self._until("THEN")
            branches.append((condition, self._body("", "ELSEIF", "ELSE", "END")))
        if cursor.take("ELSE"):
            otherwise = self._body("", "END")
        cursor.expect("END", "IF")
        return If(tuple(branches), otherwise)

    def _case(self) -> If:
        cursor = self._cursor
        cursor.expect("CASE")
        value = cursor.until("WHEN")
        branches: list[tuple[str, Nodes]] = []
        otherwise: Nodes = ()
        while cursor.take("WHEN"):
            condition = self._until("THEN")
            condition = f"({value}) = ({condition})" if value else condition
            branches.append((condition, self._body("", "WHEN", "ELSE", "END")))
        if cursor.take("ELSE"):
            otherwise = self._body("", "END")
        cursor.expect("END", "CASE")
        if not branches:
            self._fail("WHEN")
        return If(tuple(branches), otherwise)

    def _jump(self) -> Jump:
        verb = self._cursor.word()
        self._cursor.at += 1
        label = self._cursor.identifier().lower()
        if not any(name == label and (loop or verb == "LEAVE") for name, loop in self._around):
            raise SqlSyntaxError(f"{verb} is not inside of {label!r}")
        return Jump(verb, label)

    def _until(self, word: str) -> str:
        """Consume a text that is not empty, and the word after it."""
        text = self._cursor.until(word)
        if not text:
            self._fail("a query or condition")
        self._cursor.expect(word)
        return text

    def _text(self) -> str:
        """Consume a text up to the next semicolon."""
        cursor = self._cursor
        start = cursor.at
        while not cursor.done and cursor.kind() != "SEMICOLON":
            cursor.at += 1
        return cursor.slice(start, cursor.at)

    def _semicolon(self) -> None:
        if self._cursor.kind() != "SEMICOLON":
            self._fail("';'")
        self._cursor.at += 1

    def _repeated(self, label: str) -> None:
        """Consume a label that is repeated at the end."""
        if label and not self._cursor.done and self._cursor.words(1).lower() == label:
            self._cursor.at += 1

    def _fail(self, wanted: str) -> NoReturn:
        self._cursor.fail(wanted)
        raise AssertionError
