"""What decoders raise of damaged bytes, told from what a storage raises, and text that is none."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

import numpy as np
import pyarrow as pa

from pyhudi.errors import FormatError

_OF_DECODERS = (
    pa.ArrowInvalid,
    pa.ArrowNotImplementedError,
    pa.ArrowIndexError,
    pa.ArrowCapacityError,
    pa.ArrowSerializationError,
    UnicodeDecodeError,  # names of columns
)
_NOTES = ("Detail: Python exception", "Detail: [errno")
_HIGH_BITS = 0x8080808080808080


@contextmanager
def as_damage(what: str) -> Iterator[None]:
    """Around the decoding of bytes: what that raises of damaged ones becomes a FormatError which begins with ``what``;
    so does a FormatError.

    Errors of the storage that the bytes come from stay what they are: it raises errors of ours, or of the system, which
    have a number or a class of their own. Arrow's decoders raise plain OSErrors without a number.

    Raises:
        FormatError: the bytes are damaged.
    """
    try:
        yield
    except (FormatError, *_OF_DECODERS) as e:
        raise FormatError(f"{what}: {e}") from e
    except OSError as e:
        if _is_of_storage(e):
            raise
        raise FormatError(f"{what}: {e}") from e


def _is_of_storage(error: OSError) -> bool:
    # on their way through ORC's library errors lose class and number, and keep Arrow's note of them
    return type(error) is not OSError or error.errno is not None or any(note in str(error) for note in _NOTES)


def checked_text(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The batches; see `check_text`."""
    for batch in batches:
        check_text(batch)
        yield batch


def check_text(batch: pa.RecordBatch) -> None:
    """Refuse text that is not UTF-8, which Arrow's Parquet reader does not look at.

    Raises:
        FormatError: there is some; names the column.
    """
    for name, column in zip(batch.schema.names, batch.columns, strict=True):
        values = column.dictionary if pa.types.is_dictionary(column.type) else column
        if (pa.types.is_nested(values.type) or pa.types.is_string(values.type)) and not _is_ascii(values):
            with as_damage(f"column {name!r} has values that cannot be"):
                values.validate(full=True)


def _is_ascii(column: pa.Array) -> bool:
    """Whether all text is ASCII, as most is: to look at all of its bytes at once takes a fifth of the time that looking
    at each value does. False if it is nested, too."""
    if not pa.types.is_string(column.type):
        return False
    _, offsets, data = column.buffers()
    if not len(column) or data is None:
        return True
    ends = np.frombuffer(offsets, np.int32)[[column.offset, column.offset + len(column)]]
    text = np.frombuffer(data, np.uint8)[ends[0] : ends[1]]
    whole = len(text) & ~7
    head = int(np.bitwise_or.reduce(text[:whole].view(np.uint64), initial=0))
    return not head & _HIGH_BITS and not (text[whole:] & 0x80).any()
