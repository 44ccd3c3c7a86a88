"""Predicate pushdown: conditions in WHERE on the rows of one table of a query.

Supported are comparisons of columns with literals (including ``IN``, ``BETWEEN``, ``IS NULL``), joined by ``AND`` and
``OR``, in the WHERE of the SELECT that has the table in its FROM, or in a join that does not preserve its unmatched
rows. The result is SQL of these comparisons alone; the query is not changed.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

_SPECIAL = ("'", '"', "\\", "${", "\a", "\f", "\v")
"""Parts of texts that Spark may read otherwise. To Spark ``'\\a'``, ``'\\f'`` and ``'\\v'`` are letters, and to older
releases of sqlglot control characters."""
_COMPARISONS = {"EQ": "=", "NEQ": "<>", "LT": "<", "LTE": "<=", "GT": ">", "GTE": ">=", "NullSafeEQ": "<=>"}


@dataclass(frozen=True, slots=True)
class QueriedTable:
    """A table in a SELECT.

    Attributes:
        name: Its alias or its last name, in lower case.
        is_only: It is the only table of the SELECT, so that its columns need no qualifier.
    """

    name: str
    is_only: bool

    @classmethod
    def in_select(cls, table: Any, select: Any) -> QueriedTable:
        """Return a table of a SELECT, both in the query's sqlglot tree."""
        return cls(name_in_query(table), not select.args.get("joins") and not select.args.get("laterals"))

    def column(self, tree: Any) -> str | None:
        """Return the name of a column, if it is one of this table: qualified by its name or, if there is only one
        table, unqualified."""
        from sqlglot import exp

        if not isinstance(tree, exp.Column) or tree.args.get("db") or "`" in tree.name:
            return None
        is_own = tree.table.lower() == self.name if tree.table else self.is_only
        return str(tree.name) if is_own and isinstance(tree.this, exp.Identifier) else None


def name_in_query(table: Any) -> str:
    """Return the alias of a table, or its last name, in lower case."""
    return str(table.alias or table.name).lower()


def pushed_predicate(table: Any) -> str | None:
    """Return the condition of a query on the rows of a table, as SQL on its columns; None if there is none.

    Args:
        table: The table in the query's sqlglot tree (``exp.Table``).
    """
    select = select_of(table)
    where = None if select is None else select.args.get("where")
    if where is None:
        return None
    queried = QueriedTable.in_select(table, select)
    parts = [text for part in conjuncts(where.this) if (text := _sql_condition(part, queried)) is not None]
    return " AND ".join(parts) or None


def select_of(table: Any) -> Any:
    """Return the SELECT whose WHERE all rows of the table must satisfy; None if there is none."""
    from sqlglot import exp

    if table.args.get("sample") or table.args.get("pivots"):
        return None
    alias = table.args.get("alias")
    if alias is not None and alias.args.get("columns"):
        return None  # the query names the columns of the table otherwise
    parent = table.parent
    select = parent.parent if parent is not None else None
    if not isinstance(select, exp.Select) or select.args.get("pivots"):
        return None
    joins = select.args.get("joins") or []
    if isinstance(parent, exp.From):
        return select if all(_preserves_left_rows(join) for join in joins) else None
    if isinstance(parent, exp.Join) and parent.this is table and any(join is parent for join in joins):
        at = next(n for n, join in enumerate(joins) if join is parent)
        inner = not parent.side and (parent.kind or "INNER").upper() in ("INNER", "CROSS") and not parent.method
        return select if inner and all(_preserves_left_rows(join) for join in joins[at + 1 :]) else None
    return None


def _preserves_left_rows(join: Any) -> bool:
    """Return True if a join does not add null rows for its left side."""
    return (join.side or "").upper() in ("", "LEFT") and not join.method


def conjuncts(tree: Any) -> Iterator[Any]:
    """Yield the operands of AND in a condition."""
    from sqlglot import exp

    return _operands(tree, exp.And)


def _operands(tree: Any, kind: Any) -> Iterator[Any]:
    """Yield the operands of a chain of AND, or of OR, from left to right; it may be longer than Python can recurse."""
    waiting = [tree]
    while waiting:
        one = waiting.pop().unnest()
        if isinstance(one, kind):
            waiting += [one.expression, one.this]
        else:
            yield one


def _sql_condition(tree: Any, table: QueriedTable) -> str | None:
    """Return a condition as SQL on the columns of a table; None if it is not supported."""
    from sqlglot import exp

    tree = tree.unnest()
    if isinstance(tree, exp.And | exp.Or):
        operands = [_sql_condition(one, table) for one in _operands(tree, type(tree))]
        word = " AND " if isinstance(tree, exp.And) else " OR "
        return None if None in operands else f"({word.join(f'({one})' for one in operands)})"
    if isinstance(tree, exp.Not) and isinstance(tree.this.unnest(), exp.Is):
        inner = _sql_condition(tree.this, table)
        return None if inner is None else inner.replace(" IS NULL", " IS NOT NULL")
    sign = _COMPARISONS.get(type(tree).__name__)
    if sign is not None:
        left, right = _value(tree.this, table), _value(tree.expression, table)
        columns = [isinstance(side, exp.Column) for side in (tree.this, tree.expression)]
        return None if left is None or right is None or all(columns) else f"{left} {sign} {right}"
    column = _column(tree.this, table) if isinstance(tree, exp.In | exp.Between | exp.Is) else None
    if column is None:
        return None
    if isinstance(tree, exp.In):
        values = [_literal(value) for value in tree.expressions]
        has_literals = values and None not in values and not tree.args.get("query") and not tree.args.get("unnest")
        return f"{column} IN ({', '.join(map(str, values))})" if has_literals else None
    if isinstance(tree, exp.Between):
        low, high = _literal(tree.args["low"]), _literal(tree.args["high"])
        return (
            None if low is None or high is None or tree.args.get("symmetric") else f"{column} BETWEEN {low} AND {high}"
        )
    return f"{column} IS NULL" if isinstance(tree.expression, exp.Null) else None


def _value(tree: Any, table: QueriedTable) -> str | None:
    literal = _literal(tree)
    return literal if literal is not None else _column(tree, table)


def _column(tree: Any, table: QueriedTable) -> str | None:
    """Return a column of the table as SQL."""
    name = table.column(tree)
    return None if name is None else f"`{name}`"


def _literal(tree: Any) -> str | None:
    from sqlglot import exp

    if isinstance(tree, exp.Neg):
        inner = _literal(tree.this)
        return f"-{inner}" if inner is not None and inner[:1].isdigit() else None
    if isinstance(tree, exp.Boolean):
        return "TRUE" if tree.this else "FALSE"
    if isinstance(tree, exp.Cast) and tree.to.this is exp.DataType.Type.DATE and isinstance(tree.this, exp.Literal):
        text = _literal(tree.this)
        return f"DATE {text}" if text is not None and text[:1] == "'" else None
    if not isinstance(tree, exp.Literal):
        return None
    if not tree.is_string:
        return str(tree.this)
    plain = not any(sign in tree.this for sign in _SPECIAL)
    return f"'{tree.this}'" if plain else None
