#!/bin/sh
# Runs a command with its temporary files in memory, where there is room: scripts/in_memory.sh COMMAND…
# pyhudi waits for the disk at each file of a table. Tests of everything else need not.
set -u
room=$(df -Pk /dev/shm 2> /dev/null | awk 'NR == 2 { print $4 }')
if [ "${room:-0}" -gt 4194304 ]; then
  TMPDIR=$(mktemp -d /dev/shm/pyhudi.XXXXXX) && export TMPDIR || exit 1
  trap 'rm -rf "$TMPDIR"' EXIT
  trap 'exit 130' INT
  trap 'exit 143' TERM
fi
"$@"
