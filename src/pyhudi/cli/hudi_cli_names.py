"""Names that commands of Apache Hudi's hudi-cli have here, for those that the nouns and verbs do not tell."""

from __future__ import annotations

from collections.abc import Sequence

COMMANDS = {
    "bootstrap index": "bootstrap mapping",
    "clean showpartitions": "clean show",
    "clustering scheduleAndExecute": "clustering run",
    "commit rollback": "rollback",
    "commit show_write_stats": "commits show",
    "commit showfiles": "commits files",
    "commit showpartitions": "commits partitions",
    "commits showarchived": "commits list",
    "commits sync": "commits compare",
    "compaction scheduleAndExecute": "compaction run",
    "compaction unschedule": "rollback",
    "compactions show": "compaction list",
    "connect": "table describe",
    "create": "table create",
    "desc": "table describe",
    "diff file": "commits files",
    "diff partition": "commits files",
    "export instants": "timeline export",
    "fetch table": "columns list",
    "marker delete": "repair markers",
    "metadata init": "metadata create",
    "metadata list-files": "files list",
    "metadata list-partitions": "partitions list",
    "metadata stats": "metadata list",
    "metadata validate-files": "metadata validate",
    "repair addpartitionmeta": "repair partition-metadata",
    "repair overwrite-hoodie-props": "repair properties",
    "savepoint rollback": "restore",
    "savepoints show": "savepoint list",
    "show archived": "commits list",
    "show fsview": "files slices",
    "show logfile": "files log-blocks",
    "show restore": "timeline show",
    "show restores": "timeline deletions",
    "show rollback": "timeline deletions",
    "show rollbacks": "timeline deletions",
    "stats filesizes": "stats file-sizes",
    "stats wa": "stats write-amplification",
    "table update-configs": "repair properties",
}
"""Names of commands by the first words of hudi-cli's; ``docs/cli.md`` lists the arguments, too."""

OTHER_COMMANDS = {
    "describe": "table describe",
    "detail": "table describe",
    "history": "commits list",
    "info": "table describe",
    "inspect": "table describe",
    "optimize": "clustering run",
    "properties": "table properties",
    "read": "scan",
    "report": "table report",
    "schema": "columns list",
    "validate": "metadata validate",
    "vacuum": "clean run",
}
"""Names of commands by words of other tables' tools, and by verbs without their nouns."""


def command_named(words: Sequence[str]) -> str | None:
    """Return the command for the first words of one of hudi-cli."""
    return COMMANDS.get(" ".join(words[:2])) or COMMANDS.get(words[0])
