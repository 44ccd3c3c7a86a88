"""Numbers of buckets that differ between partitions, from write options and a small file of the table.

``.hoodie/.bucket_index/partition_bucket_index_meta/configs/<instant>.hashing_config``. When Apache Hudi rewrites the
table with other numbers, it writes another file with that instant, and deletes it before a rollback removes the
instant.
"""

from __future__ import annotations

import json
import re
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from pyhudi.config import Options, options
from pyhudi.errors import AlreadyExistsError, FormatError, InvalidOptionError
from pyhudi.format.file_names import file_name_of
from pyhudi.storage import Storage, join_path
from pyhudi.storage.table_paths import BUCKET_FOLDER
from pyhudi.timeline.timeline import Timeline

FOLDER = f"{BUCKET_FOLDER}/partition_bucket_index_meta/configs"
FIRST_INSTANT = "00000000000000"
_EXTENSION = ".hashing_config"
_REGEX = "regex"


@dataclass(frozen=True, slots=True)
class BucketCounts:
    """Number of buckets per partition: ``default``, unless a rule's regular expression (Java's) is found in the path;
    the first match applies. ``text`` is the text form of the rules."""

    default: int
    rules: tuple[tuple[str, int], ...] = ()
    text: str = ""

    @classmethod
    def from_options(cls, opts: Options) -> BucketCounts:
        """Return the bucket counts of the options.

        Raises:
            InvalidOptionError: The options are invalid.
        """
        default = opts.get_typed(options.INITIAL_BUCKETS)
        text = opts.get_typed(options.BUCKET_PARTITION_EXPRESSIONS) or ""
        kind = opts.get_typed(options.BUCKET_PARTITION_RULE)
        if text and kind.lower() != _REGEX:
            raise InvalidOptionError(options.BUCKET_PARTITION_RULE.key, kind, _REGEX)
        try:
            return cls(default, _parse(text), text)
        except (ValueError, re.error):
            allowed = "pairs of a regular expression and a number, like 'p1,2;^2026-,16'"
            raise InvalidOptionError(options.BUCKET_PARTITION_EXPRESSIONS.key, text, allowed) from None

    def of_partition(self, path: str) -> int:
        """Return the number of buckets of a partition."""
        return next((count for rule, count in self.rules if re.search(rule, path, re.ASCII)), self.default)

    def encode(self, instant: str = FIRST_INSTANT) -> bytes:
        """Return the content of the file of an instant, as written by Apache Hudi."""
        whole = {
            "expressions": self.text,
            "defaultBucketNumber": self.default,
            "rule": _REGEX,
            "version": 1,
            "instant": instant,
        }
        return json.dumps(whole, indent=2, separators=(",", " : ")).encode()

    @classmethod
    def decode(cls, data: bytes, path: str) -> BucketCounts:
        """Parse a file.

        Raises:
            FormatError: The file is corrupt, or has unsupported rules.
        """
        try:
            config: dict[str, Any] = json.loads(data)
            if config["rule"].lower() != _REGEX:
                raise ValueError(f"unsupported rules {config['rule']!r}")
            text = str(config["expressions"])
            return cls(int(config["defaultBucketNumber"]), _parse(text), text)
        except (ValueError, KeyError, TypeError, AttributeError, re.error) as error:
            raise FormatError(f"{path} is not a valid configuration of buckets: {error!r}") from error


def load_counts(storage: Storage, timeline: Timeline) -> BucketCounts | None:
    """Load the bucket counts of the table from the newest file that counts; None if there is none.

    Files of pending instants do not count yet, nor those of instants later than ``timeline``. The others are completed,
    though archival may have removed them from the timeline.

    Raises:
        FormatError: The file is corrupt.
    """
    valid = _valid_instants(storage, timeline)
    return _decode(storage, valid[-1]) if valid else None


def load_counts_history(storage: Storage, timeline: Timeline) -> list[tuple[str, BucketCounts]]:
    """Load all bucket counts that the table has had, as of `load_counts`, with the instants from which on file groups
    have them.

    Raises:
        FormatError: A file is corrupt.
    """
    return [(instant, _decode(storage, instant)) for instant in _valid_instants(storage, timeline)]


def _valid_instants(storage: Storage, timeline: Timeline) -> list[str]:
    last = max((instant.requested for instant in timeline), default="")
    pending = set(timeline.pending().requested_times)
    return [i for i in counted_instants(storage) if i == FIRST_INSTANT or (i <= last and i not in pending)]


def _decode(storage: Storage, instant: str) -> BucketCounts:
    return BucketCounts.decode(read_counts(storage, instant), join_path(FOLDER, instant + _EXTENSION))


def counted_instants(storage: Storage) -> list[str]:
    """Return the instants of all files, whether they count or not, in their order."""
    names = [file_name_of(path) for path in storage.list(FOLDER)["path"].to_pylist()]
    return sorted(name.removesuffix(_EXTENSION) for name in names if name.endswith(_EXTENSION))


def read_counts(storage: Storage, instant: str) -> bytes:
    """Return the content of the file of an instant.

    Raises:
        NotFoundError: The instant has none.
    """
    return storage.read(join_path(FOLDER, instant + _EXTENSION))


def store_first_counts(storage: Storage, counts: BucketCounts) -> None:
    """Write the first file of the table, unless it has any."""
    if counted_instants(storage):
        return  # Once the numbers have changed, the first ones are not those of the options.
    with suppress(AlreadyExistsError):
        storage.create(join_path(FOLDER, FIRST_INSTANT + _EXTENSION), counts.encode())


def store_counts(storage: Storage, counts: BucketCounts, instant: str) -> None:
    """Write the file of a pending instant, which counts once that is completed."""
    storage.write(join_path(FOLDER, instant + _EXTENSION), counts.encode(instant))


def delete_counts(storage: Storage, instant: str) -> None:
    """Delete the file of a write that is rolled back, while its instant is still pending."""
    storage.delete(join_path(FOLDER, instant + _EXTENSION))


def _parse(text: str) -> tuple[tuple[str, int], ...]:
    rules = []
    for part in filter(None, (piece.strip() for piece in text.split(";"))):
        pattern, number = part.split(",")
        count = int(number)
        if count < 1:
            raise ValueError(f"{count} buckets")
        re.compile(pattern.strip(), re.ASCII)
        rules.append((pattern.strip(), count))
    return tuple(rules)
