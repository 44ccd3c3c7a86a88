"""Golden tables keep their rows in every version that they can have, after what is pending was run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pyhudi.api.hudi_table import HudiTable
from pyhudi.errors import UnsupportedTableError
from tests.cases import every_second
from tests.golden.expected import NAMES, unpack
from tests.rows import META_COLUMNS, assert_same_rows

CASES = every_second(
    [(name, to) for name in NAMES for to in (6, 8, 9) if not name.startswith((f"v{to}", f"v6_to_v{to}"))]
)
REFUSED = {
    "v6_cow_cluster-9": "record keys .* have the form 'value'",
    "v9_mor_logcompaction": r"hoodie\.table\.ordering\.fields=o1,o2",
    "v9_mor_mixed_formats": "mix base file formats",
}
"""What other versions, or one of them, cannot have."""


@pytest.mark.parametrize(("name", "to"), CASES)
def test_rows_stay(name: str, to: int, tmp_path: Path) -> None:
    path = str(unpack(name, tmp_path).path)
    table = HudiTable.for_path(path)
    before = table.scan().to_arrow()
    upgrade = to > table.config.version

    def change() -> Any:
        services = table.services
        return services.upgrade(to) if upgrade else services.downgrade(to, lossy=True)

    for instant in table.history().to_pylist():
        if instant["state"] != "COMPLETED":
            table.services.run_clustering()
    for savepoint in table.services.savepoints()["instant"].to_pylist():
        table.services.delete_savepoint(savepoint)
    known = table.validate_metadata().num_rows
    refused = REFUSED.get(f"{name}-{to}", REFUSED.get(name))
    if refused:
        with pytest.raises(UnsupportedTableError, match=refused):
            change()
        return
    assert change()
    after = HudiTable.for_path(path)
    assert after.config.version == to
    names = [n for n in before.column_names if n not in META_COLUMNS]
    for given in ({}, {"hoodie.metadata.enable": "false"}):
        assert_same_rows(HudiTable.for_path(path, given).scan().to_arrow(), before, names)
    if after.config.metadata_partitions:
        # Apache Hudi 0.15.0 notes down one byte for log files of writes that were rolled back
        assert after.validate_metadata().num_rows == (2 if name == "v6_mor_rollback" and to > 6 else known)
