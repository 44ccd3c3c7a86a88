"""Metrics for Graphite, by its plaintext protocol: one line ``name value seconds`` each."""

from __future__ import annotations

import re
import socket
import time
from collections.abc import Mapping

from pyhudi.config import Options, options

_TIMEOUT_SECONDS = 5
_UNFIT = re.compile(r"\s+")
"""Characters that names of metrics cannot have, as in the metrics library that Apache Hudi uses."""


def send_to_graphite(values: Mapping[str, float], opts: Options) -> None:
    """Send gauges to the server in the options.

    Raises:
        OSError: The server cannot be reached.
    """
    address = (opts.get_typed(options.GRAPHITE_HOST), opts.get_typed(options.GRAPHITE_PORT))
    with socket.create_connection(address, timeout=_TIMEOUT_SECONDS) as connection:
        connection.sendall(graphite_lines(values, opts.get_typed(options.GRAPHITE_PREFIX), int(time.time())).encode())


def graphite_lines(values: Mapping[str, float], prefix: str | None, seconds: int) -> str:
    """Return gauges in the plaintext protocol. ``seconds``: time of the values, since the epoch."""
    start = f"{prefix}." if prefix else ""
    return "".join(f"{_UNFIT.sub('-', start + name)} {value:.2f} {seconds}\n" for name, value in values.items())
