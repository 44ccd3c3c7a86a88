"""File names: made and taken apart."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyhudi.format import file_names

UUID = "38983601-b826-48b4-b38f-8894731d7d0e"


def parse(*names: str) -> list[dict[str, object]]:
    return file_names.parse_names(pa.array(names, pa.string())).to_pylist()


def test_base_file() -> None:
    (row,) = parse(f"{UUID}-0_1-501-561_20261121095417305.parquet")
    assert row == {
        "name": f"{UUID}-0_1-501-561_20261121095417305.parquet",
        "kind": "base",
        "file_id": f"{UUID}-0",
        "token": "1-501-561",
        "instant": "20261121095417305",
        "ext": "parquet",
        "log_version": None,
    }


def test_log_and_cdc_files() -> None:
    log, cdc, bare = parse(
        f".{UUID}-0_20261121095417305.log.12_1-520-581",
        f".{UUID}-0_20261121095641822.log.1_1-1143-1066.cdc",
        f".{UUID}-0_20261121095641822.log.3",
    )
    assert (log["kind"], log["file_id"], log["instant"], log["token"], log["log_version"], log["ext"]) == (
        "log",
        f"{UUID}-0",
        "20261121095417305",
        "1-520-581",
        12,
        "log",
    )
    assert (cdc["kind"], cdc["token"], cdc["log_version"]) == ("cdc", "1-1143-1066", 1)
    assert (bare["kind"], bare["token"], bare["log_version"]) == ("log", None, 3)


def test_metadata_table_names_keep_their_file_ids() -> None:
    rows = parse(
        "files-0000-0_0-5-4_00000000000000010.hfile",
        "secondary-index-idx_city-0003-0_0-5-4_20261121095417305001.hfile",
        ".secondary-index-idx_city-0003-0_20261121095417305.log.1_0-0-0",
    )
    assert [row["file_id"] for row in rows] == [
        "files-0000-0",
        "secondary-index-idx_city-0003-0",
        "secondary-index-idx_city-0003-0",
    ]


def test_everything_else_is_other() -> None:
    names = [
        ".hoodie_partition_metadata",
        "20261121095803562_20261121095803562_0.parquet",
        ".commits_.archive.1_1-0-1",
        "part-00000-uuid.snappy.parquet",
        f".{UUID}-0_1-501-561_20261121095417305.parquet.crc",
        f"{UUID}-0_1-501-561_20261121095417305.parquet.marker.CREATE",
        "",
    ]
    rows = parse(*names)
    assert [row["kind"] for row in rows] == ["other"] * len(names)
    assert {row["file_id"] for row in rows} == {None}


def test_empty_and_chunked_input() -> None:
    assert file_names.parse_names(pa.chunked_array([], pa.string())).num_rows == 0
    chunked = pa.chunked_array([["a"], [f"{UUID}-0_0-0-0_20261121095417305.orc"]])
    assert file_names.parse_names(chunked)["kind"].to_pylist() == ["other", "base"]


@given(st.integers(0, 999), st.tuples(*[st.integers(0, 10**6)] * 3), st.sampled_from(["parquet", ".orc", "hfile"]))
def test_base_names_round_trip(n: int, token: tuple[int, int, int], ext: str) -> None:
    file_id = file_names.new_file_id(file_names.new_file_prefix(), n)
    text = file_names.write_token(*token)
    (row,) = parse(file_names.base_file_name(file_id, text, "20261121095417305", ext))
    assert (row["file_id"], row["token"], row["ext"]) == (file_id, text, ext.removeprefix("."))


@given(st.integers(1, 10**6), st.booleans())
def test_log_names_round_trip(version: int, cdc: bool) -> None:
    (row,) = parse(file_names.log_file_name(f"{UUID}-0", "20261121095417305", version, "1-2-3", cdc=cdc))
    assert (row["kind"], row["log_version"]) == ("cdc" if cdc else "log", version)


def test_split_paths() -> None:
    folders, names = file_names.split_paths(pa.array(["a=1/b=2/x.parquet", "x.parquet", "p/.y"]))
    assert folders.to_pylist() == ["a=1/b=2", "", "p"]
    assert names.to_pylist() == ["x.parquet", "x.parquet", ".y"]


@pytest.mark.parametrize("path", ["a=1/b=2/x.parquet", "x.parquet", "p/.y", "p/", "", "a\nb/c\nd/x\n.parquet", "x\ny"])
def test_the_name_of_a_path_is_what_split_paths_finds(path: str) -> None:
    paths = pa.chunked_array([[path, None], ["q/z"]], pa.string())
    name = file_names.split_paths(paths)[1][0].as_py()
    assert file_names.file_name_of(path) == name
    assert file_names.file_names_of(paths).to_pylist() == [name, None, "z"]
