"""Delete blocks of releases up to 0.13: arrays of delete records serialized by Kryo.

Only the expected classes are supported, and only text and numbers are ever created from the bytes. Layout: a class is
either one with a Kryo number, or is introduced by its name and from then on referenced by the number of that name. An
object or text that may be referenced starts with 0 (null), 1 (new) or the number of the earlier object plus 2. Fields
of a class are in alphabetical order.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date
from typing import TypeVar

from pyhudi.errors import FormatError
from pyhudi.format.log.decoding.kryo_input import KryoInput
from pyhudi.format.log.delete_ordering import DECIMAL_TYPE, NATURAL, Ordering, OrderingKind

_MODEL = "org.apache.hudi.common.model."
_DELETE_RECORD = f"{_MODEL}DeleteRecord"
_KEY = f"{_MODEL}HoodieKey"
_ARRAY_OF_RECORDS = f"[L{_DELETE_RECORD};"
_ARRAY_OF_KEYS = f"[L{_KEY};"

_NULL, _BY_NAME = 0, 1
_MIN_DELETE = 3
"""Bytes of the shortest delete."""
_DAY_MS = 86_400_000
_EPOCH_DAY = date(1970, 1, 1).toordinal()

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class DeletedKey:
    """Delete of one key: key, partition path, and ordering value."""

    record_key: str | None
    partition_path: str | None
    ordering: Ordering = NATURAL


def parse_deletes(data: memoryview, version: int) -> list[DeletedKey]:
    """Return the deletes in a block's Kryo bytes, content version 1 (keys only) or 2 (with ordering values).

    Raises:
        FormatError: The bytes are invalid.
    """
    try:
        return _Parser(KryoInput(bytes(data))).deletes(with_ordering=version == 2)
    except (IndexError, struct.error, ValueError, OverflowError) as error:
        if isinstance(error, FormatError):
            raise
        raise FormatError(f"cannot parse a delete block of {len(data)} bytes: {error}") from error


class _Parser:
    def __init__(self, source: KryoInput) -> None:
        self._in = source
        self._names: dict[int, str] = {}
        self._objects: list[object] = []
        # Kryo's class numbers, and the names written by the 0.15 release.
        self._values: dict[int | str, Callable[[], Ordering]] = {
            2: lambda: Ordering(OrderingKind.INT, self._in.zigzag()),
            3: self._string,
            4: lambda: Ordering(OrderingKind.FLOAT, struct.unpack(">f", self._in.take(4))[0]),
            5: lambda: Ordering(OrderingKind.BOOLEAN, bool(self._in.take(1)[0])),
            9: lambda: Ordering(OrderingKind.LONG, self._in.zigzag()),
            10: lambda: Ordering(OrderingKind.DOUBLE, struct.unpack(">d", self._in.take(8))[0]),
            30: lambda: self._object(lambda: Ordering(OrderingKind.STRING, self._in.counted().decode())),
            "java.math.BigDecimal": lambda: self._object(self._decimal),
            # Midnight of that day in the writer's time zone.
            "java.sql.Date": lambda: self._object(
                lambda: Ordering(OrderingKind.DATE, (self._in.long() + _DAY_MS // 2) // _DAY_MS)
            ),
            "java.sql.Timestamp": lambda: self._object(
                lambda: Ordering(OrderingKind.TIMESTAMP_MICROS, self._in.long() * 1000)
            ),
            "java.time.Instant": lambda: self._object(self._instant),
            "java.time.LocalDate": lambda: self._object(
                lambda: Ordering(OrderingKind.LOCAL_DATE, self._in.local_date().toordinal() - _EPOCH_DAY)
            ),
        }
        self._known = {_DELETE_RECORD, _KEY, _ARRAY_OF_RECORDS, _ARRAY_OF_KEYS}
        self._known |= {name for name in self._values if isinstance(name, str)}

    def deletes(self, *, with_ordering: bool) -> list[DeletedKey]:
        self._expect_class(_ARRAY_OF_RECORDS if with_ordering else _ARRAY_OF_KEYS)
        self._expect_new()
        count = self._in.varint() - 1
        if not 0 <= count <= self._in.left // _MIN_DELETE:
            raise FormatError(f"{count} deletes in {self._in.left} bytes")
        element = self._record if with_ordering else self._key
        result = [element() for _ in range(count)]
        if self._in.left:
            raise FormatError(f"{self._in.left} bytes after the last of {count} deletes")
        return result

    def _record(self) -> DeletedKey:
        self._expect_class(_DELETE_RECORD)
        self._expect_new()
        key = self._key()
        kind = self._class()
        if kind == _NULL:
            return DeletedKey(key.record_key, key.partition_path, Ordering(OrderingKind.NONE, None))
        read = self._values.get(kind)
        if read is None:
            raise FormatError(f"an ordering value has the unsupported Kryo class {kind!r}")
        return DeletedKey(key.record_key, key.partition_path, read())

    def _key(self) -> DeletedKey:
        self._expect_class(_KEY)
        key = self._reference(self._new_key, DeletedKey)
        if key is None:
            raise FormatError("a delete without key")
        return key

    def _new_key(self) -> DeletedKey:
        partition = self._text()
        return DeletedKey(self._text(), partition)

    def _text(self) -> str | None:
        return self._reference(self._in.text, str)

    def _string(self) -> Ordering:
        text = self._text()
        return Ordering(OrderingKind.NONE, None) if text is None else Ordering(OrderingKind.STRING, text)

    def _object(self, read: Callable[[], Ordering]) -> Ordering:
        value = self._reference(read, Ordering)
        return Ordering(OrderingKind.NONE, None) if value is None else value

    def _decimal(self) -> Ordering:
        unscaled = int.from_bytes(self._in.counted(), "big", signed=True)
        scale = self._in.zigzag()
        shift = DECIMAL_TYPE.scale - scale
        if not 0 <= shift <= 38 or abs(unscaled) >= 10**38:
            raise FormatError(f"a decimal number of scale {scale} with {len(str(unscaled))} digits")
        wide = unscaled * 10**shift
        return Ordering(OrderingKind.DECIMAL, wide.to_bytes(wide.bit_length() // 8 + 1, "big", signed=True))

    def _instant(self) -> Ordering:
        seconds = self._in.long()
        return Ordering(OrderingKind.TIMESTAMP_MICROS, seconds * 1_000_000 + self._in.varint() // 1000)

    def _reference(self, read: Callable[[], _T], expected: type[_T]) -> _T | None:
        """Read a value that is null, new, or a reference to an earlier one."""
        number = self._in.varint()
        if number == 0:
            return None
        if number == 1:
            place = len(self._objects)
            self._objects.append(None)
            value = read()
            self._objects[place] = value
            return value
        earlier = self._objects[number - 2] if number - 2 < len(self._objects) else None
        if not isinstance(earlier, expected):
            raise FormatError(
                f"reference to object {number - 2} of {len(self._objects)}, which is not {expected.__name__}"
            )
        return earlier

    def _expect_new(self) -> None:
        number = self._in.varint()
        if number != 1:
            raise FormatError(f"reference {number} instead of a new object")
        self._objects.append(None)

    def _expect_class(self, name: str) -> None:
        name_read = self._class()
        if name_read != name:
            raise FormatError(f"class {name_read!r} instead of {name!r}")

    def _class(self) -> int | str:
        number = self._in.varint()
        if number != _BY_NAME:
            return number
        name_id = self._in.varint()
        if name_id not in self._names:
            name = self._in.text()
            if name_id != len(self._names) or name not in self._known:
                raise FormatError(f"class {name!r} is not allowed in a delete block")
            self._names[name_id] = name
        return self._names[name_id]
