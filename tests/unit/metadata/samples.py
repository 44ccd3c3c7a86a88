"""Content of the golden tables' metadata tables: HFiles with the table version and the partition that they belong
to."""

from __future__ import annotations

import functools
from dataclasses import dataclass

import pyarrow as pa

from pyhudi.format.hfile.hfile_reader import HFileReader
from pyhudi.format.hfile.key_values import ENTRY_SCHEMA
from pyhudi.format.log import BlockType, scan_blocks
from tests.unit.format import golden

MARK = "/.hoodie/metadata/"


@dataclass(frozen=True)
class GoldenFile:
    """An HFile: ``data`` of a base file or a log block, ``schema`` as its reader requires it."""

    table: str
    partition: str
    name: str
    data: bytes
    schema: str

    @property
    def version(self) -> int:
        """Return the table version of the schema: the version that the release of the file writes."""
        if "SecondaryIndexMetadata" not in self.schema:
            return 6
        return 9 if "valueType" in self.schema else 8

    def entries(self) -> pa.Table:
        return pa.Table.from_batches(HFileReader(self.data).batches(), ENTRY_SCHEMA).combine_chunks()


@functools.cache
def golden_files() -> tuple[GoldenFile, ...]:
    """Return all HFiles and HFile blocks of all golden metadata tables."""
    found = []
    for table in golden.names():
        for path, data in golden.files(table, metadata_table=True):
            if MARK not in path:
                continue
            partition, _, name = path.partition(MARK)[2].rpartition("/")
            if name.endswith(".hfile"):
                schema = HFileReader(data).schema
                assert schema is not None
                found.append(GoldenFile(table, partition, name, data, schema))
            elif ".log." in name and not partition.startswith(".hoodie"):
                for block in scan_blocks(data):
                    if block.type is BlockType.HFILE_DATA:
                        content = bytes(block.content())
                        schema = block.schema or ""
                        found.append(GoldenFile(table, partition, name, content, schema))
    return tuple(found)
