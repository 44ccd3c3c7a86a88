"""Indexes by name: what is asked for, what a table can have, and what is done without an engine."""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from pyhudi.api.hudi_table import HudiTable
from pyhudi.config import Options, options
from pyhudi.config.property_keys import METADATA_PARTITIONS, TYPE
from pyhudi.errors import ConfigError, HudiError, InvalidOptionError, OptionWithoutEffectWarning, UnsupportedTableError
from pyhudi.read.pruning.statistics.filter_evaluation import StatisticsEvaluator
from pyhudi.services.indexing.index_of_write import check_index_of_write
from pyhudi.services.indexing.index_requests import IndexRequest
from pyhudi.storage import open_storage
from pyhudi.table.config.table_config import TableConfig
from tests.golden.expected import unpack
from tests.tables import HandMadeTable

SECONDARY = "secondary_index_idx_name"
DEFINITIONS = ".hoodie/.index_defs/index.json"


@pytest.mark.parametrize(
    ("name", "columns", "using", "more", "partition"),
    [
        ("record_index", (), None, {}, "record_index"),
        (None, (), "column_stats", {}, "column_stats"),
        ("bloom_filters", (), "BLOOM_FILTERS", {}, "bloom_filters"),
        ("idx_a", ("a",), None, {}, "secondary_index_idx_a"),
        ("idx_a", ("a",), "secondary_index", {}, "secondary_index_idx_a"),
        ("idx_a", ("a",), "column_stats", {"expr": "year"}, "expr_index_idx_a"),
        ("idx_a", ("a",), "Bloom_Filters", {"expr": "LOWER", "fpp": "0.01"}, "expr_index_idx_a"),
        ("idx_a", ("a",), "column_stats", {"expr": "substring", "pos": "1", "len": "3"}, "expr_index_idx_a"),
        ("idx_a", ("a",), "column_stats", {"expr": "identity"}, ConfigError),
        ("idx_a", ("a",), "bloom_filters", {"expr": "identity"}, "expr_index_idx_a"),
        ("idx_a", ("a",), "column_stats", {"expr": "lower", "fpp": "0.01"}, ConfigError),
        ("idx_a", ("a",), "column_stats", {"expr": "substring", "pos": "1"}, ConfigError),
        ("idx_a", ("a",), "column_stats", {"expr": "substring", "pos": "one", "len": "3"}, ConfigError),
        ("idx_a", ("a",), "column_stats", {"expr": "split", "pattern": ","}, ConfigError),
        ("idx_a", ("a", "b"), "column_stats", {"expr": "year"}, ConfigError),
        ("idx_a", ("a",), None, {"expr": "year"}, ConfigError),
        (None, ("a",), "column_stats", {"expr": "year"}, ConfigError),
        ("idx_a", ("a",), "bloom_filters", {}, ConfigError),
        ("idx_a", ("a",), "lucene", {}, ConfigError),
        ("idx_a", ("a", "b"), None, {}, ConfigError),
        ("idx_a", ("a",), None, {"colour": "red"}, ConfigError),
        ("idx/a", ("a",), None, {}, ConfigError),
        ("idx_a", (), "record_index", {}, ConfigError),
        (None, ("a",), None, {}, ConfigError),
    ],
)
def test_what_is_asked_for(
    name: str | None, columns: tuple[str, ...], using: str | None, more: dict[str, str], partition: Any
) -> None:
    if isinstance(partition, str):
        assert IndexRequest.from_arguments(name, columns, using, more).partition == partition
        return
    with pytest.raises(partition) as error:
        IndexRequest.from_arguments(name, columns, using, more)
    assert isinstance(error.value, HudiError)


def test_a_name_that_is_mistyped() -> None:
    with pytest.raises(ConfigError, match=r"'colum_stats' is not an index of a whole table \(column_stats, "):
        IndexRequest.from_arguments("colum_stats", (), None, {})


@pytest.mark.parametrize(
    ("column", "name", "partition", "is_missing"),
    [
        ("name", "idx_name", SECONDARY, False),
        ("name", None, "secondary_index_name", False),
        ("qty", "idx_name", SECONDARY, False),
        ("qty", None, "secondary_index_qty", True),
        ("qty", "secondary_index_by_qty", "secondary_index_by_qty", True),
    ],
)
def test_the_index_of_a_write_is_built_unless_its_column_has_one(
    tmp_path: Path, column: str, name: str | None, partition: str, is_missing: bool
) -> None:
    storage = open_storage(unpack("v9_mor_meta_all", tmp_path).path)
    opts = Options.parse({"hoodie.metadata.index.secondary.column": column, "hoodie.index.name": name})
    request = IndexRequest.from_options(opts)
    assert request is not None
    assert request.partition == partition
    assert request.is_missing(storage, TableConfig.load(storage)) is is_missing


def test_the_index_of_a_write_is_checked_before_it(tmp_path: Path) -> None:
    table = HudiTable.for_path(unpack("v6_cow_cluster", tmp_path).path)
    storage = open_storage(table.path)
    column = {"hoodie.metadata.index.secondary.column": "größe"}
    with pytest.raises(InvalidOptionError, match=r"'größe'.*hoodie\.index\.name.*letters, digits and underscores"):
        check_index_of_write(storage, table.config, table.schema, Options.parse(column))
    named = Options.parse({**column, "hoodie.index.name": "size"})
    with pytest.warns(OptionWithoutEffectWarning, match=r"column=größe has no effect: tables of version 6.*upgrade"):
        check_index_of_write(storage, table.config, table.schema, named)
    request = IndexRequest.from_options(named)
    assert request is not None
    assert not request.is_missing(storage, table.config)


@pytest.mark.parametrize(
    ("column", "name", "message"),
    [
        ("nmae", None, r"column 'nmae' to index does not exist; the table has .*name"),
        ("price", None, r"column 'price' has type double; secondary indexes support texts"),
        ("qty", "idx_name", r"'idx_name' of option 'hoodie\.index\.name'.*column 'name'; or drop it"),
    ],
)
def test_the_index_of_a_write_that_is_refused(tmp_path: Path, column: str, name: str | None, message: str) -> None:
    table = HudiTable.for_path(unpack("v9_mor_meta_all", tmp_path).path)
    opts = Options.parse({"hoodie.metadata.index.secondary.column": column, "hoodie.index.name": name})
    with pytest.raises(HudiError, match=message):
        check_index_of_write(open_storage(table.path), table.config, table.schema, opts)


def test_the_index_of_a_write_to_a_column_that_files_lack(tmp_path: Path) -> None:
    """The columns of a write leave it out."""
    made = HandMadeTable(tmp_path / "t", properties={options.DROP_PARTITION_COLUMNS.key: "true"})
    config, storage = made.client().config, open_storage(str(made.root))
    opts = {"hoodie.metadata.index.secondary.column": "p", "hoodie.metadata.global.record.level.index.enable": "true"}
    with pytest.raises(UnsupportedTableError, match="column 'p' is not stored in files"):
        check_index_of_write(storage, config, pa.schema([("id", pa.string())]), Options.parse(opts))


def test_indexes_of_a_table_that_apache_hudi_made(tmp_path: Path) -> None:
    golden = Path(unpack("v9_mor_meta_all", tmp_path).path)
    table = HudiTable.for_path(str(golden))
    before = (golden / DEFINITIONS).read_bytes()
    services = table.services
    found = table.scan([("name", "in", ["Upd2", "Late3", "Upd4", None])], ["id"])
    assert sorted(found.to_arrow()["id"].to_pylist()) == ["k002", "k003"]
    assert f"{SECONDARY}: 2 record keys" in found.plan().skipped
    scan = table.scan([("name", "=", "Upd4")], ["id"], read_optimized=True)
    assert scan.to_arrow()["id"].to_pylist() == ["k004"], "the base file has it, the index does not"
    for when, files in (("< '2023-01-01'", 0), ("= '2024-07-04'", 1), ("> '2024-08-01'", 0)):
        plan = table.scan(filter=f"FROM_UNIXTIME(ts, 'yyyy-MM-dd') {when}", read_optimized=True).plan()
        assert plan.tasks.num_rows == files, plan
        assert "expr_index_idx_day: " in str(plan.skipped)
    plan = table.scan(filter="from_unixtime(ts, 'yyyy') = '1999' or qty = 3 and year(ts) = 1").plan()
    assert plan.partitions == ["a", "b"], "no index is of these expressions"
    assert services.drop_index("record_index", dry_run=True).partitions == ("record_index", SECONDARY)
    with pytest.raises(ConfigError, match="exists"):
        services.build_index("idx_name", "name", dry_run=True)
    assert services.drop_index("idx_name", dry_run=True).partitions == (SECONDARY,)
    assert (golden / DEFINITIONS).read_bytes() == before
    assert services.drop_index("idx_name").partitions == (SECONDARY,)
    left = json.loads(before)
    del left["indexDefinitions"][SECONDARY]
    assert (golden / DEFINITIONS).read_text() == _as_apache_hudi(before.decode(), SECONDARY)
    assert json.loads((golden / DEFINITIONS).read_text()) == left
    assert services.drop_index("idx_day").partitions == ("expr_index_idx_day",)
    assert services.drop_index("bloom_filters").partitions == ("bloom_filters",)
    assert services.drop_index("column_stats").partitions == ("column_stats", "partition_stats")
    assert services.build_index("bloom_filters").partitions == ("bloom_filters",), "nothing else that is missing"
    listed = {"hoodie.metadata.index.column.stats.column.list": "name,qtty"}
    with pytest.warns(OptionWithoutEffectWarning, match=r"column\.list: there is no column 'qtty'; did you mean 'qty'"):
        assert services.build_index("COLUMN_STATS", options=listed).partitions == ("column_stats",)
    assert services.drop_index("COLUMN_STATS").partitions == ("column_stats",)
    assert services.build_index("partition_stats").partitions == ("column_stats", "partition_stats")
    assert not table.validate_metadata().num_rows
    scan = table.scan([("qty", "=", 3)], ["id"])
    assert scan.to_arrow()["id"].to_pylist() == ["k001"]
    assert any(line.startswith("column_stats: ") and " out" in line for line in scan.plan().skipped)


def test_files_that_an_interrupted_drop_leaves(tmp_path: Path) -> None:
    """Apache Hudi would look rows up in them, by their definition, although no write maintains them."""
    golden = Path(unpack("v9_mor_meta_all", tmp_path).path)
    folder = golden / ".hoodie" / "metadata" / SECONDARY
    table = HudiTable.for_path(str(golden))
    named = ",".join(name for name in table.config.metadata_partitions if name != SECONDARY)
    table.config.updated(open_storage(str(golden)), set={METADATA_PARTITIONS: named})
    assert folder.exists()
    HudiTable.for_path(str(golden)).alter_schema().add_column("extra", "int").commit()
    assert not folder.exists()
    assert SECONDARY in json.loads((golden / DEFINITIONS).read_text())["indexDefinitions"]
    assert HudiTable.for_path(str(golden)).services.drop_index("idx_name").partitions == (SECONDARY,)


def _as_apache_hudi(text: str, gone: str) -> str:
    """The text without one definition, otherwise byte for byte as it was."""
    start = text.index(f'    "{gone}"')
    end = text.index("\n    },\n", start) + len("\n    },\n")
    return text[:start] + text[end:]


@pytest.mark.parametrize(
    "change",
    [{"indexType": "lucene"}, {"sourceFields": ["name", "qty"]}, {"sourceFields": ["gone"]}, {"version": "V3"}, None],
)
def test_a_secondary_index_of_an_unknown_form_is_not_asked(tmp_path: Path, change: dict[str, Any] | None) -> None:
    """Nor one whose column is not there, or whose definition is lost."""
    golden = Path(unpack("v9_mor_meta_all", tmp_path).path)
    known = json.loads((golden / DEFINITIONS).read_text())
    if change is None:
        del known["indexDefinitions"][SECONDARY]
    else:
        known["indexDefinitions"][SECONDARY].update(change)
    (golden / DEFINITIONS).write_text(json.dumps(known))
    _finds_by_name_alone(HudiTable.for_path(str(golden)))


def _finds_by_name_alone(table: HudiTable) -> None:
    """Queries by the name are right, and no secondary index has a part in it."""
    found = table.scan([("name", "in", ["Upd2", "Late3", "Upd4", None])], ["id"])
    assert sorted(found.to_arrow()["id"].to_pylist()) == ["k002", "k003"]
    assert SECONDARY not in str(found.plan().skipped)


@pytest.mark.parametrize("table_type", ["MERGE_ON_READ", "COPY_ON_WRITE"])
def test_the_last_of_several_secondary_indexes_may_be_stale(tmp_path: Path, table_type: str) -> None:
    golden = Path(unpack("v9_mor_meta_all", tmp_path).path)
    config = HudiTable.for_path(str(golden)).config
    several = ",".join([*config.metadata_partitions, "secondary_index_more"])
    config.updated(open_storage(golden), set={METADATA_PARTITIONS: several, TYPE: table_type})
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        HudiTable.for_path(str(golden)).services.drop_index("more")
    told = [str(w.message) for w in caught if f"queries use {SECONDARY} from now on" in str(w.message)]
    assert len(told) == (table_type == "MERGE_ON_READ")


def test_indexes_of_columns_that_were_renamed_are_not_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What has the column's name now may be another one, or none."""
    table = HudiTable.for_path(unpack("v9_mor_meta_all", tmp_path).path)
    days = "from_unixtime(ts, 'yyyy-MM-dd') < '2001'"
    assert not table.scan(filter=days, read_optimized=True).plan().tasks.num_rows
    monkeypatch.setattr(StatisticsEvaluator, "is_changed", lambda _, name: name in ("name", "ts"))
    _finds_by_name_alone(table)
    assert table.scan(filter=days, read_optimized=True).plan().tasks.num_rows == 2


@pytest.mark.parametrize(
    "change",
    [
        {"indexFunction": "soundex", "indexOptions": {"expr": "soundex"}},
        {"indexFunction": "year"},
        {"indexType": "lucene"},
        {"sourceFields": ["ts", "qty"]},
        {"sourceFields": ["gone"]},
        {"indexOptions": {"expr": "from_unixtime", "format": "dd.MM.yyyy"}},
        {"version": "V3"},
    ],
)
def test_an_expression_index_of_an_unknown_form_leaves_nothing_out(tmp_path: Path, change: dict[str, Any]) -> None:
    golden = Path(unpack("v9_mor_meta_all", tmp_path).path)
    where = "from_unixtime(ts, 'yyyy-MM-dd') < '2001' or from_unixtime(ts, 'dd.MM.yyyy') = '01.01.2001'"
    scan = HudiTable.for_path(str(golden)).scan(filter=where.partition(" or ")[0], read_optimized=True)
    assert not scan.plan().tasks.num_rows
    known = json.loads((golden / DEFINITIONS).read_text())
    known["indexDefinitions"]["expr_index_idx_day"].update(change)
    (golden / DEFINITIONS).write_text(json.dumps(known))
    plan = HudiTable.for_path(str(golden)).scan(filter=where, read_optimized=True).plan()
    assert plan.tasks.num_rows == 2
    assert not any(" out, by from_unixtime" in line for line in plan.skipped)
