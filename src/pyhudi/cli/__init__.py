"""Command line ``pyhudi``: one command per call of the public API, by the nouns of Apache Hudi's hudi-cli.

Takes the arguments of a process and prints tables, JSON or CSV. Nothing else in pyhudi imports it. It requires the
packages of ``pyhudi[cli]``; `main` says so if they are missing.
"""

from __future__ import annotations

import sys

_PACKAGES = ("click", "rich")


def main() -> None:
    """Run the command that the arguments of the process name, and end the process with its exit code: 0 if it
    succeeded, 1 after an error of the table or the storage, 2 if the command is wrong, 130 if it was interrupted."""
    try:
        from pyhudi.cli.program import program
    except ModuleNotFoundError as error:
        if error.name not in _PACKAGES:
            raise
        print(
            f"error: the command line requires the package {error.name}, which is not installed: "
            "pip install 'pyhudi[cli]'",
            file=sys.stderr,
        )
        sys.exit(1)
    except KeyboardInterrupt:  # the imports take a second
        print("interrupted", file=sys.stderr)
        sys.exit(130)
    program(prog_name="pyhudi")
