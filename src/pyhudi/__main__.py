"""``python -m pyhudi``: the command line."""

from __future__ import annotations

from pyhudi.cli import main

if __name__ == "__main__":
    main()
