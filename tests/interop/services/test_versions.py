"""Tables that pyhudi has upgraded or downgraded are those that Apache Hudi makes: properties, timeline and files; and
every release reads and writes them on."""

from __future__ import annotations

import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from pyhudi.api.hudi_table import HudiTable
from pyhudi.table.config.properties_text import parse_properties
from pyhudi.timeline.archive.archived_timeline import read_archived_timeline
from pyhudi.timeline.commit_metadata import decode_commit
from pyhudi.timeline.timeline_layout import LAYOUT_1, LAYOUT_2
from tests.cases import seldom
from tests.golden.expected import unpack
from tests.interop.conftest import OneAtATime
from tests.interop.harness.alternating_writes import NAMES, OPTIONS, SIMPLE, rows, table
from tests.interop.harness.oracle import Oracle
from tests.interop.harness.scenarios import PARALLELISM
from tests.rows import META_COLUMNS, assert_same_rows

SHORT = {
    "hoodie.archive.automatic": "true",
    "hoodie.keep.min.commits": "3",
    "hoodie.keep.max.commits": "4",
    "hoodie.clean.automatic": "true",
    "hoodie.clean.commits.retained": "2",
    "hoodie.cleaner.commits.retained": "2",
    "hoodie.compact.inline": "false",
}
METADATA = {
    "hoodie.metadata.enable": "true",
    "hoodie.metadata.index.column.stats.enable": "true",
    "hoodie.metadata.compact.max.delta.commits": "2",  # archival goes as far as it was compacted
}
PLAIN = {"hoodie.metadata.enable": "false"}
WRITES = 7
_OF_LOGS = {"logVersion", "logOffset", "baseFile", "logFiles"}


def options(kind: str, *, metadata: bool) -> dict[str, str]:
    chosen = METADATA if metadata else PLAIN
    return {**OPTIONS, **SIMPLE, **SHORT, **chosen, "hoodie.datasource.write.table.type": kind}


def grow(oracle: Oracle, path: Path, kind: str, *, metadata: bool) -> None:
    """Writes, one of which replaces partitions; the first ones are archived, and the last ones are log files."""
    for n in range(WRITES):
        operation = {"hoodie.datasource.write.operation": "insert_overwrite" if n == 3 else "upsert"}
        oracle.write(path, table(rows(n, n + 9, n, f"v{n}")), {**options(kind, metadata=metadata), **operation})


def read(path: Path, given: dict[str, str] | None = None) -> pa.Table:
    return HudiTable.for_path(str(path), given or {}).scan(columns=NAMES).to_arrow()


def check(oracle: Oracle, path: Path, expected: pa.Table) -> None:
    """The release and pyhudi read the same rows, by the metadata table and by listing."""
    for given in (METADATA, PLAIN):
        assert_same_rows(oracle.read(path, given).select(NAMES), expected, NAMES)
        assert_same_rows(read(path, given), expected, NAMES)


def write_on(oracle: Oracle, path: Path, kind: str, *, metadata: bool, version: int) -> None:
    """The release writes on, without changing the version, and compacts what it has written, if there are log files."""
    given = options(kind, metadata=metadata) | {"hoodie.datasource.write.operation": "upsert"}
    if oracle.release != "0.15.0":
        given |= {"hoodie.write.table.version": str(version), "hoodie.write.auto.upgrade": "false"}
    for n, inline in ((20, "false"), (21, str(kind == "MERGE_ON_READ").lower())):
        more = {"hoodie.compact.inline": inline, "hoodie.compact.inline.max.delta.commits": "1"}
        oracle.write(path, table(rows(n, n + 3, n, f"{oracle.release} {n}")), given | more)
        check(oracle, path, read(path, PLAIN))
    found = read(path).to_pylist()
    assert {r["id"]: r["v"] for r in found}["k020"] == f"{oracle.release} 20"
    assert HudiTable.for_path(str(path)).config.version == version


def properties(path: Path) -> dict[str, str]:
    return parse_properties((path / ".hoodie/hoodie.properties").read_bytes())


def _without_metadata_table(found: dict[str, str]) -> None:
    """Remove what tells of a metadata table: our compaction before the change of the version builds one by default."""
    for key in ("hoodie.table.metadata.partitions", "hoodie.table.index.defs.path"):
        found.pop(key, None)


def instants(path: Path, version: int) -> dict[str, Any]:
    """The completed files of the active timeline by name, and what their commits have written."""
    layout = LAYOUT_1 if version < 8 else LAYOUT_2
    found: dict[str, Any] = {}
    for file in (path / layout.folder).iterdir():
        instant = layout.parse(file.name)
        if instant is not None and instant.is_completed:
            content = file.read_bytes()
            plain = not instant.is_write or not content
            found[file.name] = content if plain else decode_commit(content).stats.to_pylist()
    return found


def differences(mine: Any, other: Any) -> list[tuple[str, Any, Any]]:
    """What differs in the content of two completed files: field, ours, theirs. What only deltacommits say of their log
    files Apache Hudi loses on the way; we keep it."""
    if isinstance(mine, bytes) or len(mine) != len(other):
        return [] if mine == other else [("", mine, other)]
    pairs = zip(mine, other, strict=True)
    return [
        (name, one[name], two[name])
        for one, two in pairs
        for name in one
        if (one[name] != two[name] if name not in _OF_LOGS else two[name])
    ]


def archived(path: Path, version: int) -> list[tuple[str, str, str | None]]:
    from pyhudi.storage import open_storage

    found = read_archived_timeline(open_storage(path, {}), LAYOUT_1 if version < 8 else LAYOUT_2, metadata=False)
    return [(r["requested"], r["action"], r["completion"]) for r in found.to_pylist()]


@pytest.fixture(scope="session")
def tables(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder of the tables that releases have made. It stays while tests of other modules run between two releases."""
    return tmp_path_factory.mktemp("versions")


@pytest.fixture
def version_6(tables: Path, oracles: OneAtATime, kind: str, metadata: bool) -> Path:
    """A table that release 0.15.0 has made, once in a process. To be asked for before the release of the test."""
    path = tables / f"v6-{kind}-{metadata}"
    if not path.exists():
        grow(oracles.get("0.15.0"), path, kind, metadata=metadata)
    return path


KINDS = [
    ("MERGE_ON_READ", True),
    *map(seldom, [("COPY_ON_WRITE", False), ("COPY_ON_WRITE", True), ("MERGE_ON_READ", False)]),
]


@pytest.mark.parametrize(("kind", "metadata"), KINDS)
@pytest.mark.parametrize("oracle", ["0.15.0"], indirect=True)
def test_read_before_the_upgrade(version_6: Path, oracle: Oracle, kind: str, metadata: bool) -> None:
    """What the tests of later releases upgrade, made while 0.15.0 is running, which costs another start otherwise."""
    assert properties(version_6)["hoodie.table.type"] == kind
    assert ("hoodie.table.metadata.partitions" in properties(version_6)) == metadata
    check(oracle, version_6, read(version_6, PLAIN))


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "metadata"), KINDS)
@pytest.mark.parametrize("oracle", ["0.15.0"], indirect=True)
def test_made_by_0_15(version_6: Path, oracle: Oracle, tables: Path, kind: str, metadata: bool) -> None:
    """A table of version 6 on its way to version 9 and back."""
    path = version_6
    back = Path(shutil.copytree(path, tables / f"v6-{kind}-{metadata}-back"))
    expected = read(path, PLAIN)
    services = HudiTable.for_path(str(back)).services
    assert services.upgrade(9)
    assert services.downgrade(6, lossy=True)
    check(oracle, back, expected)
    write_on(oracle, back, kind, metadata=metadata, version=6)


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "metadata"), KINDS)
@pytest.mark.parametrize("oracle", ["1.0.2"], indirect=True)
def test_upgraded_to_8(version_6: Path, oracle: Oracle, tables: Path, kind: str, metadata: bool) -> None:
    path = Path(shutil.copytree(version_6, tables / f"v8-{kind}-{metadata}"))
    expected = read(path, PLAIN)
    assert HudiTable.for_path(str(path)).services.upgrade(8)
    check(oracle, path, expected)
    write_on(oracle, path, kind, metadata=metadata, version=8)


@pytest.mark.parametrize(("kind", "metadata"), KINDS)
@pytest.mark.parametrize("oracle", ["1.2.0"], indirect=True)
def test_upgraded_to_9(version_6: Path, oracle: Oracle, tables: Path, kind: str, metadata: bool) -> None:
    """Ours and the one that Apache Hudi upgrades have the same properties and timeline, and the same archive."""
    theirs, ours = (tables / f"v9-{kind}-{metadata}-{side}" for side in ("theirs", "ours"))
    for copy in (theirs, ours):
        shutil.copytree(version_6, copy)
    expected = read(ours, PLAIN)
    change(oracle, theirs, "upgrade", "NINE")
    assert HudiTable.for_path(str(ours)).services.upgrade(9)
    mine, other = properties(ours), properties(theirs)
    # theirs is the class of version 6 where both steps are done at once, and that of version 8 where they are not
    for found in (mine, other):
        for key in ("hoodie.table.legacy.payload.class", "hoodie.table.metadata.partitions.inflight"):
            found.pop(key, None)
    if not metadata:
        _without_metadata_table(mine)
    assert mine == other
    before, now = instants(theirs, 9), instants(ours, 9)
    own = {name for name in {*before, *now} if name[:17] > max(i[:17] for i in instants(version_6, 6))}
    assert set(now) - own == set(before) - own
    assert not [d for name in set(now) - own for d in differences(now[name], before[name])]
    assert Counter(name.partition(".")[2] for name in own & set(now)) == Counter(
        name.partition(".")[2] for name in own & set(before)
    )
    assert archived(ours, 9) == archived(theirs, 9) != []
    check(oracle, ours, expected)
    write_on(oracle, ours, kind, metadata=metadata, version=9)


@pytest.mark.slow
def test_payload_class_of_writes(oracles: OneAtATime, tmp_path: Path) -> None:
    """Partial updates go on, although copy-on-write tables of version 6 do not store their payload class."""
    payload = "org.apache.hudi.common.model.PartialUpdateAvroPayload"
    given = {**OPTIONS, **SIMPLE, "hoodie.datasource.write.payload.class": payload}
    oracles.get("0.15.0").write(
        tmp_path / "6", table([("k000", 0, "p0", 1, "stored"), ("k001", 1, "p0", 1, "other")]), given
    )
    for version in (8, 9):
        path = Path(shutil.copytree(tmp_path / "6", tmp_path / str(version)))
        assert HudiTable.for_path(str(path), given).services.upgrade(version)
        update = table([("k000", 5, "p0", 2, None)])
        as_it_is = {"hoodie.write.table.version": str(version), "hoodie.write.auto.upgrade": "false"}
        oracles.get("1.2.0").write(path, update, {**given, **as_it_is})
        check(oracles.get("1.2.0"), path, table([("k000", 5, "p0", 2, "stored"), ("k001", 1, "p0", 1, "other")]))


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "metadata"), KINDS)
@pytest.mark.parametrize("oracle", ["1.2.0"], indirect=True)
def test_downgraded_to_8_and_6(oracle: Oracle, tables: Path, kind: str, metadata: bool) -> None:
    """What Apache Hudi 1.2.0 makes, it reads and writes on in versions 8 and 6."""
    path = tables / f"from9-{kind}-{metadata}"
    grow(oracle, path, kind, metadata=metadata)
    expected = read(path, PLAIN)
    for version in (8, 6):
        copy = Path(shutil.copytree(path, tables / f"from9-{kind}-{metadata}-{version}"))
        theirs = Path(shutil.copytree(path, tables / f"from9-{kind}-{metadata}-{version}-theirs"))
        assert HudiTable.for_path(str(copy)).services.downgrade(version, lossy=True)
        change(oracle, theirs, "downgrade", "EIGHT" if version == 8 else "SIX")
        ours, other = properties(copy), properties(theirs)
        # column statistics of version 9 go in both; theirs are built again for version 6
        _without_metadata_table(ours)
        assert {k: v for k, v in ours.items() if other.get(k) != v} == {
            6: {
                "hoodie.archivelog.folder": "archived",
                "hoodie.compaction.payload.class": "org.apache.hudi.common.model.DefaultHoodieRecordPayload",
            },
            8: {"hoodie.table.initial.version": "8"},
        }[version]
        check(oracle, copy, expected)
        write_on(oracle, copy, kind, metadata=metadata, version=version)


@pytest.mark.parametrize("name", [seldom("v9_mor_compaction_lsm"), "v9_mor_meta_all", seldom("v9_cow_complex_keys")])
@pytest.mark.parametrize("oracle", ["0.15.0", seldom("1.0.2")], indirect=True)
def test_downgraded_for_earlier_releases(oracle: Oracle, tmp_path: Path, name: str) -> None:
    """Releases that do not know version 9 read and write on what was downgraded from it."""
    version = {"0.15.0": 6, "1.0.2": 8}[oracle.release]
    path = unpack(name, tmp_path).path
    hudi = HudiTable.for_path(str(path), PLAIN)
    before = hudi.scan().to_arrow()
    names = [n for n in before.column_names if n not in META_COLUMNS]
    assert hudi.services.downgrade(version, lossy=True)
    for given in (METADATA, PLAIN):
        theirs = oracle.read(path, given)
        assert_same_rows(theirs, before, names)
        assert_same_rows(HudiTable.for_path(str(path), given).scan().to_arrow(), before, names)
    config = HudiTable.for_path(str(path)).config
    again = {
        **PARALLELISM,
        "hoodie.table.name": config.name,
        "hoodie.datasource.write.recordkey.field": ",".join(config.record_keys),
        "hoodie.datasource.write.partitionpath.field": config.partition_spec,
        "hoodie.datasource.write.precombine.field": ",".join(config.ordering_fields),
        "hoodie.datasource.write.keygenerator.class": config.keygen_class or "",
        "hoodie.datasource.write.payload.class": properties(path).get("hoodie.compaction.payload.class", ""),
        "hoodie.datasource.write.operation": "upsert",
        "hoodie.datasource.write.table.type": str(config.table_type),
        **METADATA,
    }
    again = {key: value for key, value in again.items() if value}
    written = theirs.select(names).slice(0, 3)
    oracle.write(path, written, again)
    for given in (METADATA, PLAIN):
        theirs = oracle.read(path, given)
        assert_same_rows(theirs, before, names)
        ours = HudiTable.for_path(str(path), given).scan().to_arrow()
        assert_same_rows(ours, before, names)
        assert max(ours["_hoodie_commit_time"].to_pylist()) > max(before["_hoodie_commit_time"].to_pylist())
    assert HudiTable.for_path(str(path)).config.version == version


def change(oracle: Oracle, path: Path, how: str, to: str) -> None:
    name = path.name.replace("-", "_").replace(".", "_")
    oracle.sql(
        f"CREATE TABLE {name} USING hudi LOCATION '{path}'",
        f"CALL {how}_table(table => '{name}', to_version => '{to}')",
    )
