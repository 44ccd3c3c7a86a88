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
        ("SELECT * FROM t TABLESAMPLE (10 PERCENT) WHERE id = 1", [None]),
        ("SELECT count(*) FROM t WHERE id = 1 GROUP BY n HAVING n = 2", ["`id` = 1"]),
        ("SELECT * FROM t WHERE id = 1 UNION ALL SELECT * FROM t WHERE id = 2", ["`id` = 1", "`id` = 2"]),
        ("WITH c AS (SELECT * FROM t) SELECT * FROM c WHERE id = 1", [None]),
        ("SELECT * FROM t WHERE NOT (id = 1)", [None]),
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
