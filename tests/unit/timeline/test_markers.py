from __future__ import annotations

import pickle
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pyhudi.errors import AlreadyExistsError, CorruptInstantError
from pyhudi.storage import Storage, open_storage
from pyhudi.timeline.markers import MARKER_SCHEMA, IOType, Markers, marked_instants
from tests.properties import examples

INSTANT = "20240102030405678"
FILE = "8f1c0d6e-0000-0000-0000-000000000000-0_0-674-700_20240102030405678.parquet"
FOLDER = f".hoodie/.temp/{INSTANT}"


@pytest.fixture
def storage(tmp_path: Path) -> Storage:
    return open_storage(tmp_path)


@pytest.fixture
def markers(storage: Storage) -> Markers:
    return Markers(storage, INSTANT)


def rows(markers: Markers) -> set[tuple[str, str, str, str]]:
    table = markers.list()
    assert table.schema.equals(MARKER_SCHEMA)
    found = [tuple(row.values()) for row in table.to_pylist()]
    assert len(found) == len(set(found))
    return set(found)


def test_direct_markers_are_as_apache_hudi_names_them(storage: Storage, markers: Markers) -> None:
    markers.create("day=2024-01-02", FILE, IOType.CREATE)
    markers.create("", FILE, IOType.MERGE)
    log = ".f-0_20240101000000000.log.6_0-674-700"
    markers.create("a/b", log, IOType.APPEND)
    assert sorted(storage.list(FOLDER, recursive=True)["path"].to_pylist()) == sorted(
        [
            f"{FOLDER}/day=2024-01-02/{FILE}.marker.CREATE",
            f"{FOLDER}/{FILE}.marker.MERGE",
            f"{FOLDER}/a/b/{log}.marker.APPEND",
        ]
    )
    assert storage.read(f"{FOLDER}/{FILE}.marker.MERGE") == b""
    assert rows(markers) == {
        ("day=2024-01-02", FILE, f"day=2024-01-02/{FILE}", "CREATE"),
        ("", FILE, FILE, "MERGE"),
        ("a/b", log, f"a/b/{log}", "APPEND"),
    }


def test_a_marker_is_made_once(markers: Markers) -> None:
    markers.create("p", FILE, IOType.CREATE)
    with pytest.raises(AlreadyExistsError):
        markers.create("p", FILE, IOType.CREATE)
    assert markers.list().num_rows == 1


def test_no_markers(storage: Storage, markers: Markers) -> None:
    assert rows(markers) == set()
    assert list(marked_instants(storage)) == []
    markers.delete()


def test_markers_of_the_timeline_server(storage: Storage, markers: Markers) -> None:
    storage.write(f"{FOLDER}/MARKERS.type", b"TIMELINE_SERVER_BASED")
    storage.write(f"{FOLDER}/MARKERS0", f"p=1/{FILE}.marker.CREATE\n{FILE}.marker.MERGE\n".encode())
    storage.write(f"{FOLDER}/MARKERS12", f"ü x/{FILE}.marker.APPEND\np=1/{FILE}.marker.CREATE\n".encode())
    assert rows(markers) == {
        ("p=1", FILE, f"p=1/{FILE}", "CREATE"),
        ("", FILE, FILE, "MERGE"),
        ("ü x", FILE, f"ü x/{FILE}", "APPEND"),
    }


@pytest.mark.parametrize(
    ("name", "data", "message"),
    [
        ("MARKERS.type", b"CARRIER_PIGEON", "CARRIER_PIGEON"),
        ("MARKERS0", b"p/a.parquet\n", "invalid line"),
        ("MARKERS0", b"p/\xff.marker.CREATE\n", "UTF-8"),
        ("MARKERS0", b"p/a.parquet.marker.CREATE\np/b.parquet.mar", "incomplete"),
        ("MARKERS0", b"", "incomplete"),
    ],
)
def test_broken_markers_are_named(storage: Storage, markers: Markers, name: str, data: bytes, message: str) -> None:
    storage.write(f"{FOLDER}/{name}", data)
    with pytest.raises(CorruptInstantError, match=message) as caught:
        markers.list()
    assert INSTANT in str(caught.value)


def test_both_kinds_together(storage: Storage, markers: Markers) -> None:
    storage.write(f"{FOLDER}/MARKERS0", b"p/a.parquet.marker.CREATE\n")
    markers.create("p", "a.parquet", IOType.CREATE)
    markers.create("p", "b.parquet", IOType.CREATE)
    assert sorted(row[1] for row in rows(markers)) == ["a.parquet", "b.parquet"]


def test_delete_and_other_instants(storage: Storage, markers: Markers) -> None:
    other = Markers(storage, "20240102030405679")
    markers.create("p", "a", IOType.CREATE)
    other.create("p", "b", IOType.CREATE)
    assert sorted(marked_instants(storage)) == [INSTANT, other.instant]
    markers.delete()
    assert list(marked_instants(storage)) == [other.instant]
    assert [row[1] for row in rows(other)] == ["b"]
    assert storage.list(FOLDER, recursive=True).num_rows == 0


def test_executors_get_a_copy(markers: Markers) -> None:
    pickle.loads(pickle.dumps(markers)).create("p", "a", IOType.CREATE)
    assert markers.list().num_rows == 1


segment = st.text(st.characters(exclude_characters="/\n\x00", codec="utf-8"), min_size=1, max_size=8).filter(
    lambda text: text not in (".", "..")
)


marker = st.tuples(st.lists(segment, max_size=3).map(tuple), segment, st.sampled_from(IOType))


@settings(max_examples=examples(40))
@given(st.sets(marker, min_size=1, max_size=5))
def test_any_names(names: set[tuple[tuple[str, ...], str, IOType]]) -> None:
    """Both kinds give back what was announced, whatever partition values and names are."""

    class Fixed:
        """Only what reading the lines needs."""

        def __init__(self, data: bytes) -> None:
            self.data = data

        def read(self, _: str) -> bytes:
            return self.data

    lines = ["/".join([*partition, name]) + f".marker.{kind}" for partition, name, kind in names]
    found = Markers(Fixed(("\n".join(lines) + "\n").encode()), INSTANT).read_lines("MARKERS0")  # type: ignore[arg-type]
    assert found.to_pylist() == lines
