"""Folder names from which Spark parses partition values before it opens files.

Spark's file index parses partition values from names such as ``year=2024`` and prunes by them; ``explain`` shows that
as ``PartitionFilters``. Tables with other folder names are presented through a mount table of Hadoop's client-side file
system ``viewfs``: ``viewfs://pyhudi/file/table/-/year=2024/-`` is ``file:/table``, so ``…/-/year=2024/-/2024/name`` is
the file ``2024/name`` of the table. Files are numbered in the same way:
``…/-/_pyhudi_scanned_file=7/2024/name``. Files outside of the table's folder can be presented in it with the same
columns: ``…/-/_pyhudi_scanned_file=7/2024/_pyhudi_at/file/tmp/name`` is ``file:/tmp/name``. The rules are the same for
all tables.

The rules are session settings and are kept, because executors look them up when a query runs. They cannot be options of
a read, whose names reach executors in lower case.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import quote

import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.keygen.key_spec import DEFAULT_PARTITION, ENCODED_CHARS
from pyhudi.spark.helper_columns import SCANNED_FILE

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_MOUNT_TABLE = "pyhudi"
MOUNTS = f"viewfs://{_MOUNT_TABLE}/"
"""Prefix of the URIs of mounted folders."""
_BEGIN = _END = "-"
# The path without levels must exist, too: Spark checks that the base path is a folder.
_LEVELS = f"/{_BEGIN}(?=/|$)((/[^/]+=[^/]*)*?/({_END}|{SCANNED_FILE}=[^/]*)(?=/|$))?"
_ELSEWHERE = "_pyhudi_at"
_IN_TABLE = f"(?!.*/{_ELSEWHERE}/)"
_RULE = f"fs.viewfs.mounttable.{_MOUNT_TABLE}.linkRegex."
_RULES = {
    f"{_RULE}^{_IN_TABLE}/file(/.*?){_LEVELS}": "file:$1",
    f"{_RULE}^{_IN_TABLE}/(?!file/)([^/]+)(/.*?){_LEVELS}": "$1:/$2",
    f"{_RULE}^/.*/{_ELSEWHERE}/file(/[^/]+)": "file:$1",
    f"{_RULE}^/.*/{_ELSEWHERE}/(?!file/)([^/]+)(/[^/]+)": "$1:/$2",
    # Reuse the file systems of the session.
    "fs.viewfs.enable.inner.cache": "false",
}
_PLAIN_NAME = re.compile(r"[A-Za-z0-9_]+")
_ENCODED = f"[{re.escape(ENCODED_CHARS)}]"


@dataclass(frozen=True, slots=True)
class Folders:
    """Folders from whose names Spark parses columns.

    Attributes:
        base_path: Each folder ``name=value`` below it yields a column.
        mounted: Some of these folders are mounted instead of being in the table.
    """

    base_path: str
    mounted: bool = False

    def uris(
        self, paths: pa.StringArray, levels: Sequence[pa.StringArray] = (), numbers: pa.StringArray | None = None
    ) -> list[str]:
        """Return the URIs of files.

        Args:
            paths: Paths relative to the root of the table.
            levels: Folders that are mounted above the files (:func:`level`), for each column an array with an element
                per file.
            numbers: Last level, with the numbers of the files.
        """
        above = [*levels, _END if numbers is None else numbers] if self.mounted else []
        folders: list[str] = pc.binary_join_element_wise(self.base_path.rstrip("/"), *above, paths, "/").to_pylist()
        return folders


def allow_mounts(spark: SparkSession) -> None:
    """Set the rules of mounted folders in a session."""
    for key, value in _RULES.items():
        if spark.conf.get(key, None) != value:
            spark.conf.set(key, value)


def can_be_mounted(root: str, names: Sequence[str] = ()) -> bool:
    """Return True if the mount table supports a root and columns: their names need no escapes in folder names."""
    return f"/{_BEGIN}/" not in f"{root}/" and all(_PLAIN_NAME.fullmatch(name) for name in names)


def mounted(root: str) -> Folders:
    """Return the folders of a table that is mounted below levels for some columns."""
    scheme, _, path = root.partition(":")
    return Folders(f"{MOUNTS}{scheme}/{quote(path.strip('/'), safe='/@+,=~')}/{_BEGIN}/", mounted=True)


def mounted_external_path(uri: str, partition: str) -> str:
    """Return the path, in mounted folders with `SCANNED_FILE`, of a file outside of the table that is presented in
    a partition. Its own folders must not be named ``name=value``."""
    scheme, _, path = uri.partition(":")
    above = f"{partition}/" if partition else ""
    return f"{above}{_ELSEWHERE}/{scheme}/{path.lstrip('/')}"


def level(name: str, values: pa.Array) -> pa.StringArray:
    """Return folder names from which Spark parses the values of a column, including nulls. There must be no empty
    texts."""
    texts = pc.fill_null(pc.cast(values, pa.string()), DEFAULT_PARTITION)
    if pc.any(pc.match_substring_regex(texts, _ENCODED)).as_py():
        texts = pa.array([re.sub(_ENCODED, _escaped, text) for text in texts.to_pylist()], pa.string())
    return pc.binary_join_element_wise(name, texts, "=")


def _escaped(match: re.Match[str]) -> str:
    return f"%{ord(match.group()):02X}"
