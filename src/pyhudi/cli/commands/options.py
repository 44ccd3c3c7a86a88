"""``pyhudi options``: the options of Apache Hudi and of pyhudi."""

from __future__ import annotations

import click
import pyarrow as pa

from pyhudi.cli.output import Output
from pyhudi.cli.parameters import traceback_option, with_limit, with_output
from pyhudi.cli.structure import noun
from pyhudi.config.option_search import OptionFacts, find_options, option_facts
from pyhudi.report.row_table import ShownColumn, text_column

options = noun("options", "Options of tables, writes and services: search, show.")
_COLUMNS = (
    text_column("key"),
    text_column("default"),
    ShownColumn("meaning", lambda row: row["meaning"], min_width=100),
)
_SCHEMA = pa.schema([(name, pa.string()) for name in ("key", "type", "default", "allowed", "meaning", "aliases")])


@options.command("search")
@click.argument("words", nargs=-1, required=True, metavar="TEXT…")
@click.option("--all", "with_unused", is_flag=True, help="Also options of Apache Hudi that have no effect in pyhudi.")
@traceback_option
@with_limit
@with_output
def search(*, out: Output, words: tuple[str, ...], with_unused: bool, limit: int | None) -> None:
    """Find options whose key, older keys or meaning contain all words.

    Python: pyhudi.config.option_search.find_options(["clean", "retained"])
    """
    rows = [option.as_texts() for option in find_options(words, with_unused=with_unused)]
    out.rows(pa.Table.from_pylist(rows, schema=_SCHEMA), _COLUMNS, limit=limit, nothing="no option has these words")


@options.command("show")
@click.argument("key")
@traceback_option
@with_output
def show(*, out: Output, key: str) -> None:
    """Show type, default, values and meaning of one option.

    Python: pyhudi.config.option_search.option_facts("hoodie.clean.policy")
    """
    facts: OptionFacts = option_facts(key)
    out.facts(facts.as_texts())
