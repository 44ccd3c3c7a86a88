"""Consistent hashing: the buckets of a partition are ranges of hashes, each with a file group, kept in a small file.

``.hoodie/.bucket_index/consistent_hashing_metadata/<partition>/<instant>.hashing_meta``; see docs/format/metadata.md,
7.2. The first file of a partition follows from its path and the number of buckets alone, so that writers who make it
at once make the same one. Splitting or merging buckets writes another file, with the instant of the clustering.
"""

from __future__ import annotations

import hashlib
import json
import uuid
from collections.abc import Collection, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.errors import AlreadyExistsError, FormatError
from pyhudi.format.xxh32 import xxh32
from pyhudi.index.bucket_hash import values_of
from pyhudi.keygen.key_spec import EMPTY_KEY_PART, NULL_KEY_PART
from pyhudi.storage import Storage, join_path

FOLDER = ".hoodie/.bucket_index/consistent_hashing_metadata"
FIRST_INSTANT = "00000000000000"
_EXTENSION, _DONE = ".hashing_meta", ".commit"
_MAX = 0x7FFFFFFF
_THREADS = 16
_JAVA_NULL = "null"  # what Java makes of a null when it joins texts


@dataclass(frozen=True, slots=True)
class HashingMetadata:
    """The buckets of a partition: bucket ``i`` has the hashes up to ``ends[i]``, ascending, that the one before it has
    not, and a file group whose id begins with ``prefixes[i]``."""

    partition: str
    instant: str
    ends: npt.NDArray[np.int64]
    prefixes: tuple[str, ...]

    @classmethod
    def first(cls, partition: str, buckets: int) -> HashingMetadata:
        """The buckets that a partition begins with: equal ranges."""
        step = -(-_MAX // buckets)
        ends = [min(i * step, _MAX) for i in range(1, buckets + 1)]
        starts = [0, *ends[:-1]]
        prefixes = tuple(_range_id(start, end, partition) for start, end in zip(starts, ends, strict=True))
        return cls(partition, FIRST_INSTANT, np.array(ends, dtype=np.int64), prefixes)

    @classmethod
    def decode(cls, data: bytes, path: str) -> HashingMetadata:
        """Read a file.

        Raises:
            FormatError: it is damaged.
        """
        try:
            found: dict[str, Any] = json.loads(data)
            nodes = sorted((int(node["value"]), str(node["fileIdPrefix"])) for node in found["nodes"])
            ends, prefixes = zip(*nodes, strict=True)
            return cls(str(found["partitionPath"]), str(found["instant"]), np.array(ends, dtype=np.int64), prefixes)
        except (ValueError, KeyError, TypeError, UnicodeDecodeError) as error:
            raise FormatError(f"{path} is no list of the buckets of consistent hashing: {error!r}") from error

    def encode(self) -> bytes:
        """The file, as Apache Hudi writes it."""
        nodes = ", ".join(
            f'{{\n    "value" : {int(end)},\n    "fileIdPrefix" : "{prefix}",\n    "tag" : "NORMAL"\n  }}'
            for end, prefix in zip(self.ends, self.prefixes, strict=True)
        )
        text = (
            f'{{\n  "version" : 0,\n  "partitionPath" : {json.dumps(self.partition)},\n'
            f'  "instant" : "{self.instant}",\n'
            f'  "numBuckets" : {len(self.ends)},\n  "seqNo" : 0,\n  "nodes" : [ {nodes} ]\n}}'
        )
        return text.encode()

    def buckets_of(self, hashes: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """The buckets of hashes (`hashes_of`); hashes beyond the last one belong to the first."""
        found: npt.NDArray[np.int64] = np.searchsorted(self.ends, hashes, side="left") % len(self.ends)
        return found

    def file_ids(self) -> list[str]:
        """The file group of each bucket."""
        return [f"{prefix}-0" for prefix in self.prefixes]


def hashes_of(keys: pa.Array, fields: Collection[str], *, splits_any: bool = False) -> npt.NDArray[np.int64]:
    """The hashes of record keys, by the values of the ``fields`` in them (as
    `pyhudi.index.bucket_hash.hash_values`)."""
    rows, values = values_of(keys, fields, splits_any=splits_any)
    if values is keys:
        return (xxh32(keys) & np.uint32(_MAX)).astype(np.int64)
    values = pc.if_else(pc.equal(values, NULL_KEY_PART), _JAVA_NULL, values)
    values = pc.if_else(pc.equal(values, EMPTY_KEY_PART), "", values)
    offsets = np.concatenate([[0], np.cumsum(np.bincount(rows, minlength=len(keys)))])
    texts = pc.binary_join(pa.LargeListArray.from_arrays(pa.array(offsets, pa.int64()), values), "")
    return (xxh32(texts) & np.uint32(_MAX)).astype(np.int64)


def load_metadata(
    storage: Storage, partitions: Collection[str], completed: Collection[str]
) -> dict[str, HashingMetadata]:
    """The buckets of those partitions that have some.

    ``completed`` are the requested times of completed instants: files of a resize that is not done do not count.

    Raises:
        FormatError: a file is damaged.
    """

    def load(partition: str) -> HashingMetadata | None:
        folder = join_path(FOLDER, partition)
        names = [path.rpartition("/")[2] for path in storage.list(folder)["path"].to_pylist()]
        marked = {name.removesuffix(_DONE) for name in names if name.endswith(_DONE)}
        instants = [name.removesuffix(_EXTENSION) for name in names if name.endswith(_EXTENSION)]
        valid = [i for i in instants if i == FIRST_INSTANT or i in marked or i in completed]
        if not valid:
            return None
        path = join_path(folder, max(valid) + _EXTENSION)
        return HashingMetadata.decode(storage.read(path), path)

    with ThreadPoolExecutor(_THREADS) as pool:
        found = zip(partitions, pool.map(load, partitions), strict=True)
        return {partition: metadata for partition, metadata in found if metadata is not None}


def known_partitions(storage: Storage) -> list[str]:
    """The partitions that have buckets."""
    files = storage.list(FOLDER, recursive=True)["path"].to_pylist()
    return sorted({path.removeprefix(FOLDER).rpartition("/")[0].strip("/") for path in files})


def store_first(storage: Storage, metadata: Mapping[str, HashingMetadata]) -> None:
    """Write the first files of partitions, unless they are there."""
    for partition, first in metadata.items():
        # another writer may have been faster
        with suppress(AlreadyExistsError):
            storage.create(join_path(FOLDER, partition, FIRST_INSTANT + _EXTENSION), first.encode())


def _range_id(start: int, end: int, partition: str) -> str:
    """Java's ``UUID.nameUUIDFromBytes`` of a range and its partition."""
    name = start.to_bytes(8, "big") + end.to_bytes(8, "big") + partition.encode()
    return str(uuid.UUID(bytes=hashlib.md5(name, usedforsecurity=False).digest(), version=3))
