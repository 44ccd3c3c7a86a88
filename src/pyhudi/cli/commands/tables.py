"""``pyhudi table``: what a table is, its columns and properties, and the creation of an empty one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pyhudi
from pyhudi.cli.output import Output
from pyhudi.cli.parameters import with_output, with_path, with_table
from pyhudi.cli.structure import noun
from pyhudi.report import print_report
from pyhudi.report.number_text import bytes_text, count_text, instant_text
from pyhudi.report.row_table import cell_text

table = noun("table", "A table: describe, properties, report, create.")

_COUNTS = {"partitions", "file_groups", "files"}
_INSTANTS = {"latest_instant", "latest_completion"}


@table.command("describe")
@with_table
@with_output
def describe(table: pyhudi.HudiTable, *, out: Output) -> None:
    """Show name, type, version, keys, size and state of a table.

    Python: HudiTable.for_path(PATH).detail()
    """
    detail = table.detail()
    out.facts(detail, _readable(detail))


@table.command("properties")
@with_table
@with_output
def properties(table: pyhudi.HudiTable, *, out: Output) -> None:
    """Show the properties of a table (hoodie.properties).

    Python: HudiTable.for_path(PATH).config.properties
    """
    stored = dict(table.config.properties)
    out.facts(stored, sorted(stored.items()))


@table.command("report")
@with_table
def report(table: pyhudi.HudiTable) -> None:
    """Print a page for people: the table, its newest instants and its largest partitions.

    Python: pyhudi.report.print_report(HudiTable.for_path(PATH))
    """
    print_report(table)


@table.command("create")
@with_path
@with_output
def create(path: str, options: dict[str, str], out: Output) -> None:
    """Create an empty table with the properties that the options say.

    At least -o hoodie.table.name=…; of the others (record key, partition path, table type …) the documentation of
    Apache Hudi applies.

    Python: HudiTable.create(PATH, options)
    """
    created = pyhudi.HudiTable.create(path, options)
    detail = created.detail()
    out.facts(detail, _readable(detail))


def _readable(detail: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield names and texts of what `HudiTable.detail` returns, without the properties and what is not set."""
    for name, value in detail.items():
        if name == "properties" or value is None or value in ([], ""):
            continue
        if name == "size":
            text = bytes_text(value)
        elif name in _COUNTS:
            text = count_text(value)
        elif name in _INSTANTS:
            text = f"{value}  ({instant_text(value)})"
        else:
            text = cell_text(value)
        yield name.replace("_", " "), text
