"""Lists of files by partition, as stored in the ``files`` partition of the metadata table."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.metadata.records.metadata_record import FILES_PAYLOAD


@dataclass(frozen=True, slots=True)
class FileLists:
    """Files of some partitions (paths) as listed in the metadata table: for each file the ``row`` of its partition,
    ascending, its name and its size. Files of all kinds are included, also uncommitted ones."""

    partitions: pa.StringArray
    rows: npt.NDArray[np.int64]
    names: pa.StringArray
    sizes: pa.Int64Array

    def among(self, paths: pa.StringArray) -> FileLists:
        """Return the lists of some of the partitions."""
        kept = pc.is_in(self.partitions, value_set=paths).to_numpy(zero_copy_only=False)
        if kept.all():
            return self
        places = np.flatnonzero(kept[self.rows])
        numbers, some = np.cumsum(kept) - 1, pa.array(places)
        return FileLists(
            self.partitions.filter(pa.array(kept)),
            numbers[self.rows[places]],
            self.names.take(some),
            self.sizes.take(some),
        )


def listed_files(records: pa.Table) -> pa.Table:
    """Return the entries of file lists that are not deleted: ``row`` of the record, ``name``, ``size``."""
    rows, names, sizes = [], [], []
    start = 0
    for chunk in records[FILES_PAYLOAD].chunks:
        offsets = chunk.offsets.to_numpy().astype(np.int64)
        first, count = int(offsets[0]), int(offsets[-1] - offsets[0])
        infos = chunk.items.slice(first, count)
        owner = np.repeat(np.arange(start, start + len(chunk)), np.diff(offsets))
        live = pc.invert(infos.field("isDeleted"))
        all_live = pc.all(live).as_py()
        rows.append(pa.array(owner) if all_live else pa.array(owner).filter(live))
        names.append(chunk.keys.slice(first, count) if all_live else chunk.keys.slice(first, count).filter(live))
        sizes.append(infos.field("size") if all_live else infos.field("size").filter(live))
        start += len(chunk)
    schema = pa.schema([("row", pa.int64()), ("name", pa.string()), ("size", pa.int64())])
    columns = [
        pa.chunked_array(parts, field.type).combine_chunks()
        for parts, field in zip((rows, names, sizes), schema, strict=True)
    ]
    return pa.Table.from_arrays(columns, schema=schema)
