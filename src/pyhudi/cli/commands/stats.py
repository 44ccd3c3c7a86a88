"""``pyhudi stats``: sizes of written files, and write amplification."""

from __future__ import annotations

import pyhudi
from pyhudi.cli.columns import AMPLIFICATION, FILE_SIZES
from pyhudi.cli.output import Output
from pyhudi.cli.parameters import with_limit, with_output, with_table
from pyhudi.cli.structure import noun

stats = noun("stats", "Statistics of writes: file-sizes, write-amplification.")


@stats.command("file-sizes")
@with_table
@with_limit
@with_output
def file_sizes(table: pyhudi.HudiTable, *, out: Output, limit: int | None) -> None:
    """Show how large the files of each write are.

    Python: HudiTable.for_path(PATH).inspect.file_sizes()
    """
    out.rows(table.inspect.file_sizes(), FILE_SIZES, limit=limit, nothing="no files were written")


@stats.command("write-amplification")
@with_table
@with_limit
@with_output
def write_amplification(table: pyhudi.HudiTable, *, out: Output, limit: int | None) -> None:
    """Show how many rows each write has written for each that it has updated.

    Python: HudiTable.for_path(PATH).inspect.write_amplification()
    """
    out.rows(table.inspect.write_amplification(), AMPLIFICATION, limit=limit, nothing="no writes")
