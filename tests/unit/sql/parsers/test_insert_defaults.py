"""DEFAULT in the query of an INSERT, where Spark knows it."""

import pytest

from pyhudi.sql.parsers.insert_defaults import with_null_items, with_null_values

pytest.importorskip("sqlglot")


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("VALUES (1, DEFAULT, f(DEFAULT)), (default, 'DEFAULT')", "VALUES (1, NULL, f(DEFAULT)), (NULL, 'DEFAULT')"),
        ("VALUES (1, 2), (DEFAULT, DEFAULT) AS v(a, default)", "VALUES (1, 2), (NULL, NULL) AS v(a, default)"),
        ("VALUES 1, DEFAULT, (DEFAULT)", "VALUES 1, NULL, (NULL)"),
        ("(VALUES (DEFAULT))", "(VALUES (NULL))"),
        ("SELECT a, default FROM VALUES (DEFAULT) AS v(default)", "SELECT a, default FROM VALUES (NULL) AS v(default)"),
        ("SELECT a IS DISTINCT FROM 1 FROM (VALUES (DEFAULT)) v", "SELECT a IS DISTINCT FROM 1 FROM (VALUES (NULL)) v"),
        ("WITH w AS (VALUES (DEFAULT)) VALUES (DEFAULT)", "WITH w AS (VALUES (DEFAULT)) VALUES (NULL)"),
        (
            "WITH w AS (SELECT 1) (WITH x AS (SELECT 1) VALUES (DEFAULT))",
            "WITH w AS (SELECT 1) (WITH x AS (SELECT 1) VALUES (NULL))",
        ),
        ("FROM VALUES (DEFAULT) SELECT *", "FROM VALUES (NULL) SELECT *"),
        ("SELECT DEFAULT FROM u", "SELECT DEFAULT FROM u"),
        ("VALUES (1 + DEFAULT)", "VALUES (1 + DEFAULT)"),
        ("SELECT * FROM (SELECT * FROM VALUES (DEFAULT))", "SELECT * FROM (SELECT * FROM VALUES (NULL))"),
        ("WITH c AS (VALUES (1, DEFAULT)) SELECT * FROM C", "WITH c AS (VALUES (1, NULL)) SELECT * FROM C"),
        ("WITH `c d` AS (VALUES (DEFAULT)) TABLE `c d`", "WITH `c d` AS (VALUES (NULL)) TABLE `c d`"),
        (
            "WITH d AS (VALUES (DEFAULT)), c(a) AS (SELECT * FROM (SELECT * FROM d)) SELECT a FROM c",
            "WITH d AS (VALUES (NULL)), c(a) AS (SELECT * FROM (SELECT * FROM d)) SELECT a FROM c",
        ),
        (
            "WITH c AS (SELECT * FROM c), d AS (VALUES (DEFAULT)) SELECT * FROM c",
            "WITH c AS (SELECT * FROM c), d AS (VALUES (DEFAULT)) SELECT * FROM c",
        ),
        ("WITH c AS (SELECT 1, DEFAULT) SELECT * FROM c", "WITH c AS (SELECT 1, DEFAULT) SELECT * FROM c"),
        ("WITH c AS (VALUES (DEFAULT)) SELECT 1", "WITH c AS (VALUES (DEFAULT)) SELECT 1"),
    ],
)
def test_values(query, expected):
    assert with_null_values(query) == expected


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("SELECT 1, DEFAULT, 2", "SELECT 1, NULL, 2"),
        ("((SELECT default, DEFAULT))", "((SELECT NULL, NULL))"),
        (
            "SELECT ALL DEFAULT, a IS DISTINCT FROM b, DEFAULT FROM u",
            "SELECT ALL NULL, a IS DISTINCT FROM b, NULL FROM u",
        ),
        (
            "WITH w (a) AS (SELECT DEFAULT) SELECT *, DEFAULT FROM w WHERE a = DEFAULT ORDER BY a, DEFAULT LIMIT 1",
            "WITH w (a) AS (SELECT DEFAULT) SELECT *, NULL FROM w WHERE a = DEFAULT ORDER BY a, DEFAULT LIMIT 1",
        ),
        ("FROM u SELECT f(DEFAULT, 1), DEFAULT", "FROM u SELECT f(DEFAULT, 1), NULL"),
    ],
)
def test_items(query, expected):
    assert with_null_items(query) == expected


@pytest.mark.parametrize(
    "query",
    [
        "SELECT DEFAULT + 1, DEFAULT AS a, DEFAULT b, t.DEFAULT, 'DEFAULT', (SELECT DEFAULT) FROM t",
        "SELECT DISTINCT a, DEFAULT FROM t",
        "SELECT a, DEFAULT FROM t GROUP BY a",
        "SELECT a, DEFAULT FROM t UNION ALL SELECT 1, 2",
        "(SELECT 1, 2) EXCEPT (SELECT a, DEFAULT FROM t)",
        "SELECT * FROM (SELECT DEFAULT)",
        "SELECT 1 ORDER BY 1, DEFAULT",
        "TABLE t",
        "VALUES (DEFAULT)",
        "WITH w SELECT DEFAULT",
    ],
)
def test_other_items_stay(query):
    assert with_null_items(query) == query
