"""Files, and stretches of files, of a table shown to Spark as files of one folder tree.

Hadoop's archive file system ``har`` presents ranges of bytes of files as files of their own. The index that says which
lies in two small files in the archive's folder; a mount table of ``viewfs`` makes such a folder of three links: the
table, and the two files. The settings go with the options of a read, all in lower case, as executors get them.

The index is named after what it says and the process, is written once and is removed when the process ends.
"""

from __future__ import annotations

import atexit
import hashlib
import re
import secrets
import shutil
import tempfile
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

_PLAIN_PATH = re.compile(r"[A-Za-z0-9_.=/+@,-]+")
_ANY_HASH = 2**31 - 1
_OWN = "0+493+pyhudi+pyhudi"
_PROCESS = secrets.token_hex(8)
"""Part of all names: what one process removes when it ends, no other one reads."""
_made: set[Path] = set()
_lock = threading.Lock()


@dataclass(frozen=True, slots=True)
class ArchivedRange:
    """A file of the archive: its ``name`` (a path in it, as Spark is to see it), and the bytes that it is of a file of
    the table."""

    name: str
    path: str
    offset: int
    length: int


@dataclass(frozen=True, slots=True)
class LogArchive:
    """An archive whose index is written: the address of its folder, and the options with which Spark reads it."""

    base_path: str
    options: dict[str, str]


def can_be_archived(root: str, paths: Sequence[str]) -> bool:
    """Return True if an index can name files: it knows no spaces, and Hadoop takes a colon for a scheme's end."""
    scheme, _, path = root.partition("://")
    return bool(scheme) and all(_PLAIN_PATH.fullmatch(each) for each in (path, *paths))


def write_archive(folder: str, root: str, ranges: Sequence[ArchivedRange]) -> LogArchive:
    """Write the index of an archive of files of the table at ``root`` into a folder.

    Raises:
        OSError: the folder cannot be made or written to.
    """
    lines = ["%2F dir " + _OWN + " 0 0 "]
    lines += [f"{quote('/' + r.name, safe='')} file data/{r.path} {r.offset} {r.length} {_OWN} " for r in ranges]
    index = "".join(line + "\n" for line in lines)
    name = "pyhudi-" + hashlib.sha256(f"{_PROCESS}\n{root}\n{index}".encode()).hexdigest()[:32]
    place = Path(folder).absolute() / name
    with _lock:
        if not place.is_dir():
            _write(place, index)
    mount = f"fs.viewfs.mounttable.{name}.link./t.har/"
    options = {
        f"{mount}data": root,
        f"{mount}_index": f"file://{place}/_index",
        f"{mount}_masterindex": f"file://{place}/_masterindex",
        # each index has a mount table of its own, and none of them is to stay in memory for ever
        "fs.viewfs.impl.disable.cache": "true",
        "fs.har.impl.disable.cache": "true",
    }
    return LogArchive(f"har://viewfs-{name}/t.har/", options)


def _write(place: Path, index: str) -> None:
    """Make the folder with both files in one step."""
    place.parent.mkdir(parents=True, exist_ok=True)
    waiting = Path(tempfile.mkdtemp(prefix=".pyhudi-", dir=place.parent))
    try:
        waiting.chmod(0o755)  # executors may be of another user
        (waiting / "_index").write_text(index)
        (waiting / "_masterindex").write_text(f"3 \n0 {_ANY_HASH} 0 {len(index)} \n")
        waiting.rename(place)
        if not _made:
            atexit.register(_remove_all)
        _made.add(place)
    finally:
        shutil.rmtree(waiting, ignore_errors=True)


def _remove_all() -> None:
    for place in _made:
        shutil.rmtree(place, ignore_errors=True)
