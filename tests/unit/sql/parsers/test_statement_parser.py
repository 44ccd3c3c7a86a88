"""Statements of SQL as they are parsed."""

from __future__ import annotations

import time

import pytest

pytest.importorskip("sqlglot")

from pyhudi.errors import SqlSyntaxError
from pyhudi.sql.parsers.statement_parser import parse, table_of
from pyhudi.sql.statements import (
    AddColumn,
    AddColumns,
    AlterColumns,
    CacheTable,
    Call,
    ChangeColumn,
    ChangeView,
    ClauseKind,
    ClearCache,
    CreateFunction,
    CreateIndex,
    CreateTable,
    CreateView,
    Delete,
    Describe,
    DropColumn,
    DropIndex,
    DropPartitions,
    DropTable,
    ExplainChange,
    Insert,
    Merge,
    MergeClause,
    MultiInsert,
    RefreshIndex,
    RenameColumn,
    RenameTable,
    RepairPartitions,
    SelectStatement,
    SetProperties,
    Show,
    ShowTableExtended,
    ShowViews,
    Truncate,
    UncacheTable,
    UnsupportedAlter,
    UnsupportedStatement,
    Update,
)

STATEMENTS = {
    "create table if not exists `my db`.t (id int comment 'a, (b', m map<string,array<int>>) using hudi "
    "tblproperties (type = 'cow', primaryKey='id', 'hoodie.x.y' = '1', hoodie.a.b = true, n = -1) "
    "partitioned by (dt) location '/tmp/x' comment 'c'": CreateTable(
        ("my db", "t"),
        "id int comment 'a, (b', m map<string,array<int>>",
        partitioned_by=("dt",),
        properties={"type": "cow", "primaryKey": "id", "hoodie.x.y": "1", "hoodie.a.b": "true", "n": "-1"},
        location="/tmp/x",
        comment="c",
        if_not_exists=True,
    ),
    "CREATE TABLE t USING HUDI OPTIONS (primaryKey 'id', 'PATH' '/x') PARTITIONED BY (dt string, h int)": CreateTable(
        ("t",), "dt string, h int", partitioned_by=("dt", "h"), properties={"primaryKey": "id"}, location="/x"
    ),
    "REPLACE TABLE t USING HUDI TBLPROPERTIES (path = '/x') PARTITIONED BY (dt) AS\nSELECT 1 AS dt": CreateTable(
        ("t",), query="SELECT 1 AS dt", partitioned_by=("dt",), properties={"path": "/x"}, replace=True
    ),
    "CREATE TABLE t LIKE u": CreateTable(("t",), like=("u",), like_any=True),
    "DROP VIEW IF EXISTS a.v": ChangeView(("a", "v"), "DROP"),
    "ALTER VIEW v RENAME TO w": ChangeView(("v",), "ALTER", ("w",)),
    "ALTER VIEW v AS SELECT 1": ChangeView(("v",), "ALTER", query="SELECT 1", head="ALTER VIEW v AS"),
    "alter view v select 1": ChangeView(("v",), "ALTER", query="select 1", head="alter view v"),
    "alter view v set tblproperties (a = 1)": ChangeView(("v",), "ALTER", clauses="set tblproperties (a = 1)"),
    "alter view v with schema evolution": ChangeView(("v",), "ALTER", clauses="with schema evolution"),
    "create temp view v using parquet options (a 1)": CreateView(
        ("v",), "create temp view v using parquet options (a 1)", None, temporary=True
    ),
    "create temporary table v (a int) using parquet": CreateView(
        ("v",), "create temporary table v (a int) using parquet", None, temporary=True
    ),
    "CREATE OR REPLACE VIEW v AS SELECT 1": CreateView(("v",), "CREATE OR REPLACE VIEW v AS", "SELECT 1", False, True),
    "create table p using parquet as select * from h": SelectStatement(
        "select * from h", "create table p using parquet as"
    ),
    "create table p (a int) using parquet": None,
    "create table p using parquet clustered by (a) into 4 buckets as select * from h": SelectStatement(
        "select * from h", "create table p using parquet clustered by (a) into 4 buckets as"
    ),
    "create table p (a int) using other partitioned by (1) tblproperties ('a' + 1)": None,
    "create table a like b using hudi": CreateTable(("a",), like=("b",)),
    "create or replace temp view v as select * from t": CreateView(
        ("v",), "create or replace temp view v as", "select * from t", temporary=True, replace=True
    ),
    "create view db.v (a, b comment 'as') as select 1": CreateView(
        ("db", "v"),
        "create view db.v (a, b comment 'as') as",
        "select 1",
        temporary=False,
        clauses="(a, b comment 'as')",
    ),
    "insert into t values (1, 'a')": Insert(("t",), "values (1, 'a')", "insert into t"),
    "insert overwrite table t partition (dt = '1', h) (id, name) select 1, 2": Insert(
        ("t",),
        "select 1, 2",
        "insert overwrite table t partition (dt = '1', h) (id, name)",
        overwrite=True,
        partition={"dt": "'1'", "h": None},
        columns=("id", "name"),
    ),
    "insert overwrite t partition (dt = '1') if not exists select 1": Insert(
        ("t",),
        "select 1",
        "insert overwrite t partition (dt = '1') if not exists",
        True,
        {"dt": "'1'"},
        if_not_exists=True,
    ),
    "insert into t with (k = 5) (a) values (1)": Insert(
        ("t",), "values (1)", "insert into t with (k = 5) (a)", columns=("a",), options={"k": "5"}
    ),
    "insert into t (select 1)": Insert(("t",), "(select 1)", "insert into t"),
    "insert into db.t replace where a is not distinct from b and f(c) in (select 1) (select 1)": Insert(
        ("db", "t"),
        "(select 1)",
        "insert into db.t replace where a is not distinct from b and f(c) in (select 1)",
        replace_where="a is not distinct from b and f(c) in (select 1)",
    ),
    "insert into t by name replace where m = map('a', 1) or not (a = 'x') with s as (select 1) from s": Insert(
        ("t",),
        "with s as (select 1) from s",
        "insert into t by name replace where m = map('a', 1) or not (a = 'x')",
        by_name=True,
        replace_where="m = map('a', 1) or not (a = 'x')",
    ),
    "insert into t replace where a = case when b then 1 else 2 end values (default)": Insert(
        ("t",),
        "values (default)",
        "insert into t replace where a = case when b then 1 else 2 end",
        replace_where="a = case when b then 1 else 2 end",
    ),
    "create or replace temporary function if not exists f (x int default 1) returns int comment 'c' return x + 1": (
        CreateFunction(("f",), "SELECT x + 1")
    ),
    "create function db.f() returns table (a int) return select a from t": CreateFunction(
        ("db", "f"), "select a from t"
    ),
    "create function f as 'org.x.F' using jar '/x.jar'": None,
    "from s insert into a.t (x) select 1 where b insert overwrite u select 2": MultiInsert(
        (("a", "t"), ("u",)), "from s", ("insert into a.t (x) select 1 where b", "insert overwrite u select 2")
    ),
    "with a (n) as (select 1), b as (table a) insert into t (c) table b": Insert(
        ("t",), "WITH a (n) as (select 1), b as (table a) table b", "insert into t (c)", columns=("c",)
    ),
    "with a (select 1) insert into t with b as (table a) table b": Insert(
        ("t",), "WITH a (select 1) (with b as (table a) table b)", "insert into t"
    ),
    "with a as (select 1) from a insert into t select *": Insert(
        ("t",), "with a as (select 1) from a select *", "insert into t"
    ),
    "with a (select 1) from a insert into t select *": Insert(
        ("t",), "with a (select 1) from a select *", "insert into t"
    ),
    "create table p using parquet table t": SelectStatement("table t", "create table p using parquet"),
    "update db.t as x set a = case when b = 1 then 2 else 3 end, s.b = concat('where', c) where d in (select e from f)": (  # noqa: E501
        Update(
            ("db", "t"),
            {"a": "case when b = 1 then 2 else 3 end", "s.b": "concat('where', c)"},
            "x",
            "d in (select e from f)",
        )
    ),
    "delete from t": Delete(("t",)),
    "delete from t where a = ';'": Delete(("t",), None, "a = ';'"),
    "alter table t set tblproperties ('a'='1', hoodie.b = 2)": SetProperties(("t",), {"a": "1", "hoodie.b": "2"}),
    "alter table t unset tblproperties if exists (a, 'b.c')": SetProperties(("t",), remove=("a", "b.c")),
    "alter table t unset tblproperties (a)": SetProperties(("t",), remove=("a",), if_exists=False),
    "alter table t rename to db.u": RenameTable(("t",), ("db", "u")),
    "alter table t add columns (a int, b struct<x:int>)": AddColumns(("t",), "a int, b struct<x:int>"),
    "alter table t add column a int": AddColumns(("t",), "a int"),
    "alter table t drop if exists partition (a='1', b=2), partition (a='3')": DropPartitions(
        ("t",), ({"a": "'1'", "b": "2"}, {"a": "'3'"}), if_exists=True
    ),
    "alter table t add columns (a int first, s.b struct<x:int, y:array<int>> comment 'c' after x)": AlterColumns(
        ("t",),
        (
            AddColumn(("a",), "int", first=True),
            AddColumn(("s", "b"), "struct<x:int, y:array<int>>", "c", after="x"),
        ),
    ),
    "alter table t drop columns (a, s.b)": AlterColumns(("t",), (DropColumn(("a",)), DropColumn(("s", "b")))),
    "alter table t drop column if exists a": AlterColumns(("t",), (DropColumn(("a",), if_exists=True),)),
    "alter table t rename column s.a to b": AlterColumns(("t",), (RenameColumn(("s", "a"), "b"),)),
    "alter table t alter column a type decimal(10, 2)": AlterColumns(
        ("t",), (ChangeColumn(("a",), kind="decimal(10, 2)"),)
    ),
    "alter table t alter a comment 'x'": AlterColumns(("t",), (ChangeColumn(("a",), comment="x"),)),
    "alter table t alter column a comment 'x', s.b type bigint": AlterColumns(
        ("t",), (ChangeColumn(("a",), comment="x"), ChangeColumn(("s", "b"), kind="bigint"))
    ),
    "comment on column db.t.a is 'x'": AlterColumns(("db", "t"), (ChangeColumn(("a",), comment="x"),)),
    "comment on column t.a is null": AlterColumns(("t",), (ChangeColumn(("a",), comment=""),)),
    "alter table t change column a after b": AlterColumns(("t",), (ChangeColumn(("a",), after="b"),)),
    "alter table t alter column a drop not null": AlterColumns(("t",), (ChangeColumn(("a",), nullable=True),)),
    "alter table t change column a c bigint comment 'x' first": AlterColumns(
        ("t",),
        (ChangeColumn(("a",), "bigint", "x"), ChangeColumn(("a",), first=True), RenameColumn(("a",), "c")),
    ),
    "alter table t replace columns (a int)": UnsupportedAlter(("t",), "replace columns ("),
    "alter table t add partition (a=1)": UnsupportedStatement(
        ("t",),
        "ADD PARTITION",
        "a partition comes with its first row: INSERT",
        "alter table t add partition (a=1)",
    ),
    "truncate table t partition (a=1)": Truncate(("t",), {"a": "1"}),
    "drop table if exists t purge": DropTable(("t",), if_exists=True, purge=True),
    "show indexes from table a.t": Show(("a", "t"), "INDEXES"),
    "show indexes in table": Show(("table",), "INDEXES"),
    "call show_commits(table => 't', limit => 10L)": Call("show_commits", (), {"table": "t", "limit": 10}),
    "call system.expire_snapshots('t', timestamp '2024-01-01')": Call("expire_snapshots"),
    "show partitions t": Show(("t",), "PARTITIONS"),
    "insert overwrite local directory '/x' using csv options (a 'b') select 1": SelectStatement(
        "select 1", "insert overwrite local directory '/x' using csv options (a 'b')"
    ),
    "cache lazy table a.t": CacheTable(("a", "t"), lazy=True),
    "cache table c options (storageLevel 'NONE') as select 1": CacheTable(
        ("c",), "select 1", options={"storageLevel": "NONE"}
    ),
    "cache table c select 1": CacheTable(("c",), "select 1"),
    "uncache table if exists t": UncacheTable(("t",)),
    "clear cache": ClearCache(),
    "msck repair table t add partitions": RepairPartitions(("t",)),
    "from u insert into t select a": Insert(("t",), "from u select a", "insert into t"),
    "from u select insert": SelectStatement("from u select insert"),
    "explain create table p using parquet as select 1": SelectStatement(
        "select 1", "explain create table p using parquet as"
    ),
    "explain drop table t": None,
    "explain show tables": None,
    "explain cache table t": None,
    "explain merge into": SelectStatement("merge into", "explain"),
    "show tblproperties t ('a.b')": Show(("t",), "TBLPROPERTIES", "a.b"),
    "show create table t": Show(("t",), "CREATE TABLE"),
    "show views in db like 'v*'": ShowViews(),
    "show table extended in c.db like '*'": ShowTableExtended(("c", "db"), "*"),
    "show table extended like '*'": ShowTableExtended(pattern="*"),
    "show table extended like 't' partition (p = 1, q = 'a')": ShowTableExtended(
        pattern="t", partition={"p": "1", "q": "'a'"}
    ),
    "show indexes in t": Show(("t",), "INDEXES"),
    "show tables": None,
    "desc formatted t": Describe(("t",), extended=True),
    "desc extended t as json": Describe(("t",), extended=True, as_json=True),
    "desc t as json": None,
    "desc extended t partition (p = 'a')": Describe(("t",), extended=True, partition={"p": "'a'"}),
    "describe table t col": Describe(("t",), column="col"),
    "describe database d": None,
    "create index if not exists i on t using column_stats(ts) options(expr='from_unixtime', format='yyyy')": CreateIndex(  # noqa: E501
        "i", ("t",), ("ts",), "column_stats", {"expr": "from_unixtime", "format": "yyyy"}, if_not_exists=True
    ),
    "create index i on table t using bloom_filters (a options (expr = 'lower'), s.b) options (x = '1')": CreateIndex(
        "i", ("t",), ("a", "s.b"), "bloom_filters", {"expr": "lower", "x": "1"}
    ),
    "alter table t set serdeproperties ('a' = 'b')": SetProperties(("t",), changed={"a": "b"}),
    "drop index if exists i on table t": DropIndex("i", ("t",), if_exists=True),
    "refresh index i on t": RefreshIndex("i", ("t",)),
    "call show_commits('db.t', limit => 3);": Call("show_commits", ("db.t",), {"limit": 3}),
    "call help;": Call("help"),
    "CALL system.x(a => true, b => null, c => -1.5)": Call("x", (), {"a": True, "b": None, "c": -1.5}),
    "CALL spark_catalog.system.x(1)": Call("x", (1,)),
    "CALL iceberg.system.x(older_than => TIMESTAMP '2024-01-01')": None,
    "explain extended select 1": SelectStatement("select 1", "explain extended"),
    "set var (a, b) = (select 1, 2)": SelectStatement("(select 1, 2)", "set var (a, b) ="),
    "set variable x = 1 + (select max(id) from t)": SelectStatement("1 + (select max(id) from t)", "set variable x ="),
    "declare or replace x int default (select 1)": SelectStatement("(select 1)", "declare or replace x int default"),
    "declare variable x int": None,
    "comment on table db.t is 'it''s'": SetProperties(("db", "t"), changed={"comment": "its"}),
    "comment on table t is null": SetProperties(("t",), remove=("comment",)),
    "comment on database d is 'x'": None,
    "alter table t recover partitions": RepairPartitions(("t",)),
    "set hoodie.x = (select 1)": None,
    "set a.b=1": None,
    "use db": None,
    "'unclosed": None,
}


@pytest.mark.parametrize("text", STATEMENTS)
def test_statements(text):
    assert parse(text) == STATEMENTS[text]


def test_merge_with_every_clause():
    found = parse(
        """merge into db.t as a using (select * from s where x = 'on') b on a.id = b.id
        when matched and b.flag = 'then' then delete
        when matched then update set a.x = b.x, y = case when b.y is null then a.y else b.y end
        when not matched and b.z > 0 then insert (id, x) values (b.id, coalesce(b.x, 1))
        when not matched by target then insert *
        when not matched by source then update set x = 0"""
    )
    assert found == Merge(
        ("db", "t"),
        "a",
        "(select * from s where x = 'on') b",
        "a.id = b.id",
        (
            MergeClause(ClauseKind.MATCHED, "DELETE", "b.flag = 'then'"),
            MergeClause(
                ClauseKind.MATCHED,
                "UPDATE",
                None,
                {"a.x": "b.x", "y": "case when b.y is null then a.y else b.y end"},
            ),
            MergeClause(ClauseKind.NOT_MATCHED, "INSERT", "b.z > 0", {"id": "b.id", "x": "coalesce(b.x, 1)"}),
            MergeClause(ClauseKind.NOT_MATCHED, "INSERT"),
            MergeClause(ClauseKind.NOT_MATCHED_BY_SOURCE, "UPDATE", None, {"x": "0"}),
        ),
    )


@pytest.mark.parametrize(
    "text",
    [
        "merge into t using s on a = b",
        "merge into t using s on a = b when matched by source then delete",
        "merge into t using s on a = b when not matched then insert (a, b) values (1)",
        "merge into t using s on a = b when not matched then insert (a, b, b) values (1, 2, 3)",
        "update t set a = 1, a = 2",
        "update t set a =",
        "call show_commits(a => 1, 2)",
        "call show_commits(a => 1, a => 2)",
        "call show_commits(x)",
        "create index i on t (a",
        "drop index i",
        "create table t (a int) using hudi clustered by (a) into 2 buckets",
        "create table t (a int) clustered by (a) into 4 buckets using hudi",
        "create table t (a int) skewed by (a) on (1) using hudi as select 1 as a",
        "create table t (a int) using hudi as select 1 as a",
        "create table t using hudi options (path '/x') location '/y'",
    ],
)
def test_refused_with_the_statement_in_the_message(text):
    with pytest.raises(SqlSyntaxError):
        parse(text)


@pytest.mark.parametrize(
    "text",
    [
        "alter table db.t add column x int default 3",
        "alter table db.t alter column a type int, b set default 3",
        "alter table db.t alter column a comment 'x', alter column b comment 'y'",
        "insert with schema evolution into db.t select 1 as a",
        "merge into db.t using s on a = b when matched then do nothing",
        "merge with schema evolution into db.t using s on a = b when matched then update set *",
        "with s as (select 1) insert into table db.t partition (a > 1) select 1",
        "delete from db.t using s",
        "insert into db.t replace on t.a = s.a select 1",
        "insert into db.t replace where a = 1",
        "drop table if exists db.t cascade",
    ],
)
def test_the_table_of_a_statement_that_is_not_supported(text):
    with pytest.raises(SqlSyntaxError):
        parse(text)
    assert table_of(text) == ("db", "t")


@pytest.mark.parametrize(
    ("text", "cure"),
    [
        ("update t set m['k'] = 3", r"map_concat\(map_filter\(m, "),
        ("merge into t using s on a = b when matched then update set t.a[0] = 1", r"transform\(t\.a, "),
        ("create table t (a int) using hudi clustered by (a) into 2 buckets", "hoodie.bucket.index.num.buckets"),
        ("create table t (a int) cluster by (a) using hudi", "hoodie.clustering.inline=true"),
        ("alter table t drop partition (dt >= '2020')", "DELETE FROM … WHERE dt >= …"),
        ("alter table t drop partition (city = 'a', dt <> '2020')", "DELETE FROM … WHERE dt <> …"),
    ],
)
def test_the_errors_of_what_spark_refuses_say_what_to_write(text, cure):
    with pytest.raises(SqlSyntaxError, match=cure):
        parse(text)


def test_statements_of_delta_lake():
    for text in (
        "OPTIMIZE a.t WHERE p = 1",
        "vacuum a.t retain 5 hours",
        "DESC HISTORY a.t LIMIT 1",
        "REORG TABLE a.t",
    ):
        statement = parse(text)
        assert isinstance(statement, UnsupportedStatement)
        assert statement.name == ("a", "t")
    assert parse("VACUUM '/tables/t'") is None
    assert parse("DESCRIBE history") == Describe(("history",))


@pytest.mark.parametrize("text", ["call p(", "create index on t", "alter table 'x'"])
def test_statements_without_a_table_that_others_could_have(text):
    assert table_of(text) is None


def test_a_statement_costs_little():
    text = "select a, b from t where c = 'x' and d between 1 and 2 group by a, b"
    parse(text)
    start = time.process_time()
    for _ in range(20):
        parse(text)
    assert (time.process_time() - start) / 20 < 0.005


def test_the_row_format_of_a_directory_is_no_query():
    head = "INSERT OVERWRITE LOCAL DIRECTORY '/x' ROW FORMAT DELIMITED MAP KEYS TERMINATED BY ':' "
    assert parse(f"{head}SELECT * FROM h") == SelectStatement("SELECT * FROM h", head.rstrip())


@pytest.mark.parametrize(
    "head",
    [
        "INSERT OVERWRITE DIRECTORY '/x' USING parquet",
        "INSERT OVERWRITE DIRECTORY USING parquet OPTIONS (path '/x', select 'y')",
        "INSERT OVERWRITE DIRECTORY USING parquet OPTIONS ('path' '/x')",
        "INSERT OVERWRITE LOCAL DIRECTORY '/x' ROW FORMAT DELIMITED MAP KEYS TERMINATED BY ':'",
    ],
)
@pytest.mark.parametrize(
    "query", ["(SELECT * FROM h)", "((SELECT * FROM h) UNION ALL (SELECT * FROM g))", "(WITH c AS (SELECT 1) FROM c)"]
)
def test_a_query_in_parentheses_after_a_directory(head, query):
    assert parse(f"{head} {query}") == SelectStatement(query, head)


def test_default_is_null():
    assert parse("UPDATE t SET a = DEFAULT, b = 'DEFAULT'").assigned == {"a": "NULL", "b": "'DEFAULT'"}
    merge = parse("MERGE INTO t USING u ON t.a = u.a WHEN NOT MATCHED THEN INSERT (a, b) VALUES (u.a, DEFAULT)")
    assert merge.clauses[0].values == {"a": "u.a", "b": "NULL"}


def test_columns_that_are_called_like_the_end_of_an_expression():
    over = "CASE WHEN end > 1 THEN t.end WHEN t.case IS NULL THEN end ELSE CASE WHEN any THEN any ELSE t.or END END"
    assert parse(f"UPDATE t SET a = {over}, end = t.case + 1 WHERE end").assigned == {"a": over, "end": "t.case + 1"}
    merge = parse(
        "MERGE INTO t USING s ON CASE WHEN t.end = s.end THEN true END "
        f"WHEN MATCHED AND {over} THEN UPDATE SET a = {over} WHEN NOT MATCHED THEN INSERT *"
    )
    assert merge.on == "CASE WHEN t.end = s.end THEN true END"
    assert [(clause.condition, clause.values) for clause in merge.clauses] == [(over, {"a": over}), (None, None)]


def test_columns_that_are_called_like_a_clause():
    update = parse("UPDATE t SET where = t.where + 1, a = t.set WHERE t.where = 2")
    assert (update.assigned, update.where) == ({"where": "t.where + 1", "a": "t.set"}, "t.where = 2")
    merge = parse(
        "MERGE INTO t USING s ON t.on = s.on AND t.when = 1 WHEN MATCHED AND s.then = 2 THEN UPDATE SET a = s.when"
    )
    assert (merge.source, merge.on) == ("s", "t.on = s.on AND t.when = 1")
    assert [(clause.condition, clause.values) for clause in merge.clauses] == [("s.then = 2", {"a": "s.when"})]
    for names in (("values", "id"), ("from", "select"), ("table",)):
        assert parse(f"INSERT INTO t ({', '.join(names)}) SELECT * FROM u").columns == names
    for query in ("(TABLE u)", "(VALUES (1), (2))", "((FROM u))"):
        assert parse(f"INSERT INTO t {query}").columns == ()


@pytest.mark.parametrize("head", ["EXPLAIN", "explain formatted"])
@pytest.mark.parametrize(
    "text",
    [
        "DELETE FROM d.t WHERE a = 1",
        "UPDATE d.t SET a = 1",
        "WITH c AS (SELECT 1) INSERT INTO d.t SELECT * FROM c",
        "MERGE INTO d.t USING s ON t.a = s.a WHEN MATCHED THEN DELETE",
    ],
)
def test_explained_changes(head, text):
    assert parse(f"{head} {text}") == ExplainChange(("d", "t"), parse(text), head, text)


def test_a_partition_column_that_is_given_twice():
    with pytest.raises(SqlSyntaxError, match="'p' is given twice"):
        parse("INSERT INTO t PARTITION (p = 1, p = 2) VALUES (1)")


def test_views_of_paths():
    view = parse("CREATE OR REPLACE TEMPORARY VIEW v USING hudi OPTIONS (path '/a/b')")
    assert (view.head, view.query) == ("CREATE OR REPLACE TEMPORARY VIEW v AS", "SELECT * FROM hudi.`/a/b`")
    assert parse("CREATE TEMPORARY VIEW v USING csv OPTIONS (path '/a')").query is None
    with pytest.raises(SqlSyntaxError, match="has the option path, and no others"):
        parse("CREATE TEMPORARY VIEW v USING hudi OPTIONS (path '/a', 'hoodie.datasource.query.type' 'incremental')")


def test_functions_do_not_partition_hudi_tables():
    with pytest.raises(SqlSyntaxError, match=r"by columns, not by functions such as days\(…\)"):
        parse("CREATE TABLE t (id INT, ts TIMESTAMP) USING hudi PARTITIONED BY (days(ts))")
    assert parse("CREATE TABLE t (id INT, ts TIMESTAMP) USING iceberg PARTITIONED BY (days(ts))") is None


@pytest.mark.parametrize("keys", ["", "()", "(", "(a", "(a,)", "(a = 1)"])
def test_properties_to_remove_are_names(keys):
    with pytest.raises(SqlSyntaxError, match="expected"):
        parse(f"ALTER TABLE t UNSET TBLPROPERTIES {keys}")


@pytest.mark.parametrize(
    "text",
    [
        "ALTER TABLE t SET TBLPROPERTIES (a = 1), (b = 2)",
        "ALTER TABLE t UNSET TBLPROPERTIES (a) b",
        "ALTER TABLE t RENAME TO b garbage",
        "SHOW PARTITIONS t WHERE p = 1",
        "SHOW CREATE TABLE t garbage",
        "SHOW TBLPROPERTIES t ('a') garbage",
        "REFRESH TABLE t garbage",
    ],
)
def test_nothing_is_left_over(text):
    with pytest.raises(SqlSyntaxError, match="expected the end of the statement"):
        parse(text)


def test_external_tables_have_a_location():
    created = "TABLE t (id INT) USING hudi LOCATION '/x'"
    assert parse(f"CREATE EXTERNAL {created}") == parse(f"CREATE {created}")
    assert parse("CREATE EXTERNAL TABLE t (id INT) STORED AS PARQUET LOCATION '/x'") is None
    with pytest.raises(SqlSyntaxError, match="an external table requires LOCATION"):
        parse("CREATE EXTERNAL TABLE t (id INT) USING hudi")


def test_definitions_before_a_merge():
    merge = parse(
        "WITH s(id) AS (SELECT 1), u AS (FROM s) MERGE INTO t USING S x ON t.id = x.id WHEN MATCHED THEN DELETE"
    )
    assert merge.source == "(WITH s(id) AS (SELECT 1), u AS (FROM s) SELECT * FROM `S`) x"
    when = "ON t.id = s.id WHEN MATCHED AND t.id IN (SELECT id FROM s) THEN UPDATE SET n = (WITH u AS (FROM v) FROM u)"
    merge = parse(f"WITH RECURSIVE s AS (FROM v) MERGE INTO t USING s {when}")
    assert merge.source == "(WITH RECURSIVE s AS (FROM v) SELECT * FROM `s`) `s`"
    assert merge.clauses[0].condition == "t.id IN (WITH RECURSIVE s AS (FROM v) SELECT id FROM s)"
    assert merge.clauses[0].values == {"n": "(WITH RECURSIVE s AS (FROM v), u AS (FROM v) FROM u)"}
    assert parse(f"WITH s AS (FROM v) MERGE INTO t USING d.s {when}").source == "d.s"
    merge = parse(f"WITH v AS (SELECT 1) MERGE INTO t USING (SELECT * FROM (SELECT * FROM v)) s {when}")
    assert merge.source == "(WITH v AS (SELECT 1) SELECT * FROM (SELECT * FROM v)) s"


def test_definitions_before_update_and_delete():
    delete = parse("WITH s AS (SELECT 1 AS id) DELETE FROM t WHERE (id > 0) AND id IN ((SELECT id FROM s)) AND n = ')'")
    assert delete.where == "(id > 0) AND id IN ((WITH s AS (SELECT 1 AS id) SELECT id FROM s)) AND n = ')'"
    update = parse("WITH s AS (SELECT 1 AS id) UPDATE t SET n = (SELECT max(id) FROM s), m = f((1)) WHERE id = 1")
    assert update.assigned == {"n": "(WITH s AS (SELECT 1 AS id) SELECT max(id) FROM s)", "m": "f((1))"}
    assert update.where == "id = 1"


@pytest.mark.parametrize(
    "change", ["DELETE FROM T", "UPDATE t SET a = 1", "MERGE INTO t USING s ON true WHEN MATCHED THEN DELETE"]
)
def test_definitions_are_not_changed(change):
    with pytest.raises(SqlSyntaxError, match=r"(?i)WITH defines 't', so that it is no table to"):
        parse(f"WITH s AS (FROM v), t AS (SELECT 1 AS id) {change}")
    assert parse(f"WITH t AS (SELECT 1 AS id) {change.lower().replace(' t', ' d.t', 1)}").name == ("d", "t")
    assert parse("WITH t AS (SELECT 1 AS id) INSERT INTO t SELECT * FROM t").name == ("t",)  # as Spark does
