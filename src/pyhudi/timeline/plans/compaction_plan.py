"""Plans of compactions and log compactions, as objects, as bytes, and as text."""

from __future__ import annotations

import html
from dataclasses import dataclass, field, replace

import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.format.avro.decoder import has_fast_decoder
from pyhudi.timeline.action_avro import decode_record
from pyhudi.timeline.encoding.commit_avro import LARGE
from pyhudi.timeline.instant import Action, State
from pyhudi.timeline.plans.compaction_plan_avro import decode_large_plan, encode_plan, operation_row

_LOG_COMPACTOR = "org.apache.hudi.table.action.compact.LogCompactionExecutionHelper"
_SHOWN = 20
_MIB = 1024 * 1024

OPERATION_SCHEMA = pa.schema(
    [
        ("partition", pa.string()),
        ("file_id", pa.string()),
        ("base_instant", pa.string()),
        ("base_file", pa.string()),
        ("log_files", pa.list_(pa.string())),
        ("log_bytes", pa.int64()),
        ("read_mb", pa.int64()),
        ("write_mb", pa.int64()),
    ]
)
"""One row per file slice: names of its base file (null: none) and of its log files in merge order, without folders;
total bytes of the logs; megabytes (2^20) to read and, as estimated, to write."""


def compaction_name(action: str) -> str:
    """Return the name of a compaction or log compaction in messages."""
    return "log compaction" if action == Action.LOG_COMPACTION else "compaction"


@dataclass(frozen=True, slots=True)
class CompactionPlan:
    """File slices of a compaction or a log compaction, which is its ``action`` in the timeline.

    ``operations`` has :data:`pyhudi.timeline.plans.compaction_plan.OPERATION_SCHEMA`. ``instant`` is None
    while the plan is not in the timeline, ``state`` is its state there. ``reason`` explains why it is due or not.
    ``missing`` are partitions with slices left for the next plan.
    """

    operations: pa.Table = field(default_factory=OPERATION_SCHEMA.empty_table)
    action: str = Action.COMPACTION
    instant: str | None = None
    state: State | None = None
    reason: str = ""
    missing: tuple[str, ...] = ()

    def __len__(self) -> int:
        return int(self.operations.num_rows)

    @property
    def is_log(self) -> bool:
        """Return True for a log compaction."""
        return self.action == Action.LOG_COMPACTION

    @property
    def partitions(self) -> list[str]:
        """Partitions with compacted file slices, sorted."""
        paths: list[str] = pc.unique(self.operations["partition"]).to_pylist()
        return sorted(paths)

    @property
    def num_log_files(self) -> int:
        """Number of log files that are merged."""
        return int(pc.sum(pc.list_value_length(self.operations["log_files"])).as_py() or 0)

    @property
    def log_bytes(self) -> int:
        """Total size of these log files in bytes."""
        return int(pc.sum(self.operations["log_bytes"]).as_py() or 0)

    def scheduled(self, instant: str) -> CompactionPlan:
        """Return the same plan with its instant in the timeline."""
        return replace(self, instant=instant, state=State.REQUESTED)

    def encode(self, version: int) -> bytes:
        """Return the content of the requested file for a table of that version."""
        strategy = {"compactorClassName": _LOG_COMPACTOR, "strategyParams": [], "version": 1}
        return encode_plan(
            self.action,
            self.operations,
            version,
            strategy=strategy if self.is_log else None,
            preserve_metadata=self.is_log,
            missing=self.missing,
        )

    @classmethod
    def decode(cls, action: str, instant: str, state: State, data: bytes) -> CompactionPlan:
        """Parse a plan from the timeline.

        Raises:
            FormatError: The bytes are not a complete plan.
        """
        if len(data) >= LARGE and has_fast_decoder():
            columns, missing = decode_large_plan(data)
            operations = pa.Table.from_arrays(columns, schema=OPERATION_SCHEMA)
        else:
            record = decode_record(action, State.REQUESTED, data)
            rows = [operation_row(operation) for operation in record["operations"] or ()]
            operations = pa.Table.from_pylist(rows, schema=OPERATION_SCHEMA)
            missing = tuple(record.get("missingSchedulePartitions") or ())
        return cls(operations, action=action, instant=instant, state=state, missing=missing)

    # --- display -----------------------------------------------------------------------------------------------------

    def _title(self) -> str:
        kind = compaction_name(self.action)
        if self.instant is not None and self.state is not None:
            return f"{kind} {self.instant}, {self.state.value.lower()}"
        return f"{kind}, not scheduled"

    def _summary(self) -> str:
        if not len(self):
            return "nothing to do"
        io = pc.sum(pc.add(self.operations["read_mb"], self.operations["write_mb"])).as_py()
        return (
            f"{len(self):,} file slices in {len(self.partitions):,} partitions, {self.num_log_files:,} log files of "
            f"{_size(self.log_bytes)}, about {io:,} MiB to read and write"
        )

    def _rows(self) -> list[tuple[str, str, str, str, str]]:
        return [
            (
                row["partition"] or "(no partition)",
                row["file_id"],
                row["base_instant"] if row["base_file"] else f"{row['base_instant']} (logs only)",
                f"{len(row['log_files']):,}",
                _size(row["log_bytes"]),
            )
            for row in self.operations.slice(0, _SHOWN).to_pylist()
        ]

    def _more(self) -> str:
        left = len(self) - _SHOWN
        return f"… and {left:,} more" if left > 0 else ""

    def __repr__(self) -> str:
        lines = [f"{self._title()}: {self._summary()}"]
        if self.reason:
            lines.append(f"  {self.reason}")
        rows = self._rows()
        if rows:
            table = [_COLUMNS, *rows]
            widths = [max(len(row[i]) for row in table) for i in range(len(_COLUMNS))]
            lines += ["  " + "  ".join(text.ljust(w) for text, w in zip(row, widths, strict=True)) for row in table]
        lines += ["  " + self._more()] * bool(self._more())
        return "\n".join(line.rstrip() for line in lines)

    def _repr_html_(self) -> str:
        head = "".join(f"<th align='left'>{name}</th>" for name in _COLUMNS)
        body = "".join(
            "<tr>" + "".join(f"<td>{html.escape(text)}</td>" for text in row) + "</tr>" for row in self._rows()
        )
        text = f"<h4>{html.escape(self._title())}</h4><p>{html.escape(self._summary())}</p>"
        if self.reason:
            text += f"<p>{html.escape(self.reason)}</p>"
        table = f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table><p>{self._more()}</p>"
        return text + table if len(self) else text


_COLUMNS = ("partition", "file group", "base instant", "log files", "log size")


def _size(num_bytes: int) -> str:
    if num_bytes < 1024:
        return f"{num_bytes:,} B"
    return f"{num_bytes / 1024:,.1f} KiB" if num_bytes < _MIB else f"{num_bytes / _MIB:,.1f} MiB"
