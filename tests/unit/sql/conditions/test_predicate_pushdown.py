"""What queries say of the rows of their tables."""

from __future__ import annotations

import pytest

from pyhudi.sql.table_references import find_references


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("SELECT * FROM t", [None]),
        ("SELECT * FROM t WHERE id = 5", ["`id` = 5"]),
        ("SELECT * FROM db.t WHERE t.id = 'x' AND upper(n) = 'A'", ["`id` = 'x'"]),
        (
            "SELECT * FROM t AS a WHERE a.id > -1 AND a.id <= 7 AND (a.v IN (1, 2) OR a.v IS NULL)",
            ["`id` > -1 AND `id` <= 7 AND ((`v` IN (1, 2)) OR (`v` IS NULL))"],
        ),
        ("SELECT * FROM t WHERE 5 < id OR n = m", [None]),
        (
            "SELECT * FROM t WHERE (a = 1 OR (a = 2 OR b = 3 AND (c = 4)) OR a = 5) AND c = 6",
            ["((`a` = 1) OR (`a` = 2) OR (((`b` = 3) AND (`c` = 4))) OR (`a` = 5)) AND `c` = 6"],
        ),
        ("SELECT * FROM t WHERE 5 < id AND n = m", ["5 < `id`"]),
        ("SELECT * FROM t WHERE d = DATE '2024-01-02'", ["`d` = DATE '2024-01-02'"]),
        ("SELECT * FROM t WHERE n IS NOT NULL AND n BETWEEN 1 AND 2", ["`n` IS NOT NULL AND `n` BETWEEN 1 AND 2"]),
        ("SELECT * FROM t WHERE id = 'it''s' AND b", [None]),
        ("SELECT * FROM t WHERE id IN (SELECT id FROM u WHERE k = 1)", [None, "`k` = 1"]),
        ("SELECT * FROM t JOIN u ON t.id = u.id WHERE t.id = 1 AND u.k = 2 AND v = 3", ["`id` = 1", "`k` = 2"]),
        ("SELECT * FROM t LEFT JOIN u ON t.id = u.id WHERE t.id = 1 AND u.k = 2", ["`id` = 1", None]),
        ("SELECT * FROM t RIGHT JOIN u ON t.id = u.id WHERE t.id = 1 AND u.k = 2", [None, None]),
        ("SELECT * FROM t FULL JOIN u ON t.id = u.id WHERE t.id = 1", [None, None]),
        ("SELECT * FROM t JOIN u ON t.id = u.id FULL JOIN w ON w.id = u.id WHERE u.id = 1", [None, None, None]),
        ("SELECT * FROM t LATERAL VIEW explode(l) e AS id WHERE id = 1 AND t.n = 2", ["`n` = 2"]),
        ("SELECT * FROM t AS x(v, id) WHERE x.id = 1 AND v = 2", [None]),
        ("SELECT * FROM t TABLESAMPLE (10 PERCENT) WHERE id = 1", [None]),
        ("SELECT count(*) FROM t WHERE id = 1 GROUP BY n HAVING n = 2", ["`id` = 1"]),
        ("SELECT * FROM t WHERE id = 1 UNION ALL SELECT * FROM t WHERE id = 2", ["`id` = 1", "`id` = 2"]),
        ("WITH c AS (SELECT * FROM t) SELECT * FROM c WHERE id = 1", [None]),
        ("SELECT * FROM t WHERE NOT (id = 1)", [None]),
        ("FROM t |> ORDER BY b |> LIMIT 10 |> WHERE id = 1", [None]),
        ("SELECT * FROM t WHERE id = 1 AND b <> '|>'", ["`id` = 1 AND `b` <> '|>'"]),
        ("SELECT * FROM t TIMESTAMP AS OF '2024-01-01' WHERE id = 1", None),
    ],
)
def test_conditions(query: str, expected: list[str | None] | None):
    found = find_references(query)
    assert found is not None
    if expected is None:  # what sqlglot makes of it may not be looked into
        assert all(reference.predicate in (None, "`id` = 1") for reference in found)
    else:
        assert [reference.predicate for reference in found] == expected


@pytest.mark.parametrize("word", ["OR", "AND"])
def test_conditions_may_be_longer_than_python_recurses(word):
    (found,) = find_references("SELECT * FROM t WHERE " + f" {word} ".join(f"a = {n}" for n in range(2000)))
    assert found.predicate.count("`a` = ") == 2000


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("SELECT * FROM t JOIN u ON t.a = u.b", [[("a", "u", "b")], [("b", "t", "a")]]),
        ("SELECT * FROM t, u WHERE u.b = t.a AND t.c = 1", [[("a", "u", "b")], [("b", "t", "a")]]),
        ("SELECT * FROM t x JOIN u y ON x.a = y.b AND x.c > y.c", [[("a", "u", "b")], [("b", "t", "a")]]),
        ("SELECT * FROM t WHERE a IN (SELECT b FROM u WHERE c = 1)", [[("a", "u", "b")], []]),
        ("SELECT * FROM t JOIN u ON t.a = u.b JOIN v ON v.c = u.d", None),
        # rows without a partner come out, or something else is compared
        ("SELECT * FROM t LEFT JOIN u ON t.a = u.b", [[], []]),
        ("SELECT * FROM t FULL JOIN u ON t.a = u.b", [[], []]),
        ("SELECT * FROM t LEFT ANTI JOIN u ON t.a = u.b", [[], []]),
        ("SELECT * FROM t JOIN u ON t.a = u.b OR t.c = 1", [[], []]),
        ("SELECT * FROM t JOIN u ON t.a <=> u.b", [[], []]),
        ("SELECT * FROM t JOIN u ON a = b", [[], []]),
        ("SELECT * FROM t JOIN u USING (a)", [[], []]),
        ("SELECT * FROM t JOIN t ON t.a = t.b", [[], []]),
        ("SELECT * FROM t WHERE a NOT IN (SELECT b FROM u)", [[], []]),
        ("SELECT * FROM t WHERE a IN (SELECT b + 1 FROM u)", [[], []]),
        ("SELECT * FROM t WHERE a IN (SELECT max(b) FROM u GROUP BY c)", [[], []]),
        ("SELECT * FROM t WHERE a IN (SELECT b FROM u LIMIT 3)", [[], []]),
        ("SELECT * FROM t WHERE c = 1 OR a IN (SELECT b FROM u)", [[], []]),
        ("SELECT * FROM t JOIN u TABLESAMPLE (5 PERCENT) ON t.a = u.b", [[], []]),
    ],
)
def test_joined_keys(query: str, expected: list[list[tuple[str, str, str]]] | None):
    found = find_references(query)
    assert found is not None
    names = {reference.start: reference.name[0] for reference in found}
    keys = [[(key.column, names[key.other], key.other_column) for key in one.joined] for one in found]
    if expected is None:
        assert keys == [[("a", "u", "b")], [("d", "v", "c"), ("b", "t", "a")], [("c", "u", "d")]] or sorted(
            map(sorted, keys)
        ) == sorted(map(sorted, [[("a", "u", "b")], [("b", "t", "a"), ("d", "v", "c")], [("c", "u", "d")]]))
    else:
        assert keys == expected


@pytest.mark.parametrize("escaped", ["a", "f", "v", "x", "%", "0", "n"])
def test_escapes_mean_what_they_mean_to_spark(escaped):
    (table,) = find_references(f"SELECT * FROM t WHERE n = '\\{escaped}'")
    means = {"0": "\0", "n": "\n"}.get(escaped, escaped)
    assert table.predicate in (None, f"`n` = '{means}'")
