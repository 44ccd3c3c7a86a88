"""Consistent hashing: the buckets of a partition are ranges of hashes with one file group each, stored in a small file.

``.hoodie/.bucket_index/consistent_hashing_metadata/<partition>/<instant>.hashing_meta``; see docs/format/metadata.md,
7.2. The first file of a partition is determined by its path and the number of buckets, so that concurrent writers
create identical files. A clustering that splits or merges buckets writes another file, named after its instant. It is
valid once the clustering is completed; an empty file ``<instant>.commit`` in the same folder records this when the
instant has been archived.
"""

from __future__ import annotations

import hashlib
import json
import uuid
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.config.options import INITIAL_BUCKETS
from pyhudi.errors import AlreadyExistsError, ConflictError, FormatError
from pyhudi.format.file_names import file_name_of
from pyhudi.format.xxh32 import xxh32
from pyhudi.index.bucket_hash import hashed_values_of_keys
from pyhudi.keygen.key_spec import EMPTY_KEY_PART, NULL_KEY_PART
from pyhudi.storage import Storage, join_path
from pyhudi.storage.concurrent_reads import concurrent_map
from pyhudi.storage.table_paths import BUCKET_FOLDER

FOLDER = f"{BUCKET_FOLDER}/consistent_hashing_metadata"
FIRST_INSTANT = "00000000000000"
_EXTENSION, _DONE = ".hashing_meta", ".commit"
_MAX = 0x7FFFFFFF
_JAVA_NULL = "null"  # Java's text of a null in a join of texts.


class NodeTag(StrEnum):
    """Change by a clustering of the bucket that ends at a hash."""

    REPLACE = "REPLACE"
    DELETE = "DELETE"


@dataclass(frozen=True, slots=True)
class ChildNode:
    """A bucket after a clustering: the hash at which it ends, the prefix of the ids of its file group (None if the
    bucket is removed), and its change."""

    end: int
    prefix: str | None
    tag: NodeTag


@dataclass(frozen=True, slots=True)
class HashingMetadata:
    """Buckets of a partition: bucket ``i`` has the hashes up to ``ends[i]``, ascending, that the previous one does not
    have, and a file group whose id starts with ``prefixes[i]``."""

    partition: str
    instant: str
    ends: npt.NDArray[np.int64]
    prefixes: tuple[str, ...]
    sequence: int = 0
    """Number of times that buckets of the partition were split or merged."""

    @classmethod
    def first(cls, partition: str, buckets: int) -> HashingMetadata:
        """Return the initial buckets of a partition: equal ranges."""
        step = -(-_MAX // buckets)
        ends = [min(i * step, _MAX) for i in range(1, buckets + 1)]
        starts = [0, *ends[:-1]]
        prefixes = tuple(_range_id(start, end, partition) for start, end in zip(starts, ends, strict=True))
        return cls(partition, FIRST_INSTANT, np.array(ends, dtype=np.int64), prefixes)

    @classmethod
    def decode(cls, data: bytes, path: str) -> HashingMetadata:
        """Parse a file.

        Raises:
            FormatError: The file is corrupt.
        """
        try:
            parsed: dict[str, Any] = json.loads(data)
            nodes = sorted((int(node["value"]), str(node["fileIdPrefix"])) for node in parsed["nodes"])
            ends, prefixes = zip(*nodes, strict=True)
            places = np.array(ends, dtype=np.int64)
            return cls(str(parsed["partitionPath"]), str(parsed["instant"]), places, prefixes, int(parsed["seqNo"]))
        except (ValueError, KeyError, TypeError, UnicodeDecodeError) as error:
            raise FormatError(f"{path} is not a valid list of consistent hashing buckets: {error!r}") from error

    def encode(self) -> bytes:
        """Return the content of the file, as written by Apache Hudi."""
        nodes = ", ".join(
            f'{{\n    "value" : {int(end)},\n    "fileIdPrefix" : "{prefix}",\n    "tag" : "NORMAL"\n  }}'
            for end, prefix in zip(self.ends, self.prefixes, strict=True)
        )
        text = (
            f'{{\n  "version" : 0,\n  "partitionPath" : {json.dumps(self.partition)},\n'
            f'  "instant" : "{self.instant}",\n'
            f'  "numBuckets" : {len(self.ends)},\n  "seqNo" : {self.sequence},\n  "nodes" : [ {nodes} ]\n}}'
        )
        return text.encode()

    def buckets_of(self, hashes: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Return the buckets of hashes (`consistent_hashes`); hashes beyond the last end belong to the first bucket."""
        buckets: npt.NDArray[np.int64] = np.searchsorted(self.ends, hashes, side="left") % len(self.ends)
        return buckets

    def bucket_before(self, bucket: int) -> int:
        """Return the previous bucket on the ring."""
        return (bucket - 1) % len(self.ends)

    def split(self, bucket: int, prefixes: tuple[str, str]) -> tuple[ChildNode, ...]:
        """Return the two halves of a bucket, with new file groups; none if it has a single hash."""
        begin, end = int(self.ends[self.bucket_before(bucket)]), int(self.ends[bucket])
        middle = ((begin + end + (0 if begin < end else _MAX + 1)) >> 1) & _MAX
        if middle in (begin, end):
            return ()
        return tuple(
            ChildNode(place, prefix, NodeTag.REPLACE) for place, prefix in zip((middle, end), prefixes, strict=True)
        )

    def merge(self, buckets: Sequence[int], prefix: str) -> tuple[ChildNode, ...]:
        """Return the merged bucket of adjacent ones, with a new file group; ``buckets`` in the order of the ring."""
        *merged, last = (int(self.ends[bucket]) for bucket in buckets)
        return (*(ChildNode(end, None, NodeTag.DELETE) for end in merged), ChildNode(last, prefix, NodeTag.REPLACE))

    def with_children(self, instant: str, children: Iterable[ChildNode]) -> HashingMetadata:
        """Return the buckets after a clustering: its nodes replace those that end at the same hashes."""
        nodes: dict[int, str | None] = dict(zip(map(int, self.ends), self.prefixes, strict=True))
        nodes.update((child.end, child.prefix if child.tag is NodeTag.REPLACE else None) for child in children)
        left = sorted((end, prefix) for end, prefix in nodes.items() if prefix is not None)
        ends = np.array([end for end, _ in left], dtype=np.int64)
        return HashingMetadata(self.partition, instant, ends, tuple(prefix for _, prefix in left), self.sequence + 1)

    def file_ids(self) -> list[str]:
        """Return the file group of each bucket."""
        return [f"{prefix}-0" for prefix in self.prefixes]


def consistent_hashes(
    keys: pa.Array, fields: Collection[str], *, legacy_key_split: bool = False
) -> npt.NDArray[np.int64]:
    """Return the hashes of record keys, by their values of the ``fields`` (as in
    `pyhudi.index.bucket_hash.hashed_values`)."""
    rows, values = hashed_values_of_keys(keys, fields, legacy_key_split=legacy_key_split)
    if values is keys:
        return (xxh32(keys) & np.uint32(_MAX)).astype(np.int64)
    values = pc.if_else(pc.equal(values, NULL_KEY_PART), _JAVA_NULL, values)
    values = pc.if_else(pc.equal(values, EMPTY_KEY_PART), "", values)
    offsets = np.concatenate([[0], np.cumsum(np.bincount(rows, minlength=len(keys)))])
    texts = pc.binary_join(pa.LargeListArray.from_arrays(pa.array(offsets, pa.int64()), values), "")
    return (xxh32(texts) & np.uint32(_MAX)).astype(np.int64)


@dataclass(frozen=True, slots=True)
class VisibleGroups:
    """File groups of a snapshot, which show whether a clustering was completed whose instant has been archived.

    ``pending`` are the requested times of pending instants; ``file_ids`` are those of the latest slices.
    """

    pending: Collection[str]
    file_ids: pa.ChunkedArray

    def newest(self, candidates: Iterable[HashingMetadata], current: HashingMetadata | None) -> HashingMetadata | None:
        """Return the newest metadata of which a bucket that ``current`` lacks has a file group; ``current`` if there is
        none."""
        old = () if current is None else current.file_ids()
        for one in sorted(candidates, key=lambda one: one.instant, reverse=True):
            new = pa.array(sorted(set(one.file_ids()).difference(old)), pa.string())
            if pc.any(pc.is_in(self.file_ids, value_set=new)).as_py():
                return one
        return current


def load_metadata(
    storage: Storage,
    partitions: Collection[str],
    completed: Collection[str],
    *,
    marks: bool = False,
    groups: VisibleGroups | None = None,
) -> dict[str, HashingMetadata]:
    """Load the buckets of those partitions that have any.

    ``completed`` are the requested times of completed instants: files of an incomplete clustering are ignored. A
    clustering that was archived before anyone created its marker file is found by its file ``groups``.
    ``marks``: the caller is going to write to the table, and the missing marker file of a completed clustering is
    created.

    Raises:
        FormatError: A file is corrupt.
    """

    def load(partition: str) -> HashingMetadata | None:
        folder = join_path(FOLDER, partition)
        names = [file_name_of(path) for path in storage.list(folder)["path"].to_pylist()]
        marked = {name.removesuffix(_DONE) for name in names if name.endswith(_DONE)}
        instants = [name.removesuffix(_EXTENSION) for name in names if name.endswith(_EXTENSION)]
        valid = [i for i in instants if i == FIRST_INSTANT or i in marked or i in completed]
        current = read(folder, max(valid)) if valid else None
        if groups is not None:
            later = [i for i in instants if i > max(valid, default="") and i not in groups.pending]
            current = groups.newest([read(folder, instant) for instant in later], current)
        if current is not None and current.instant not in (FIRST_INSTANT, *marked) and marks:
            mark_completed(storage, [partition], current.instant)
        return current

    def read(folder: str, instant: str) -> HashingMetadata:
        path = join_path(folder, instant + _EXTENSION)
        return HashingMetadata.decode(storage.read(path), path)

    loaded = zip(partitions, concurrent_map(load, partitions), strict=True)
    return {partition: metadata for partition, metadata in loaded if metadata is not None}


def store_metadata(storage: Storage, metadata: HashingMetadata) -> None:
    """Write the buckets of a partition after a clustering. They become valid when its instant is completed; until then
    another attempt at the same plan writes the same buckets."""
    storage.write(_path(metadata.partition, metadata.instant), metadata.encode())


def mark_completed(storage: Storage, partitions: Iterable[str], instant: str) -> None:
    """Create the marker files in partitions for a completed clustering."""
    for partition in partitions:
        storage.write(join_path(FOLDER, partition, instant + _DONE), b"")


def delete_metadata(storage: Storage, instants: Iterable[str]) -> None:
    """Delete the buckets written by clusterings that are rolled back."""
    names = {instant + end for instant in instants for end in (_EXTENSION, _DONE)}
    files = storage.list(FOLDER, recursive=True)["path"].to_pylist()
    storage.delete_many(path for path in files if file_name_of(path) in names)


def partitions_with_buckets(storage: Storage) -> list[str]:
    """Return the partitions that have buckets."""
    files = storage.list(FOLDER, recursive=True)["path"].to_pylist()
    return sorted({path.removeprefix(FOLDER).rpartition("/")[0].strip("/") for path in files})


def store_first_metadata(storage: Storage, metadata: Mapping[str, HashingMetadata]) -> None:
    """Write the first files of partitions, unless another writer has created identical ones.

    Raises:
        ConflictError: Another writer has created other buckets of a partition.
        FormatError: The file of another writer is corrupt.
    """
    for partition, first in metadata.items():
        path = _path(partition, FIRST_INSTANT)
        try:
            storage.create(path, first.encode())
        except AlreadyExistsError:
            existing = HashingMetadata.decode(storage.read(path), path)
            if existing.prefixes != first.prefixes:
                raise ConflictError(
                    f"another writer has created the partition {partition!r} with {len(existing.prefixes)} buckets, "
                    f"and this one with {len(first.prefixes)}: set the same {INITIAL_BUCKETS.key} for all writers"
                ) from None


def _path(partition: str, instant: str) -> str:
    return join_path(FOLDER, partition, instant + _EXTENSION)


def _range_id(start: int, end: int, partition: str) -> str:
    """Return Java's ``UUID.nameUUIDFromBytes`` of a range and its partition."""
    name = start.to_bytes(8, "big") + end.to_bytes(8, "big") + partition.encode()
    return str(uuid.UUID(bytes=hashlib.md5(name, usedforsecurity=False).digest(), version=3))
