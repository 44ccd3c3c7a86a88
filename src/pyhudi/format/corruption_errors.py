"""Distinction between errors of decoders for corrupt bytes and errors of the storage."""

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
    UnicodeDecodeError,  # Names of columns.
)
_NOTES = ("Detail: Python exception", "Detail: [errno")


@contextmanager
def as_corruption(what: str) -> Iterator[None]:
    """Convert errors of decoders for corrupt bytes to a FormatError that starts with ``what``.

    The message of a FormatError is prefixed, too. Errors of the storage that holds the bytes are passed on: they are
    errors of pyhudi, or of the system, with a number or a class of their own. Arrow's decoders raise plain OSErrors
    without a number.

    Raises:
        FormatError: The bytes are corrupt.
    """
    try:
        yield
    except (FormatError, *_OF_DECODERS) as error:
        raise FormatError(f"{what}: {error}") from error
    except OSError as error:
        if _is_of_storage(error):
            raise
        raise FormatError(f"{what}: {error}") from error


def _is_of_storage(error: OSError) -> bool:
    # ORC's library drops class and number of errors, but keeps Arrow's text.
    return type(error) is not OSError or error.errno is not None or any(note in str(error) for note in _NOTES)
