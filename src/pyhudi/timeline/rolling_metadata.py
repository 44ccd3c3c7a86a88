"""Rolling extra metadata (``hoodie.write.rolling.metadata.keys`` of Apache Hudi 1.2): entries, such as offsets of a
source, that every later commit and clean takes over, so that they outlive the commit that wrote them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Self

from pyhudi.config import Options, options
from pyhudi.timeline.active_timeline import ActiveTimeline
from pyhudi.timeline.instant import Action


@dataclass(frozen=True, slots=True)
class RollingMetadata:
    """Keys of extra metadata that commits and cleans take over.

    Attributes:
        keys: The keys.
        lookback: Number of completed writes, and of completed cleans, that are searched for them.
    """

    keys: tuple[str, ...]
    lookback: int

    @classmethod
    def from_options(cls, opts: Options) -> Self:
        """Return the keys that the options name."""
        lookback = opts.get_typed(options.ROLLING_METADATA_TIMELINE_LOOKBACK_COMMITS)
        return cls(opts.get_typed(options.ROLLING_METADATA_KEYS), lookback)

    def with_rolled(self, extra: Mapping[str, str], active: ActiveTimeline) -> dict[str, str]:
        """Return extra metadata with the newest values of the keys that it lacks, or has empty.

        Args:
            extra: Extra metadata of the commit or clean.
            active: Timeline that was loaded under the lock of the table.

        Raises:
            CorruptInstantError: The metadata of an instant that is searched cannot be read.
        """
        found = dict(extra)
        missing = {key for key in self.keys if not found.get(key)}
        instants = self._extra_metadata(active)
        while missing and (earlier := next(instants, None)) is not None:
            found |= {key: earlier[key] for key in missing if earlier.get(key)}
            missing = {key for key in missing if not found.get(key)}
        return found

    def _extra_metadata(self, active: ActiveTimeline) -> Iterator[Mapping[str, str]]:
        """Return the extra metadata of writes, the newest first, and of cleans."""
        timeline = active.timeline
        for write in islice(reversed(timeline.writes().by_completion()), self.lookback):
            yield active.commit_metadata(write).extra
        for clean in islice(reversed(timeline.of_actions(Action.CLEAN).by_completion()), self.lookback):
            yield active.completed_record(clean)["extraMetadata"] or {}
