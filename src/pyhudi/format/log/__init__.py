"""Log files of merge-on-read tables, and of the archived timeline of version 6.

`scan_blocks` finds the blocks of a file and reads their headers. Contents are read when `decode_records` or
`decode_deletes` decodes them. `LogWriter` writes the log files of one file slice.
"""

from __future__ import annotations

from pyhudi.format.log.block_scanner import scan_blocks
from pyhudi.format.log.decoding.avro_block import avro_datums
from pyhudi.format.log.decoding.data_block import count_records, decode_matching, decode_records
from pyhudi.format.log.decoding.delete_block import decode_deletes
from pyhudi.format.log.delete_ordering import NATURAL_COLUMN
from pyhudi.format.log.log_block import DATA_BLOCKS, BlockType, Header, LogBlock
from pyhudi.format.log.log_options import LogBlockHeader, LogFile, LogOptions, LogSchema, LogSlice
from pyhudi.format.log.log_writer import LogWriter

__all__ = [
    "DATA_BLOCKS",
    "NATURAL_COLUMN",
    "BlockType",
    "Header",
    "LogBlock",
    "LogBlockHeader",
    "LogFile",
    "LogOptions",
    "LogSchema",
    "LogSlice",
    "LogWriter",
    "avro_datums",
    "count_records",
    "decode_deletes",
    "decode_matching",
    "decode_records",
    "scan_blocks",
]
