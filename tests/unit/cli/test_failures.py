"""Errors, wrong commands, warnings and interrupts: a few lines, and the exit code."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
import types
from pathlib import Path

import click
import pytest

from pyhudi.cli import failures, main
from pyhudi.cli.failures import message_of
from pyhudi.cli.hudi_cli_names import COMMANDS
from pyhudi.cli.program import program
from pyhudi.cli.structure import Noun
from pyhudi.errors import BusyError, ConflictError, StorageError
from tests.unit.cli.runner import pyhudi
from tests.unit.services.merge_on_read_table import MorTable, row


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = MorTable(tmp_path_factory.mktemp("failures") / "t")
    made.load([row("a0", "a", 0, "x"), row("b0", "b", 0, "x")])
    return made.root


def test_there_is_no_table(tmp_path: Path) -> None:
    failed = pyhudi("table", "describe", tmp_path, code=1)
    assert failed.stderr.startswith("error: ")
    assert "Traceback" not in failed.output
    assert not failed.stdout
    assert "Traceback" in pyhudi("table", "describe", tmp_path, "--traceback", code=1).stderr


def test_there_is_a_table_of_another_format(tmp_path: Path) -> None:
    (tmp_path / "_delta_log").mkdir()
    (line,) = pyhudi("table", "describe", tmp_path, code=1).stderr.splitlines()
    assert line.startswith(f"error: there is no Hudi table at '{tmp_path}': it is a Delta Lake table (_delta_log)")


def test_there_is_no_such_instant(path: Path) -> None:
    assert "commits list" in pyhudi("commits", "show", path, "20200101000000000", code=1).stderr
    assert "20200101000000000" in pyhudi("timeline", "show", path, "20200101000000000", code=1).stderr
    assert "no instant" in pyhudi("commits", "show", path, "yesterday", code=2).stderr


def test_wrong_commands(path: Path) -> None:
    assert "No such command 'comit'" in pyhudi("comit", code=2).stderr
    assert pyhudi("commits", "list", code=2).stderr
    assert "is not KEY=VALUE" in pyhudi("scan", path, "-o", "hoodie.x", code=2).stderr


def test_commands_of_other_tools(path: Path) -> None:
    assert "Use `pyhudi table report`" in pyhudi("report", path, code=2).stderr
    assert "Use `pyhudi clean run`" in pyhudi("vacuum", code=2).stderr


def test_commands_of_hudi_cli(path: Path) -> None:
    assert "`pyhudi table describe`" in pyhudi("desc", code=2).stderr
    assert "`pyhudi files slices`" in pyhudi("show", "fsview", "all", code=2).stderr
    assert "`pyhudi restore`" in pyhudi("savepoint", "rollback", path, code=2).stderr
    for name, command in COMMANDS.items():
        assert "Usage" in pyhudi(*command.split(), "--help").stdout, name
        assert not found(program, name.split()), f"{name} is a command here, too"


def found(group: Noun, words: list[str]) -> bool:
    """Return whether the words lead to a command."""
    command = group.get_command(click.Context(group), words[0])
    if isinstance(command, Noun) and words[1:]:
        return found(command, words[1:])
    return command is not None and not isinstance(command, Noun)


def test_options_are_checked(path: Path) -> None:
    misspelt = pyhudi("scan", path, "-o", "hoodie.clean.comits.retained=1", code=2).stderr
    assert "hoodie.clean.commits.retained" in misspelt
    assert (
        "hoodie.clean.commits.retained" in pyhudi("scan", path, "-o", "hoodie.clean.commits.retained=x", code=2).stderr
    )
    pyhudi("scan", path, "-o", "my.own=setting")


def test_options_from_a_file(path: Path, tmp_path: Path) -> None:
    file = tmp_path / "options.properties"
    file.write_text("hoodie.clean.policy=KEEP_LATEST_FILE_VERSIONS\nhoodie.clean.fileversions.retained=1\n")
    text = pyhudi("clean", "run", path, "--options-file", file, "--dry-run").stdout
    assert "nothing to do" in text
    file.write_text("hoodie.clean.polizy=x\n")
    assert "hoodie.clean.policy" in pyhudi("clean", "run", path, "--options-file", file, code=2).stderr


def test_a_filter_that_needs_spark(path: Path) -> None:
    failed = pyhudi("scan", path, "--where", "upper(v) = 'X'", code=1).stderr
    assert failed.startswith("error: ")
    assert "on the command line: --where takes only such conditions" in failed


def test_python_is_told_in_commands() -> None:
    error = BusyError("a compaction is pending; run it (services.run_compaction()), or downgrade with lossy=True")
    assert message_of(error).splitlines()[1:] == [
        "on the command line: pyhudi compaction run PATH --pending",
        "on the command line: --lossy",
    ]


def test_what_messages_name_of_services_has_a_command() -> None:
    source = Path(failures.__file__).parents[1]
    texts = [
        node.value
        for file in source.rglob("*.py")
        if "spark" not in file.relative_to(source).parts
        for node in ast.walk(ast.parse(file.read_text()))
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and "\n" not in node.value
    ]
    named = {name for text in texts for name in re.findall(r"services\.[a-z_]+(?=\()", text)}
    assert len(named) > 8
    assert {
        name for name in named if not any(name.startswith(one.rstrip("(")) for one in failures.IN_COMMANDS)
    } == set()


def test_commands_that_need_spark(path: Path) -> None:
    failed = pyhudi("repair", "deduplicate", path, "--partition", "a", "--yes", code=1).stderr
    assert "on the command line: --spark 'local[*]'" in failed


def test_summaries_are_whole() -> None:
    for noun in (name for name, command in program.commands.items() if isinstance(command, Noun)):
        text = pyhudi(noun, "--help", width=80).stdout
        assert "..." not in text.replace("[ARGS]...", "")
        assert max(map(len, text.splitlines())) <= 80


def test_empty_arguments(path: Path) -> None:
    assert "Invalid value for 'PATH': it is empty" in pyhudi("scan", "", code=2).stderr
    assert "the filter is an empty text" in pyhudi("scan", path, "--where", " ", code=1).stderr


def test_changes_of_a_table_that_logs_none(path: Path) -> None:
    assert "on the command line: pyhudi scan PATH --begin TIME" in pyhudi("changes", path, code=1).stderr


def test_columns_that_do_not_exist(path: Path) -> None:
    for more in ((), ("--count",)):
        assert "nowhere" in pyhudi("scan", path, "--columns", "nowhere", *more, code=1).stderr


def test_causes_are_told() -> None:
    error = ConflictError("another writer was first")
    error.__cause__ = StorageError("the disk is full")
    assert message_of(error) == "another writer was first\ncause: the disk is full"
    error.__cause__ = OSError("another writer was first\n\nDebug source: …")
    assert message_of(error) == "another writer was first"
    assert "TypeError" in message_of(TypeError("x"))
    assert "--traceback" in message_of(TypeError("x"))


def test_interrupts(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("pyhudi.HudiTable.detail", interrupted)
    assert pyhudi("table", "describe", path, code=130).stderr.strip() == "interrupted"


def test_an_interrupt_of_the_start(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    class Interrupted(types.ModuleType):
        def __getattr__(self, name: str) -> object:
            raise KeyboardInterrupt if name == "program" else AttributeError(name)

    monkeypatch.setitem(sys.modules, "pyhudi.cli.program", Interrupted("pyhudi.cli.program"))
    with pytest.raises(SystemExit) as exit_of:
        main()
    assert exit_of.value.code == 130
    assert capsys.readouterr().err == "interrupted\n"


def test_warnings_are_lines(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import warnings

    from pyhudi import HudiTable

    def warned(_: HudiTable) -> dict[str, object]:
        warnings.warn("something is odd", UserWarning, stacklevel=2)
        return {}

    monkeypatch.setattr(HudiTable, "detail", warned)
    assert pyhudi("table", "describe", path).stderr == "warning: something is odd\n"


def test_every_command_has_help() -> None:
    from pyhudi.cli.program import program

    names = [(name,) for name in program.commands] + [
        (name, verb) for name, noun in program.commands.items() for verb in getattr(noun, "commands", {})
    ]
    assert len(names) > 60
    for words in names:
        text = pyhudi(*words, "--help", width=80).stdout
        assert text.startswith(f"Usage: pyhudi {' '.join(words)}")
        assert all(len(line) <= 100 for line in text.splitlines())
        if len(words) == 2 and words[0] != "options":
            assert "Python:" in text, words


def in_process(*arguments: str, **settings: str) -> subprocess.CompletedProcess[str]:
    environment = os.environ | {"COLUMNS": "100"} | settings
    return subprocess.run([sys.executable, *arguments], capture_output=True, text=True, env=environment, timeout=120)


def test_the_module_is_the_command(path: Path) -> None:
    done = in_process("-m", "pyhudi", "commits", "list", str(path))
    assert (done.returncode, done.stderr) == (0, "")
    assert "bulk_insert" in done.stdout


def test_closed_pipes_are_quiet(path: Path) -> None:
    command = f"{sys.executable} -m pyhudi scan {path} --output json | true"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_without_the_packages_the_error_says_what_to_install() -> None:
    script = "import sys; sys.modules['click'] = None; sys.argv = ['pyhudi']; from pyhudi.cli import main; main()"
    done = in_process("-c", script)
    assert done.returncode == 1
    assert "pip install 'pyhudi[cli]'" in done.stderr
    assert "Traceback" not in done.stderr


def test_shells_complete_options() -> None:
    done = in_process("-m", "pyhudi", _PYHUDI_COMPLETE="bash_complete", COMP_WORDS="pyhudi comm", COMP_CWORD="1")
    assert "commits" in done.stdout
    words = {"COMP_WORDS": "pyhudi clean run t -o hoodie.clean.pol", "COMP_CWORD": "5"}
    assert "hoodie.clean.policy=" in in_process("-m", "pyhudi", _PYHUDI_COMPLETE="bash_complete", **words).stdout
