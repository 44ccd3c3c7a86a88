"""Folders by whose names Spark knows what partition files are of, before it opens any.

Spark's file index reads partition values from names such as ``year=2024``, prunes by them, and ``explain`` shows that
as ``PartitionFilters``. Tables whose folders are called ``2024`` are shown to it through a mount table of Hadoop's
client-side file system ``viewfs``: one rule that says that ``viewfs://…/year=2024`` is ``…/2024``. It takes effect for
one read only, by options of that read.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.compute as pc

_FOLDER = "([^/]+)"
_PLAIN_NAME = re.compile(r"[A-Za-z0-9_]+")
_PLAIN_ROOT = re.compile(r"[A-Za-z0-9+.-]+:[A-Za-z0-9_.=/+,:@~-]+")
_OWN_CHILDREN = "fs.viewfs.enable.inner.cache"


@dataclass(frozen=True, slots=True)
class Folders:
    """``base_path``: below it each level of folders is a partition column. ``options`` of the read make it exist."""

    base_path: str
    options: Mapping[str, str] = field(default_factory=dict)
    fields: tuple[str, ...] | None = None

    def uris(self, paths: pa.ChunkedArray) -> list[str]:
        """The addresses of files, given by their paths in the table."""
        if self.fields is not None:
            named = "/".join(f"{name}=\\{i + 1}" for i, name in enumerate(self.fields))
            paths = pc.replace_substring_regex(paths, f"^{_levels(self.fields)}", named)
        found: list[str] = pc.binary_join_element_wise(self.base_path.rstrip("/"), paths, "/").to_pylist()
        return found


def can_be_mounted(root: str, fields: Sequence[str]) -> bool:
    """Whether a mount table can tell of the table at that address: all names in it mean themselves there."""
    return _PLAIN_ROOT.fullmatch(root) is not None and all(_PLAIN_NAME.fullmatch(name) for name in fields)


def mounted(root: str, fields: Sequence[str]) -> Folders:
    """Folders that are called by values alone, one for each field, as if they were called ``field=value``.

    The name of the mount table follows from what it says, because Hadoop keeps the file system of a name for good.
    """
    root = root.rstrip("/")
    name = "pyhudi" + hashlib.md5("\n".join((root, *fields)).encode(), usedforsecurity=False).hexdigest()
    seen = "".join(f"/{field}={_FOLDER}" for field in fields)
    real = "".join(f"/${i + 1}" for i in range(len(fields)))
    # file systems below are those that the session has anyway, not instances of their own
    rules = {f"fs.viewfs.mounttable.{name}.linkRegex.^{seen}": f"{root}{real}", _OWN_CHILDREN: "false"}
    return Folders(f"viewfs://{name}/", rules, tuple(fields))


def _levels(fields: Sequence[str]) -> str:
    return "/".join(_FOLDER for _ in fields)
