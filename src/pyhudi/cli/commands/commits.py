"""``pyhudi commits``: completed and pending writes, their files and partitions."""

from __future__ import annotations

import click
import pyarrow as pa
import pyarrow.compute as pc

import pyhudi
from pyhudi.cli.columns import COMMITS, COMPARED, WRITTEN_FILES, WRITTEN_PARTITIONS, rows_where
from pyhudi.cli.instants import print_instants
from pyhudi.cli.output import Output
from pyhudi.cli.parameters import InstantTime, TablePath, with_limit, with_output, with_path, with_table
from pyhudi.cli.structure import noun
from pyhudi.errors import InstantNotFoundError
from pyhudi.report.row_table import text_column

_WRITES = ("commit", "deltacommit", "replacecommit", "compaction", "logcompaction", "clustering")
_SUMS = ("rows_written", "rows_inserted", "rows_updated", "rows_deleted", "bytes_written", "file_size")

commits = noun("commits", "Writes of a table: list, show, files, partitions, compare.")


@commits.command("list")
@with_table
@click.option("--archived", is_flag=True, help="Also those that have left the active timeline.")
@with_limit
@with_output
def list_commits(table: pyhudi.HudiTable, *, out: Output, archived: bool, limit: int | None) -> None:
    """List writes, newest first.

    Python: HudiTable.for_path(PATH).history(archived=…)
    """
    out.rows(_writes(table, archived=archived), COMMITS, limit=limit, nothing="no writes")


@commits.command("show")
@with_table
@click.argument("instant", type=InstantTime())
@with_output
def show(table: pyhudi.HudiTable, *, out: Output, instant: str) -> None:
    """Show one write: its times, its state, and what it has written.

    Python: HudiTable.for_path(PATH).history(archived=True)
    """
    print_instants(table, _writes(table, archived=True), instant, out, noun="write", listed_by="pyhudi commits list")


@commits.command("files")
@with_table
@click.argument("instant", type=InstantTime(), required=False)
@click.option("--partition", metavar="PARTITION", help="Only those in the partition with this path.")
@click.option("--file-group", metavar="ID", help="Only those of this file group, as `pyhudi files slices` names it.")
@with_limit
@with_output
def files(
    table: pyhudi.HudiTable,
    *,
    out: Output,
    instant: str | None,
    partition: str | None,
    file_group: str | None,
    limit: int | None,
) -> None:
    """List the files that the write INSTANT has written; without one, those of all writes of the active timeline.

    Python: HudiTable.for_path(PATH).inspect.commits()
    """
    rows = table.inspect.commits().to_arrow() if instant is None else _files_of(table, instant)
    rows = rows_where(rows, partition=partition, file_id=file_group)
    instant_shown = (text_column("requested", "instant", is_whole=True),) if instant is None else ()
    out.rows(rows, (*instant_shown, *WRITTEN_FILES), limit=limit, nothing="no files were written")


@commits.command("partitions")
@with_table
@click.argument("instant", type=InstantTime())
@with_limit
@with_output
def partitions(table: pyhudi.HudiTable, *, out: Output, instant: str, limit: int | None) -> None:
    """Sum up what one write of the active timeline has written, by partition.

    Python: HudiTable.for_path(PATH).inspect.commits()
    """
    grouped = _files_of(table, instant).group_by("partition")
    sums = grouped.aggregate([("path", "count"), *((name, "sum") for name in _SUMS)]).sort_by("partition")
    out.rows(sums.rename_columns(["partition", "files", *_SUMS]), WRITTEN_PARTITIONS, limit=limit)


@commits.command("compare")
@with_path
@click.argument("other", type=TablePath(), metavar="OTHER")
@with_limit
@with_output
def compare(path: str, *, options: dict[str, str], out: Output, other: str, limit: int | None) -> None:
    """List the completed writes, archived ones included, that only one of the tables PATH and OTHER has, newest first:
    how far a copy is behind.

    Python: HudiTable.for_path(PATH).history(archived=True)
    """
    of_both = [
        (
            table_path,
            rows_where(_writes(pyhudi.HudiTable.for_path(table_path, options), archived=True), state="COMPLETED"),
        )
        for table_path in (path, other)
    ]
    rows = []
    for (table_path, mine), (_, theirs) in (of_both, of_both[::-1]):
        own = mine.filter(pc.invert(pc.is_in(mine["requested"], theirs["requested"].combine_chunks())))
        rows.append(own.append_column("only_in", pa.array([table_path] * own.num_rows, pa.string())))
    newest_first = pa.concat_tables(rows).sort_by([("requested", "descending")])
    out.rows(newest_first, COMPARED, limit=limit, nothing="both tables have the same writes")


def _writes(table: pyhudi.HudiTable, *, archived: bool) -> pa.Table:
    history = table.history(archived=archived).to_arrow()
    return history.filter(pc.is_in(history["action"], pa.array(_WRITES)))


def _files_of(table: pyhudi.HudiTable, instant: str) -> pa.Table:
    """Return the files of a write.

    Raises:
        InstantNotFoundError: The active timeline has no such completed write with files.
    """
    written = rows_where(table.inspect.commits().to_arrow(), requested=instant)
    if not written.num_rows:
        raise InstantNotFoundError(
            f"the active timeline of {table.path} has no completed write {instant!r} with files; "
            "`pyhudi commits list` shows its writes"
        )
    return written
