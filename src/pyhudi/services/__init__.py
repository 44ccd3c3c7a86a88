"""Table services: what is done to a table beside writing to it. Planned and described here; run by `pyhudi.spark`, or
by threads of this process."""
