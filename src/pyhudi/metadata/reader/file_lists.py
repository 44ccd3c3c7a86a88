"""Lists of files by partition, as stored in the ``files`` partition of the metadata table."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc


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
