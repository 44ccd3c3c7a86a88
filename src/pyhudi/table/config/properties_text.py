"""Java properties text of ``hoodie.properties`` and its checksum. Pure functions without I/O."""

from __future__ import annotations

import re
import zlib
from collections.abc import Mapping
from datetime import datetime

from pyhudi.config import property_keys
from pyhudi.config.property_keys import TABLE_CHECKSUM
from pyhudi.errors import FormatError

_LINE_ENDS = re.compile("\r\n|\n|\r")
_BLANKS = " \t\f"
_ESCAPE = re.compile(r"\\(u.{0,4}|.|$)", re.DOTALL)
_LETTERS = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
_SHORT = {
    "\t": r"\t",
    "\n": r"\n",
    "\r": r"\r",
    "\f": r"\f",
    "\\": r"\\",
    "=": r"\=",
    ":": r"\:",
    "#": r"\#",
    "!": r"\!",
}
_TO_ESCAPE = re.compile(r"[^\x20-\x7e]|[\\=:#!]")


def parse_properties(data: bytes) -> dict[str, str]:
    r"""Parse Java properties like ``java.util.Properties.load``: Latin-1, ``\uXXXX``, continued lines, comments.

    If a key occurs twice, the last value is used. Raises FormatError for an invalid ``\u`` escape.
    """
    properties: dict[str, str] = {}
    logical = ""
    continued = False
    lines = _LINE_ENDS.split(data.decode("latin-1"))
    for raw in lines if lines[-1] else lines[:-1]:
        line = raw.lstrip(_BLANKS)
        if not logical and (not line or line[0] in "#!"):
            continued = False
            continue
        backslashes = len(line) - len(line.rstrip("\\"))
        continued = backslashes % 2 == 1
        logical += line[:-1] if continued else line
        if not continued:
            _add(properties, logical)
            logical = ""
    if continued:  # The text ends after a backslash.
        _add(properties, logical)
    return properties


def _add(properties: dict[str, str], line: str) -> None:
    end = 0
    while end < len(line) and line[end] not in "=:" + _BLANKS:
        end += 2 if line[end] == "\\" else 1
    end = min(end, len(line))
    key, rest = line[:end], line[end:].lstrip(_BLANKS)
    if rest[:1] in ("=", ":"):
        rest = rest[1:].lstrip(_BLANKS)
    properties[_unescape(key)] = _unescape(rest)


def _unescape(text: str) -> str:
    if "\\" not in text:
        return text
    plain = _ESCAPE.sub(_replacement, text)
    # Two escaped surrogates represent one character outside the basic plane.
    return plain.encode("utf-16", "surrogatepass").decode("utf-16", "surrogatepass")


def _replacement(match: re.Match[str]) -> str:
    escaped = match.group(1)
    if escaped[:1] == "u":
        if not re.fullmatch("[0-9a-fA-F]{4}", escaped[1:]):
            raise FormatError(f"invalid escape {match.group()!r} in properties; \\uXXXX requires four hex digits")
        return chr(int(escaped[1:], 16))
    return _LETTERS.get(escaped, escaped)


def format_properties(properties: Mapping[str, str], comments: tuple[str, ...], now: datetime) -> bytes:
    """Format Java properties like ``java.util.Properties.store``, except for the order of keys.

    *comments* become ``#`` lines, followed by Java's line with the date *now* (which must have a time zone). Keys are
    sorted and the checksum is last, so a truncated file never has a correct checksum.
    """
    lines = [f"#{comment}" for comment in comments]
    lines.append(f"#{now:%a %b %d %H:%M:%S} {now.tzname()} {now:%Y}")
    keys = sorted(properties, key=lambda key: (key == TABLE_CHECKSUM, key))
    lines.extend(f"{_escape(key, blanks=True)}={_escape(properties[key], blanks=False)}" for key in keys)
    return ("\n".join(lines) + "\n").encode("ascii")


def _escape(text: str, *, blanks: bool) -> str:
    escaped = _TO_ESCAPE.sub(_escaped, text)
    if blanks:
        return escaped.replace(" ", "\\ ")
    return "\\" + escaped if escaped.startswith(" ") else escaped


def _escaped(match: re.Match[str]) -> str:
    char = match.group()
    short = _SHORT.get(char)
    if short is not None:
        return short
    units = char.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[i]:02X}{units[i + 1]:02X}" for i in range(0, len(units), 2))


def table_checksum(properties: Mapping[str, str]) -> str:
    """Return ``hoodie.table.checksum``: CRC-32 of ``<database>.<table>`` in UTF-8, as an unsigned number."""
    identity = f"{properties.get(property_keys.DATABASE_NAME, '')}.{properties.get(property_keys.NAME, '')}"
    return str(zlib.crc32(identity.encode("utf-8", "surrogatepass")))


def is_intact(properties: Mapping[str, str]) -> bool:
    """Return True if the properties have a table name and the correct checksum."""
    return property_keys.NAME in properties and properties.get(TABLE_CHECKSUM) == table_checksum(properties)
