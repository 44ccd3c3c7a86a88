"""Properties in SQL's spelling, and small changes of texts."""

from __future__ import annotations

import pytest

pytest.importorskip("sqlglot")

from pyhudi.config.enums import TableType
from pyhudi.errors import ConfigError, InvalidOptionError
from pyhudi.sql.rewriting.alias_rewriting import source_alias, source_name, unqualified, with_short_qualifiers
from pyhudi.sql.table_properties import (
    MARK,
    refuse_misspelled_properties,
    registered_properties,
    shown_properties,
    table_options,
    with_columns,
)


def test_properties_become_options():
    given = {
        "primaryKey": "a, b",
        "TYPE": "MOR",
        "preCombineField": "ts",
        "hoodie.keep.max.commits": "7",
        "comment": "x",
        MARK + "location": "/p",
    }
    assert table_options(given) == {
        "hoodie.datasource.write.recordkey.field": "a,b",
        "hoodie.datasource.write.table.type": "MERGE_ON_READ",
        "hoodie.datasource.write.precombine.field": "ts",
        "hoodie.keep.max.commits": "7",
    }
    with pytest.raises(InvalidOptionError, match="cow, mor"):
        table_options({"type": "row"})


@pytest.mark.parametrize(
    ("key", "value", "own"),
    [
        ("primaryKey", "ID, b", "id,b"),
        ("hoodie.datasource.write.recordkey.field", "ID", "id"),
        ("hoodie.table.recordkey.fields", "ID", "id"),
        ("Hoodie.Datasource.Write.RecordKey.Field", "ID", "id"),
        ("hoodie.table.precombine.field", "TS", "ts"),
        ("hoodie.table.ordering.fields", "TS,N", "ts,n"),
        ("hoodie.datasource.write.partitionpath.field", "TS:timestamp, C:simple", "ts:timestamp,c:simple"),
        ("hoodie.table.partition.fields", "C", "c"),
        ("hoodie.table.name", "T", "T"),
    ],
)
def test_columns_of_properties_are_spelled_as_the_tables(key, value, own):
    assert with_columns({key: value}, str.lower) == {key: own}


def test_keys_of_options_may_have_another_case():
    assert table_options({"Hoodie.Keep.Max.Commits": "7"}) == {"Hoodie.Keep.Max.Commits": "7"}


@pytest.mark.parametrize(
    ("key", "meant"),
    [
        ("primaryKeys", "primaryKey"),
        ("primary_key", "primaryKey"),
        ("recordKey", "primaryKey"),
        ("precombinfield", "preCombineField"),
        ("preCombine", "preCombineField"),
        ("tableType", "type"),
        ("tpye", "type"),
        ("hoodie.datasource.write.recordkey.fields", "hoodie.datasource.write.recordkey.field"),
    ],
)
def test_misspelt_properties_are_refused(key, meant):
    with pytest.raises(ConfigError, match=f"{key}.*did you mean '{meant}'"):
        refuse_misspelled_properties({"primaryKey": "id", key: "x"})


def test_other_properties_may_have_any_name():
    names = (
        "PRIMARYKEY",
        "precombinefield",
        "TYPE",
        "comment",
        "owner",
        "key",
        "types",
        "delta.minReaderVersion",
        "tag",
        "branch",
    )
    refuse_misspelled_properties(dict.fromkeys(names, "x"))


def test_options_of_other_formats_are_no_properties():
    """They are those of a write that creates a table, too."""
    with pytest.raises(ConfigError, match="insert_overwrite"):
        refuse_misspelled_properties({"partitionOverwriteMode": "dynamic"})


def test_properties_are_shown():
    given = {"primaryKey": "id", MARK + "location": "/p"}
    shown = shown_properties(given, TableType.MERGE_ON_READ, "/p")
    assert shown == {"path": "/p", "primaryKey": "id", "type": "mor"}
    assert registered_properties(["a", "b"], ["ts"], TableType.COPY_ON_WRITE) == {
        "type": "cow",
        "primaryKey": "a,b",
        "preCombineField": "ts",
    }


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        ("t.a = 1 and b = 't.a' or T.c is null", "a = 1 and b = 't.a' or c is null"),
        ("s.t.a = `t`.b", "s.t.a = b"),
        ("a in (select t.a from u)", None),
        ("exists(items, t -> t.a > 1)", None),
        ("'select' = t.a", "'select' = a"),
        ("exists(from u |> where u.a = t.a)", None),
        ("a in (table u |> where t.a = 1)", None),
        ("exists(with v as (table u) from v join w on v.a = t.a)", None),
        (
            "extract(year from t.a) = 1 and t.`from` is distinct from t.b",
            "extract(year from a) = 1 and `from` is distinct from b",
        ),
    ],
)
def test_the_tables_name_is_taken_off(text, plain):
    assert unqualified(text, "t") == plain


@pytest.mark.parametrize(
    ("text", "short"),
    [
        ("db.t.a = 1 AND cat.DB.`t`.b IN (SELECT c FROM db.t)", "t.a = 1 AND `t`.b IN (SELECT c FROM db.t)"),
        ("x.db.t.a = 'db.t.a' OR t.a = db.u.a", "x.db.t.a = 'db.t.a' OR t.a = db.u.a"),
    ],
)
def test_full_names_before_columns_are_shortened(text, short):
    assert with_short_qualifiers(text, ("cat", "db", "t")) == short


def test_an_alias_may_take_the_place_of_a_full_name():
    text = "db.t.a = 1 AND cat.db.`t`.b = t.c"
    assert with_short_qualifiers(text, ("cat", "db", "t"), "x") == "x.a = 1 AND x.b = t.c"


@pytest.mark.parametrize("inner", ["other.t", "other.x AS t", "other.x T", "(SELECT 1) t"])
def test_full_names_stay_where_a_subquery_has_the_last_name(inner):
    text = f"EXISTS (SELECT 1 FROM {inner} WHERE other.t.id = db.t.id)"
    assert with_short_qualifiers(text, ("cat", "db", "t")) == text


@pytest.mark.parametrize(
    ("source", "alias", "name"),
    [
        ("s", "s", ("s",)),
        ("db.s", "s", ("db", "s")),
        ("(select 1) as x", "x", None),
        ("db.s y", "y", None),
        ("(values (1)) as v(id)", None, None),
        ("db.s timestamp as of '2024-01-01'", "s", ("db", "s")),
        ("s version as of 3 v", "v", None),
        ("s for timestamp as of date_sub(current_date(), 1)", "s", ("s",)),
    ],
)
def test_the_alias_and_the_name_of_a_source(source, alias, name):
    assert source_alias(source) == alias
    assert source_name(source) == name
