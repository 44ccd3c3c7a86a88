"""Procedure that exports the metadata of completed instants to a local folder, as JSON."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator
from itertools import islice
from pathlib import Path

import pyarrow.compute as pc
from pyspark.sql import SparkSession

from pyhudi.errors import QueryError
from pyhudi.format.avro.container import read_container
from pyhudi.format.file_names import file_name_of
from pyhudi.spark.sql.procedures.arguments import Arguments, Procedure, Rows
from pyhudi.table.meta_client import TableMetaClient
from pyhudi.timeline.archive.archived_timeline import read_archived_timeline


def export_instants(spark: SparkSession, arguments: Arguments) -> Rows:
    """Write the metadata of completed instants, those of the history first unless ``desc``, as files of a local folder,
    which is created if it does not exist.

    Raises:
        QueryError: The folder cannot be created, or is a file.
    """
    folder = Path(str(arguments.text("local_folder")))
    actions = {part.strip() for part in str(arguments.text("actions")).split(",")}
    newest_first, limit = arguments.flag("desc"), arguments.number("limit")
    client = arguments.client(spark)
    archived, active = (
        _archived(client, actions, newest_first=newest_first),
        _active(client, actions, newest_first=newest_first),
    )
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise QueryError(f"local_folder => {str(folder)!r} cannot be created on this machine: {error}") from error
    count = 0
    for part in (active, archived) if newest_first else (archived, active):
        left = None if limit is None or limit < 0 else limit - count
        for name, content in islice(part, left):
            (folder / name).write_bytes(content)
            count += 1
    return [(f"Exported {count} Instants to {folder}",)]


def _active(client: TableMetaClient, actions: Collection[str], *, newest_first: bool) -> Iterator[tuple[str, bytes]]:
    """Names and contents of files for the active timeline."""
    active = client.active_timeline()
    instants = [one for one in active.timeline.completed() if one.action in actions]
    for instant in reversed(instants) if newest_first else instants:
        with active.parsing(instant):
            yield file_name_of(active.path(instant)), _as_json(active.read(instant))


def _archived(client: TableMetaClient, actions: Collection[str], *, newest_first: bool) -> Iterator[tuple[str, bytes]]:
    """Names and contents of files for the history, one instant at a time."""
    history = read_archived_timeline(client.storage, client.config.layout)
    history = history.filter(pc.is_valid(history["metadata"]))
    rows = zip(*(history[name].to_pylist() for name in ("requested", "action")), history["metadata"], strict=True)
    selected = [row for row in rows if row[1] in actions]
    for requested, action, data in reversed(selected) if newest_first else selected:
        yield f"{requested}.{action}", _as_json(data.as_py())


def _as_json(data: bytes) -> bytes:
    """The record of a completed instant; before version 8 those of writes are JSON already."""
    if data[:1] == b"{":
        return data
    _, records = read_container(data)
    return json.dumps(records[0], indent=2, default=lambda value: value.decode("utf-8", "replace")).encode()


PROCEDURES: dict[str, Procedure] = {"export_instants": export_instants}
