"""File groups of a record index by key; docs/format/metadata.md, 1.4, 1.5 and 7.3.

A global index distributes all keys over all its file groups. A partitioned one has file groups for each partition of
the table, named after it, over which the keys of the partition are distributed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from pyhudi.format.java_hash import java_hashes
from pyhudi.metadata.records.file_group_hash import file_group_index_of
from pyhudi.metadata.records.metadata_keys import data_partition_id

PREFIX = "record-index-"
NO_FILE_GROUP = -1
_OLD_UNPARTITIONED = "."
"""Name of the partition of an unpartitioned table in indexes of early versions of pyhudi, which Apache Hudi cannot
update."""
_AVERAGE_RECORD = 48
_GROWING, _MAX_GROUP_BYTES = 2.0, 1 << 30
Index = npt.NDArray[np.int32]


@dataclass(frozen=True, slots=True)
class RecordIndexFileGroups:
    """File groups of a record index: their ``ids``, in the order of their numbers.

    ``spans``: for a partitioned index, the first number and the count of the file groups of each partition of the
    table, by the partition name in ids; None: the index is global.
    """

    ids: tuple[str, ...]
    spans: Mapping[str, tuple[int, int]] | None = None

    @classmethod
    def from_ids(cls, ids: Iterable[str], *, partitioned: bool) -> RecordIndexFileGroups:
        """Return the groups with these ids."""
        ordered = tuple(sorted(ids))
        if not partitioned:
            return cls(ordered)
        spans: dict[str, tuple[int, int]] = {}
        for number, file_id in enumerate(ordered):
            name = file_id.removeprefix(PREFIX).rsplit("-", 2)[0]
            first, count = spans.get(name, (number, 0))
            spans[name] = (first, count + 1)
        if _OLD_UNPARTITIONED in spans:
            spans.setdefault("", spans.pop(_OLD_UNPARTITIONED))
        return cls(ordered, spans)

    @classmethod
    def from_written_ids(cls, ids: Sequence[str]) -> RecordIndexFileGroups:
        """Return the groups of an index that has been written: one of its ids shows whether it is partitioned."""
        return cls.from_ids(ids, partitioned=any(_id_prefix(file_id) != PREFIX for file_id in ids[:1]))

    @property
    def partitioned(self) -> bool:
        """True if keys are distinguished by partition."""
        return self.spans is not None

    def __len__(self) -> int:
        return len(self.ids)

    def prefix(self, number: int) -> str:
        """Return the prefix of the ids of all file groups that share keys with this one."""
        return _id_prefix(self.ids[number])

    def prefixes(self, partitions: Iterable[str] | None = None) -> list[str]:
        """Return the prefixes of ids, sorted, one for all file groups that share keys; None: of all partitions of the
        table."""
        if self.spans is None:
            return [PREFIX]
        names = self.spans.keys() if partitions is None else self.spans.keys() & map(data_partition_id, partitions)
        return sorted(self.prefix(self.spans[name][0]) for name in names)

    def contradicts(self, others: RecordIndexFileGroups) -> bool:
        """Return True if a partition has another number of file groups in both, so that its keys are in others."""
        if self.spans is None or others.spans is None:
            return False
        return any(self.spans[name][1] != others.spans[name][1] for name in self.spans.keys() & others.spans.keys())

    def missing(self, partitions: Iterable[str]) -> list[str]:
        """Return the partitions of the table that have no file groups."""
        if self.spans is None:
            return []
        return [path for path in partitions if data_partition_id(path) not in self.spans]

    def numbers(self, keys: pa.Array, partitions: pa.Array | str) -> Index:
        """Return the file group number of each key in its partition; `NO_FILE_GROUP` if a partition has none."""
        if self.spans is None:
            return file_group_index_of(keys, len(self.ids))
        if isinstance(partitions, str):
            first, count = self.spans.get(data_partition_id(partitions), (NO_FILE_GROUP, 1))
            return file_group_index_of(keys, count) + np.int32(first)
        encoded = partitions.dictionary_encode()
        spans_of_paths = [
            self.spans.get(data_partition_id(path), (NO_FILE_GROUP, 1)) for path in encoded.dictionary.to_pylist()
        ]
        spans = np.array(spans_of_paths, np.int64).reshape(-1, 2)[encoded.indices.to_numpy(zero_copy_only=False)]
        numbers: Index = (spans[:, 0] + np.abs(java_hashes(keys).astype(np.int64)) % spans[:, 1]).astype(np.int32)
        return numbers


def new_group_ids(partitions: Mapping[str, int]) -> list[str]:
    """Return the ids of the initial file groups of a partitioned index; ``partitions`` are their numbers per partition
    of the table."""
    return [f"{PREFIX}{data_partition_id(path)}-{n:04d}-0" for path, count in partitions.items() for n in range(count)]


def _id_prefix(file_id: str) -> str:
    return file_id.rsplit("-", 2)[0] + "-"


def estimate_file_group_count(keys: int, min_groups: int, max_groups: int) -> int:
    """Return the initial number of file groups of a record index of ``keys`` keys, as in Apache Hudi."""
    if min_groups == max_groups:
        return min_groups
    count = -(-int(keys * _GROWING) // (_MAX_GROUP_BYTES // _AVERAGE_RECORD))
    return max(min_groups, min(count, max_groups))
