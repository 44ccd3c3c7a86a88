"""Report of a table in the terminal: details, latest instants, and partitions with files, sizes and rows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from pyhudi.errors import SetupError
from pyhudi.report.number_text import bytes_text, count_text, instant_text

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from pyhudi.api.hudi_table import HudiTable

INSTANTS_SHOWN = 10
PARTITIONS_SHOWN = 15
_INSTANT = "instant"


def print_report(table: HudiTable, console: Console | None = None) -> None:
    """Print the details of the table, its newest instants and its largest partitions.

    Reads the timeline and lists the files; no data files are opened. Row counts of a partition are taken from the
    commits of the active timeline, and omitted if a file is older.

    Raises:
        SetupError: The package ``rich`` is missing.
    """
    try:
        from rich.console import Console
    except ImportError as error:
        raise SetupError("reports require the package rich: pip install 'pyhudi[report]'") from error
    console = console or Console(highlight=False)
    detail = table.detail()
    console.print(_detail_table(detail))
    console.print(_instants(table.history()))
    console.print(_partitions(table))


def _detail_table(detail: Mapping[str, Any]) -> Table:
    facts = {
        "table": f"{detail['name']}  ({detail['table_type']}, version {detail['table_version']})",
        "path": detail["path"],
        "record key": ", ".join(detail["record_keys"]) or "generated",
        "partitioned by": ", ".join(detail["partition_fields"]) or "nothing",
        "newest wins by": ", ".join(detail["ordering_fields"]) or "order of writes",
        "size": f"{bytes_text(detail['size'])} in {count_text(detail['files'])} files, "
        f"{count_text(detail['file_groups'])} file groups, {count_text(detail['partitions'])} partitions",
    }
    if detail["pending"]:
        facts["unfinished"] = ", ".join(detail["pending"])
    grid = _table(None, [("", "left"), ("", "left")], header=False)
    for name, value in facts.items():
        grid.add_row(f"[bold]{name}[/]", _plain(value))
    return grid


def _instants(history: pa.Table) -> Table:
    columns = [_INSTANT, "what", "files", "inserted", "updated", "deleted", "written"]
    shown = history.slice(0, INSTANTS_SHOWN).to_pylist()
    title = f"Instants (newest {len(shown)} of {history.num_rows})"
    result = _table(title, [(name, "left" if i < 2 else "right") for i, name in enumerate(columns)])
    for row in shown:
        counts = (row["files_written"], row["rows_inserted"], row["rows_updated"], row["rows_deleted"])
        what = (row["operation"] or row["action"]).lower()
        result.add_row(
            instant_text(row["requested"]),
            what if row["state"].lower() == "completed" else f"{what}, {row['state'].lower()}",
            *map(count_text, counts),
            bytes_text(row["bytes_written"]),
        )
    return result


def _partitions(table: HudiTable) -> Table:
    files = table.inspect.files()
    written = (
        table.inspect.commits().select(["path", "rows_written"]).group_by("path").aggregate([("rows_written", "max")])
    )
    joined = files.join(written, "path", join_type="left outer")
    joined = joined.append_column("unknown", joined["rows_written_max"].is_null().cast(pa.int64()))
    sums = [("path", "count"), ("size", "sum"), ("rows_written_max", "sum"), ("unknown", "sum")]
    by_partition = joined.group_by("partition").aggregate(sums).sort_by([("size_sum", "descending")])
    total, shown = by_partition.num_rows, by_partition.slice(0, PARTITIONS_SHOWN).sort_by("partition")
    title = (
        f"Partitions ({total})" if total <= PARTITIONS_SHOWN else f"Partitions (largest {PARTITIONS_SHOWN} of {total})"
    )
    result = _table(title, [("partition", "left"), ("files", "right"), ("size", "right"), ("rows", "right")])
    for row in shown.to_pylist():
        rows = "" if row["unknown_sum"] else count_text(row["rows_written_max_sum"])
        name = row["partition"] or "(not partitioned)"
        result.add_row(_plain(name), count_text(row["path_count"]), bytes_text(row["size_sum"]), rows)
    return result


def _table(title: str | None, columns: Iterable[tuple[str, Any]], *, header: bool = True) -> Table:
    from rich import box
    from rich.table import Table

    result = Table(
        title=title,
        title_justify="left",
        title_style="bold",
        show_header=header,
        box=box.SIMPLE_HEAD,
        pad_edge=False,
        collapse_padding=True,
    )
    for name, justify in columns:
        result.add_column(name, justify=justify, no_wrap=justify == "right" or name == _INSTANT, overflow="fold")
    return result


def _plain(text: str) -> str:
    """Return a text that rich does not interpret as markup."""
    from rich.markup import escape

    return escape(text)
