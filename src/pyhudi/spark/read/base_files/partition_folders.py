"""Folders by whose names Spark knows what partition files are of, before it opens any.

Spark's file index reads partition values from names such as ``year=2024``, prunes by them, and ``explain`` shows that
as ``PartitionFilters``. Tables whose folders are called otherwise are shown to it through a mount table of Hadoop's
client-side file system ``viewfs``: ``viewfs://pyhudi/file/table/-/year=2024/-`` is ``file:/table``, so that
``…/-/year=2024/-/2024/name`` is the file ``2024/name`` of the table. Files are numbered in the same way:
``…/-/_pyhudi_file=7/2024/name``. Files that are not in the table's folder can be shown among its own, with the same
columns: ``…/-/_pyhudi_file=7/2024/_pyhudi_at/file/tmp/name`` is ``file:/tmp/name``. The rules are the same for all
tables.

They are settings of the session and stay, because executors ask for them when a query runs. They cannot go with the
options of a read, whose names come to executors in lower case.
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

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FILE_NUMBER = "_pyhudi_file"
"""The column that numbers files."""
_MOUNT_TABLE = "pyhudi"
MOUNTS = f"viewfs://{_MOUNT_TABLE}/"
"""Prefix of the addresses of mounted folders."""
_BEGIN = _END = "-"
# the address without levels has to be there, too: Spark looks whether the base path is a folder
_LEVELS = f"/{_BEGIN}(?=/|$)((/[^/]+=[^/]*)*?/({_END}|{FILE_NUMBER}=[^/]*)(?=/|$))?"
_ELSEWHERE = "_pyhudi_at"
_IN_TABLE = f"(?!.*/{_ELSEWHERE}/)"
_RULE = f"fs.viewfs.mounttable.{_MOUNT_TABLE}.linkRegex."
_RULES = {
    f"{_RULE}^{_IN_TABLE}/file(/.*?){_LEVELS}": "file:$1",
    f"{_RULE}^{_IN_TABLE}/(?!file/)([^/]+)(/.*?){_LEVELS}": "$1:/$2",
    f"{_RULE}^/.*/{_ELSEWHERE}/file(/[^/]+)": "file:$1",
    f"{_RULE}^/.*/{_ELSEWHERE}/(?!file/)([^/]+)(/[^/]+)": "$1:/$2",
    # the file systems below it are those that the session has anyway
    "fs.viewfs.enable.inner.cache": "false",
}
_PLAIN_NAME = re.compile(r"[A-Za-z0-9_]+")
_ENCODED = f"[{re.escape(ENCODED_CHARS)}]"


@dataclass(frozen=True, slots=True)
class Folders:
    """``base_path``: below it each folder ``name=value`` gives a column. ``mounted``: some of these are not in the
    table."""

    base_path: str
    mounted: bool = False

    def uris(
        self, paths: pa.StringArray, levels: Sequence[pa.StringArray] = (), numbers: pa.StringArray | None = None
    ) -> list[str]:
        """The addresses of files, given by their paths in the table and the levels that are mounted above it, the last
        of which may be :func:`level` of :data:`FILE_NUMBER`."""
        above = [*levels, _END if numbers is None else numbers] if self.mounted else []
        found: list[str] = pc.binary_join_element_wise(self.base_path.rstrip("/"), *above, paths, "/").to_pylist()
        return found


def allow_mounts(spark: SparkSession) -> None:
    """Give a session the rules of mounted folders, if it has not got them yet."""
    for key, value in _RULES.items():
        if spark.conf.get(key, None) != value:
            spark.conf.set(key, value)


def can_be_mounted(root: str, names: Sequence[str] = ()) -> bool:
    """Return True if the mount table can tell values of these columns: their names mean themselves in folders."""
    return f"/{_BEGIN}/" not in f"{root}/" and all(_PLAIN_NAME.fullmatch(name) for name in names)


def mounted(root: str) -> Folders:
    """The table at an address, below levels of folders for some columns."""
    scheme, _, path = root.partition(":")
    return Folders(f"{MOUNTS}{scheme}/{quote(path.strip('/'), safe='/@+,=~')}/{_BEGIN}/", mounted=True)


def path_elsewhere(uri: str, partition: str) -> str:
    """Return a file that is not in the table as a path in mounted folders with :data:`FILE_NUMBER`, among those of a
    partition. Its own folders must not be named ``name=value``."""
    scheme, _, path = uri.partition(":")
    above = f"{partition}/" if partition else ""
    return f"{above}{_ELSEWHERE}/{scheme}/{path.lstrip('/')}"


def level(name: str, values: pa.Array) -> pa.StringArray:
    """Names of folders for values of a column, from which Spark takes the same values, also nulls. No empty
    texts."""
    texts = pc.fill_null(pc.cast(values, pa.string()), DEFAULT_PARTITION)
    if pc.any(pc.match_substring_regex(texts, _ENCODED)).as_py():
        texts = pa.array([re.sub(_ENCODED, _escaped, text) for text in texts.to_pylist()], pa.string())
    return pc.binary_join_element_wise(name, texts, "=")


def _escaped(match: re.Match[str]) -> str:
    return f"%{ord(match.group()):02X}"
