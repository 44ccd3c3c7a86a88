"""Parser of scripts of Spark 4 (``BEGIN … END``) into trees."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NoReturn

from pyhudi.errors import SqlSyntaxError
from pyhudi.sql.scripts.script_names import BlockNames, ScriptNames
from pyhudi.sql.scripts.script_nodes import (
    GENERAL,
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

_ONLY_OF_SPARK = frozenset({"SIGNAL", "RESIGNAL", "GET"})
_SQLSTATE = re.compile(r"[0-9A-Z]{5}")
_NO_ERRORS = ("00", "01", "XX")


def parse_tree(cursor: Cursor) -> Block:
    """Parse a whole script.

    Raises:
        SqlSyntaxError: It is invalid, or has what only Spark can run.
    """
    block = _TreeParser(cursor).block("")
    cursor.finish()
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
    """Parser of one script, with the names that are known at the next token."""

    def __init__(self, cursor: Cursor) -> None:
        self._cursor = cursor
        self._names = ScriptNames()

    def block(self, label: str) -> Block:
        """Parse BEGIN … END."""
        cursor = self._cursor
        cursor.expect("BEGIN")
        cursor.take("NOT", "ATOMIC")
        declarations: list[Node] = []
        handlers: list[Handler] = []
        with self._names.inside_block(label) as declared:
            while cursor.sees("DECLARE"):
                if cursor.word(2) == "HANDLER":
                    handlers.append(self._handler(handlers))
                elif handlers:
                    self._fail("a statement, or another handler")
                else:
                    declarations += self._declaration(declared)
                self._semicolon()
            body = self._body(label, "END")
        cursor.expect("END")
        self._repeated(label)
        conditions = frozenset(map(str.upper, declared.conditions))
        return Block((*declarations, *body), label, tuple(handlers), conditions)

    def _body(self, label: str, *ends: str, loop: bool = False) -> Nodes:
        """Parse statements up to one of some words, which may be left and iterated by a label."""
        nodes: list[Node] = []
        with self._names.inside_body(label, loop=loop):
            while self._cursor.word() not in ends:
                nodes.append(self._node())
                self._semicolon()
        return tuple(nodes)

    def _node(self) -> Node:
        cursor, label = self._cursor, ""
        if cursor.word(1) == ":":
            label = self._label()
            cursor.at += 1
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

    def _label(self) -> str:
        """Parse a label, or the variable of a FOR."""
        label = self._cursor.identifier().lower()
        self._names.check_label(label)
        return label

    def _declaration(self, declared: BlockNames) -> list[Node]:
        """Parse DECLARE of variables, a condition or a cursor, and add their names to those of the block."""
        cursor = self._cursor
        cursor.expect("DECLARE")
        cursor.take("VARIABLE")
        names = [cursor.identifier()]
        while cursor.take(","):
            names.append(cursor.identifier())
        if len(names) == 1 and cursor.word() in ("ASENSITIVE", "INSENSITIVE", "CURSOR"):
            return [self._cursor_declaration(names[0].lower(), declared)]
        if declared.cursors:
            self._fail("a cursor, a handler or a statement")
        if len(names) == 1 and cursor.take("CONDITION"):
            self._add_condition(names[0].lower())
            return []
        if cursor.word() in ("CONDITION", "HANDLER", "REPLACE", "ASENSITIVE", "INSENSITIVE", "CURSOR"):
            self._fail("the type of a variable")
        for name in names:
            declared.declare_variable(name.lower())
        return [Declare(tuple(names), self._text())]

    def _add_condition(self, name: str) -> None:
        """Parse the rest of DECLARE … CONDITION. Its SQLSTATE has no effect without SIGNAL, which Spark does not have:
        a handler for it is one for the condition of Spark with its name."""
        cursor = self._cursor
        if cursor.take("FOR"):
            cursor.expect("SQLSTATE")
            state = self._sqlstate()
            if state.startswith(_NO_ERRORS):
                raise SqlSyntaxError(f"the SQLSTATE {state!r} of the condition {name!r} is not one of errors")
        self._names.declare_condition(name)

    def _sqlstate(self) -> str:
        self._cursor.take("VALUE")
        state = self._cursor.string().upper()
        if not _SQLSTATE.fullmatch(state):
            raise SqlSyntaxError(f"{state!r} is no SQLSTATE, which has five digits and letters")
        return state

    def _cursor_declaration(self, name: str, declared: BlockNames) -> DeclareCursor:
        """Parse the rest of DECLARE … CURSOR."""
        cursor = self._cursor
        _ = cursor.take("ASENSITIVE") or cursor.take("INSENSITIVE")  # the rows are those of OPEN in any case
        cursor.expect("CURSOR", "FOR")
        start = cursor.at
        if not self._text():
            self._fail("a query")
        declared.declare_cursor(name)
        return DeclareCursor(name, query_of_cursor(cursor, start, cursor.at))

    def _use_of_cursor(self) -> OpenCursor | FetchCursor | CloseCursor:
        cursor = Cursor(self._text())  # sqlglot keeps the rest of FETCH as one token
        verb = cursor.word()
        cursor.at += 1
        if verb == "FETCH":
            _ = cursor.take("NEXT", "FROM") or cursor.take("FROM")
        name = tuple(part.lower() for part in cursor.name())
        self._names.check_cursor(verb, name)
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
        if GENERAL & set(conditions) and not GENERAL.issuperset(conditions):
            raise SqlSyntaxError(f"a handler of {', '.join(conditions)} mixes general and specific conditions")
        with self._names.inside_handler():
            body = self._node()
        if not isinstance(body, Block | Run | Assign):
            self._fail("BEGIN or a statement")
        return Handler(frozenset(conditions), body, continues)

    def _condition(self) -> str:
        """Parse the condition of a handler."""
        cursor = self._cursor
        if cursor.take("NOT", "FOUND"):
            return "NOT FOUND"
        if cursor.take("SQLSTATE"):
            return f"SQLSTATE {self._sqlstate()}"
        return ".".join(cursor.name()).upper()

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
            variable = self._label()
            cursor.expect("AS")
        query = self._until("DO")
        with self._names.inside_rows(variable):
            body = self._turn(label, "FOR")
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
            branches.append((condition, self._body("", "WHEN", "ELSE", "END")))
        if cursor.take("ELSE"):
            otherwise = self._body("", "END")
        cursor.expect("END", "CASE")
        if not branches:
            self._fail("WHEN")
        return If(tuple(branches), otherwise, value)

    def _jump(self) -> Jump:
        verb = self._cursor.word()
        self._cursor.at += 1
        label = self._cursor.identifier().lower()
        self._names.check_jump(verb, label)
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
