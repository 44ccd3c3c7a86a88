"""The commands of docs/cli.md run, in their order, on one table."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

from pyhudi.cli.program import program
from tests.unit.cli.runner import pyhudi
from tests.unit.services.merge_on_read_table import FAST, FILE_IDS, MorTable, row

GUIDE = (Path(__file__).parents[3] / "docs" / "cli.md").read_text()


def test_commands(tmp_path: Path) -> None:
    made = MorTable(tmp_path / "rides")
    made.load([row(f"{p}{n}", p, n, "x") for p in FILE_IDS for n in range(4)])
    instant = made.delta([row("a0", "a", 7, "y")])
    made.delta([row("b0", "b", 8, "y")])
    made.table.services.delete_metadata_table()
    made.table.services.create_metadata_table()  # with the sizes of the files, which the writes of tests leave out
    blocks = re.findall(r"```console\n(.*?)```", GUIDE, re.DOTALL)
    lines = [line for block in blocks for line in block.splitlines() if line.startswith("pyhudi ")]
    assert len(lines) > 30
    skew = [part for key, value in FAST.items() for part in ("-o", f"{key}={value}")]
    for line in lines:
        words = shlex.split(line.replace("/tables/rides", str(made.root)).replace("$INSTANT", instant))[1:]
        pyhudi(*words, *(skew if words[0] != "options" else []))


def test_the_commands_that_the_guide_names_exist() -> None:
    rows = re.findall(r"^\| `.*\| (.*) \|$", GUIDE[GUIDE.index("| hudi-cli |") :], re.MULTILINE)
    named = [text.split() for row in rows for text in re.findall(r"`([a-z][^`]*)`", row)]
    nouns = {words[0] for words in named} & set(program.commands)
    assert len(nouns) > 15
    for noun, *rest in named:
        group = getattr(program.commands.get(noun), "commands", None)
        if group is not None and rest and not rest[0].startswith("-"):
            assert rest[0] in group, (noun, rest)
