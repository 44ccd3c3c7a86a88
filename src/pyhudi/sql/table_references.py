"""Detection and replacement of the tables that a query reads."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import Any

from pyhudi.errors import SqlSyntaxError
from pyhudi.sql.conditions.predicate_pushdown import pushed_predicate
from pyhudi.sql.conditions.runtime_filter_keys import JoinKey, join_keys
from pyhudi.sql.property_list import parse_relation_options
from pyhudi.sql.relation_tokens import ColumnParts, RelationScanner, skip_sample
from pyhudi.sql.sql_parser import syntax_tree
from pyhudi.sql.statements import Name
from pyhudi.sql.table_function_calls import table_function_calls
from pyhudi.sql.table_qualifiers import Qualifiers
from pyhudi.sql.text_edits import TextEdit, with_edits
from pyhudi.sql.time_travel_clause import TimeTravel, parse_time_travel
from pyhudi.sql.token_cursor import Cursor, NotUnderstoodError

_READS = re.compile(r"\b(from|join|table)\b", re.IGNORECASE)
"""Words before a table in a query."""


@dataclass(frozen=True, slots=True)
class Reference:
    """A table, or a table function, in a query.

    Attributes:
        name: Parts of the table's name, or the name of the function.
        start: Start in the text.
        end: End in the text, with its time travel.
        time_travel: Its time or version; None: it has none.
        options: Options of its read, ``WITH (key = value)`` after it.
        options_end: End of the options in the text; without some, that of the table.
        arguments: Values of a function's arguments, or their SQL (`VECTOR_FUNCTIONS`); None: it is a table.
        alias_at: Position for an alias, after its name or its sample; None if the query has one.
        ambiguous: Another table or alias in the query has the name of the table without its database.
        qualifiers: Qualifiers of columns with its name.
        predicate: Condition on its rows in WHERE (`pyhudi.sql.conditions.predicate_pushdown`).
        joined: Its columns that the query compares with columns of other tables
            (`pyhudi.sql.conditions.runtime_filter_keys`).
    """

    name: Name
    start: int
    end: int
    time_travel: TimeTravel | None = None
    options: tuple[tuple[str, str], ...] = ()
    options_end: int = 0
    arguments: tuple[str, ...] | None = None
    alias_at: int | None = None
    ambiguous: bool = False
    qualifiers: Qualifiers = field(default_factory=Qualifiers)
    predicate: str | None = None
    joined: tuple[JoinKey, ...] = ()


def find_references(query: str) -> list[Reference] | None:
    """Return the tables and table functions of Hudi that a query reads, in text order, except those defined by WITH;
    None if sqlglot cannot split the query into tokens.

    Raises:
        SqlSyntaxError: An argument of a table function is not a literal.
    """
    if _READS.search(query) is None:  # as an INSERT of ten thousand rows of literals, which takes seconds to parse
        return []
    try:
        cursor = Cursor(query)
    except NotUnderstoodError:
        return None
    tree = syntax_tree(query)
    references = _in_tokens(cursor) if tree is None else _in_tree(tree, cursor)
    functions = [
        Reference((call.name,), call.start, call.end, arguments=call.arguments, alias_at=call.alias_at)
        for call in table_function_calls(cursor)
    ]
    # subqueries in arguments are evaluated with them
    outside = [r for r in references if not any(one.start <= r.start < one.end for one in functions)]
    return sorted([*outside, *functions], key=lambda ref: ref.start)


def streamed_names(query: str) -> tuple[Name, ...]:
    """Return the names after STREAM (Spark 4), with or without parentheses, in the places of relations of a query; also
    the alias of a table that is called so."""
    if "stream" not in query.lower():
        return ()
    try:
        return tuple(RelationScanner.scanned(Cursor(query)).streamed)
    except SqlSyntaxError:  # which Spark reports
        return ()


def _in_tree(tree: Any, cursor: Cursor) -> list[Reference]:
    from sqlglot import exp

    columns = _columns(tree)
    references = [r for node in tree.find_all(exp.Table) if (r := _reference(node, cursor, columns)) is not None]
    if any(token.text == "|>" and token.kind != "STRING" for token in cursor.tokens):
        # sqlglot merges steps of a pipe into one SELECT, whatever their order
        references = [replace(ref, predicate=None, joined=()) for ref in references]
    return _with_ambiguity(references, (alias.name.lower() for alias in tree.find_all(exp.TableAlias)))


def _in_tokens(cursor: Cursor) -> list[Reference]:
    try:
        scanner = RelationScanner.scanned(cursor)
    except SqlSyntaxError:  # which Spark reports
        return []
    columns = scanner.columns()
    references = []
    for relation in scanner.relations:
        time_travel, end = _time_travel(cursor, relation.end)
        options, options_end = _options(cursor, end)
        reference = Reference(
            relation.name,
            relation.start,
            end,
            time_travel,
            options,
            options_end,
            alias_at=None if relation.alias is not None else _end_of_sample(cursor, options_end),
            qualifiers=Qualifiers.of_table(relation.name, columns),
        )
        references.append(reference)
    return _with_ambiguity(references, scanner.aliases)


def _with_ambiguity(references: Iterable[Reference], aliases: Iterable[str]) -> list[Reference]:
    """Mark the references to tables whose last name means something else in the query, too: another table, or one of
    these aliases in lower case."""
    references = list(references)
    names = {tuple(part.lower() for part in reference.name) for reference in references}
    meanings = Counter(name[-1] for name in names)
    meanings.update(set(aliases))
    return [replace(ref, ambiguous=meanings[ref.name[-1].lower()] > 1) for ref in references]


def _columns(tree: Any) -> list[ColumnParts]:
    """Return the columns of a query that have a qualifier."""
    from sqlglot import exp

    columns = (column.parts for column in tree.find_all(exp.Column) if column.args.get("table"))
    return [
        tuple((part.name.lower(), part.meta["start"], part.meta["end"] + 1) for part in parts)
        for parts in columns
        if all("start" in part.meta for part in parts)
    ]


def _reference(node: Any, cursor: Cursor, columns: list[ColumnParts]) -> Reference | None:
    from sqlglot import exp

    if isinstance(node.this, exp.Func) or node.find_ancestor(exp.Hint) is not None:
        return None
    parts = node.parts
    if not parts or any("start" not in part.meta for part in parts):
        return None
    name = tuple(str(part.name) for part in parts)
    if len(name) == 1 and name[0].lower() in _defined(node):
        return None
    start, end = parts[0].meta["start"], parts[-1].meta["end"] + 1
    time_travel, end = _time_travel(cursor, end)
    options, options_end = _options(cursor, end)
    return Reference(
        name,
        start,
        end,
        time_travel,
        options,
        options_end,
        alias_at=None if node.alias else _end_of_sample(cursor, options_end),
        qualifiers=Qualifiers.of_table(name, columns),
        predicate=pushed_predicate(node),
        joined=join_keys(node),
    )


def _defined(node: Any) -> set[str]:
    """Return the names that WITH defines for a table; a definition can refer only to earlier ones."""
    names: set[str] = set()
    inner, outer = node, node.parent
    while outer is not None:
        clause = outer.args.get("with_") or outer.args.get("with")
        if clause is not None:
            for definition in clause.expressions:
                if clause is inner and _contains_node(definition, node):
                    if clause.args.get("recursive"):
                        names.add(definition.alias.lower())
                    break
                names.add(definition.alias.lower())
        inner, outer = outer, outer.parent
    return names


def _contains_node(tree: Any, node: Any) -> bool:
    while node is not None and node is not tree:
        node = node.parent
    return node is tree


def _go_to(cursor: Cursor, position: int) -> int:
    """Go to the first token at or after a position in the text; returns its number."""
    cursor.at = next((n for n, token in enumerate(cursor.tokens) if token.start >= position), len(cursor.tokens))
    return cursor.at


def _time_travel(cursor: Cursor, end: int) -> tuple[TimeTravel | None, int]:
    _go_to(cursor, end)
    time_travel = parse_time_travel(cursor)
    return time_travel, end if time_travel is None else cursor.tokens[cursor.at - 1].end + 1


def _options(cursor: Cursor, end: int) -> tuple[tuple[tuple[str, str], ...], int]:
    """Return the options after a table that ends at a position in the text, and their end."""
    _go_to(cursor, end)
    options = parse_relation_options(cursor)
    return options, cursor.tokens[cursor.at - 1].end + 1 if options else end


def _end_of_sample(cursor: Cursor, end: int) -> int:
    """Return the end of the sample of a table; without a sample, the end of the table."""
    start = _go_to(cursor, end)
    skip_sample(cursor)
    return end if cursor.at == start else cursor.tokens[cursor.at - 1].end + 1


def replaced(query: str, changes: Iterable[tuple[Reference, str]], quote: Callable[[str], str]) -> str:
    """Replace references by other names. A table without an alias gets its own name as the alias, or, if something else
    is called so and columns are qualified by its full name, a name that nothing else has."""
    cuts: dict[tuple[int, int], str] = {}
    for reference, name in changes:
        at = reference.alias_at
        renamed = reference.ambiguous and bool(reference.qualifiers.own) and at is not None
        own_name = quote(f"_pyhudi_{reference.start}_{reference.name[-1]}" if renamed else reference.name[-1])
        cuts[reference.start, reference.end] = name + (f" AS {own_name}" if at == reference.end else "")
        if at is not None and at != reference.end:
            cuts[at, at] = f" AS {own_name}"
        for _, start, last, end in reference.qualifiers.own:
            cuts[start, end if renamed else last] = own_name if renamed else ""
    return with_edits(query, (TextEdit(start, end, new) for (start, end), new in cuts.items()))
