from __future__ import annotations

import contextlib
import json
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyhudi.config.property_keys import TABLE_CHECKSUM
from pyhudi.errors import FormatError
from pyhudi.table.config.properties_text import format_properties, is_intact, parse_properties, table_checksum

RECORDED = json.loads((Path(__file__).parents[1] / "data" / "java_properties.json").read_text())
NOW = datetime(2026, 11, 21, 9, 54, 17, 303534, UTC)

# all that Java strings can hold: lone halves of surrogate pairs too
java_text = st.text(st.characters(codec=None))


def body(data: bytes) -> bytes:
    return data.partition(b"\n")[2]


@pytest.mark.parametrize(("text", "expected"), RECORDED["load"], ids=[ascii(text) for text, _ in RECORDED["load"]])
def test_parses_as_java_does(text: str, expected: dict[str, str] | None) -> None:
    data = text.encode("latin-1")
    if expected is None:
        with pytest.raises(FormatError, match="invalid escape"):
            parse_properties(data)
    else:
        assert parse_properties(data) == expected


@pytest.mark.parametrize(("key", "value", "line"), RECORDED["store"])
def test_writes_as_java_does(key: str, value: str, line: str) -> None:
    assert body(format_properties({key: value}, (), NOW)).decode("latin-1") == line


def whole(text: str) -> str:
    """Two halves of a surrogate pair that stand side by side are one character, in Java as here."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "surrogatepass")


@given(st.dictionaries(java_text, java_text))
def test_what_is_written_is_read_back(properties: dict[str, str]) -> None:
    expected = {whole(key): whole(properties[key]) for key in properties}
    if len(expected) == len(properties):
        assert parse_properties(format_properties(properties, ("a comment",), NOW)) == expected


@given(st.binary())
def test_any_bytes_parse_or_are_refused(data: bytes) -> None:
    with contextlib.suppress(FormatError):
        parse_properties(data)


def test_layout_of_the_file() -> None:
    properties = {"hoodie.table.version": "9", TABLE_CHECKSUM: "1", "hoodie.table.name": "t"}
    assert format_properties(properties, ("Updated at x",), NOW).decode() == (
        "#Updated at x\n#Sat Nov 21 09:54:17 UTC 2026\n"
        "hoodie.table.name=t\nhoodie.table.version=9\nhoodie.table.checksum=1\n"
    )


@pytest.mark.parametrize(
    ("properties", "checksum"),
    [  # seen in files of Apache Hudi
        ({"hoodie.table.name": "t"}, "498511606"),
        ({"hoodie.table.name": "v6_mor_compaction", "hoodie.database.name": ""}, "1098475713"),
        ({"hoodie.table.name": "v8_mor_partial_merge", "hoodie.database.name": "default"}, "2436398843"),
    ],
)
def test_checksum(properties: dict[str, str], checksum: str) -> None:
    assert table_checksum(properties) == checksum
    assert is_intact({**properties, TABLE_CHECKSUM: checksum})
    assert not is_intact(properties)
    assert not is_intact({**properties, TABLE_CHECKSUM: "0" + checksum})


def test_every_cut_is_noticed() -> None:
    properties = {"hoodie.table.name": "t", "hoodie.zzz": "1"}
    properties[TABLE_CHECKSUM] = table_checksum(properties)
    data = format_properties(properties, ("x",), NOW)
    for length in range(len(data) - 1):  # only the last line end may be missing
        assert not is_intact(parse_properties(data[:length]))
