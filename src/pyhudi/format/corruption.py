"""Errors that decoders raise for damaged bytes, as opposed to those of a storage."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

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


@contextmanager
def as_corruption(what: str) -> Iterator[None]:
    """Context manager for decoding: errors of damaged bytes become a FormatError that begins with ``what``; so does a
    FormatError.

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
