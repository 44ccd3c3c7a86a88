"""Folders by whose names Spark knows what partition files are of, before it opens any.

Spark's file index reads partition values from names such as ``year=2024``, prunes by them, and ``explain`` shows that
as ``PartitionFilters``. Tables whose folders are called otherwise are shown to it through a mount table of Hadoop's
client-side file system ``viewfs``: one rule that says that ``viewfs://…/year=2024/2024/file`` is ``…/2024/file``. It
takes effect for one read only, by options of that read. Files are numbered in the same way, ``…/number=7/…``.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from urllib.parse import quote

import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.keygen.spec import DEFAULT_PARTITION, ENCODED_CHARS

_PLAIN_NAME = re.compile(r"[A-Za-z0-9_]+")
_ENCODED = f"[{re.escape(ENCODED_CHARS)}]"
_OWN_CHILDREN = "fs.viewfs.enable.inner.cache"


@dataclass(frozen=True, slots=True)
class Folders:
    """``base_path``: below it each folder ``name=value`` gives a column. ``options`` of the read make it exist."""

    base_path: str
    options: Mapping[str, str] = field(default_factory=dict)

    def uris(self, paths: pa.StringArray, levels: Sequence[pa.StringArray]) -> list[str]:
        """The addresses of files, given by their paths in the table and the levels that are mounted above it."""
        found: list[str] = pc.binary_join_element_wise(self.base_path.rstrip("/"), *levels, paths, "/").to_pylist()
        return found


def can_be_mounted(names: Sequence[str]) -> bool:
    """Whether a mount table can tell values of these columns: their names mean themselves in a pattern."""
    return all(_PLAIN_NAME.fullmatch(name) for name in names)


def mounted(root: str, names: Sequence[str]) -> Folders:
    """The table at an address, below a level of folders for each of some columns.

    The name of the mount table follows from what it says, because Hadoop keeps the file system of a name for good.
    """
    name = "pyhudi" + hashlib.md5("\n".join((root, *names)).encode(), usedforsecurity=False).hexdigest()
    scheme, _, path = root.rstrip("/").partition(":")
    pattern = "".join(f"/{column}=[^/]*" for column in names)
    rules = {
        f"fs.viewfs.mounttable.{name}.linkRegex.^{pattern}": f"{scheme}:{quote(path, safe='/@:+,=~')}",
        _OWN_CHILDREN: "false",  # the file systems below are those that the session has anyway
    }
    return Folders(f"viewfs://{name}/", rules)


def level(name: str, values: pa.Array) -> pa.StringArray:
    """Names of folders for values of a column, from which Spark takes the same values, also nulls. No empty
    texts."""
    texts = pc.fill_null(pc.cast(values, pa.string()), DEFAULT_PARTITION)
    if pc.any(pc.match_substring_regex(texts, _ENCODED)).as_py():
        texts = pa.array([re.sub(_ENCODED, _escaped, text) for text in texts.to_pylist()], pa.string())
    return pc.binary_join_element_wise(name, texts, "=")


def _escaped(match: re.Match[str]) -> str:
    return f"%{ord(match.group()):02X}"
