"""Context in which the images of changes are read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pyhudi.config.enums import CdcMode
from pyhudi.merge.file_slice import SliceContext


@dataclass(frozen=True, slots=True)
class CdcContext:
    """Table and settings with which the images of changes are read.

    Attributes:
        mode: Contents of the table's CDC logs.
        read_context: Settings for reading slices.
        images: Columns of images that are built from slices.
        values: Values of columns that are not in files, by partition path.
        by_completion: Slices are selected by completion times, otherwise their blocks by requested times.
        completions: Completion times of writes, by instant, where slices have log files with blocks of several writes,
            which are selected by them; None: there are no such files.
    """

    mode: CdcMode
    read_context: SliceContext
    images: tuple[str, ...]
    values: Mapping[str, Mapping[str, Any]]
    by_completion: bool
    completions: Mapping[str, str] | None = None
