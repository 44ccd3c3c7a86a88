"""The reporters PROMETHEUS and PROMETHEUS_PUSHGATEWAY, with the library ``prometheus_client``.

Names are converted to Prometheus names as in Apache Hudi's exporter: characters other than letters, digits, underscores
and colons become underscores.
"""

from __future__ import annotations

import atexit
import re
import secrets
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pyhudi.config import Options, options
from pyhudi.errors import ConfigError, SetupError

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry, Gauge

_SUFFIX = secrets.randbelow(10**9)
"""Suffix of the job names of this process."""
_TIMEOUT_SECONDS = 5.0
_UNFIT = re.compile(r"[^a-zA-Z0-9_:]")

_registries: dict[tuple[str, ...], _Gauges] = {}
_guard = threading.Lock()


def check_prometheus(opts: Options) -> None:
    """Check the requirements of the reporters.

    Raises:
        SetupError: ``prometheus_client`` is not installed.
        ConfigError: The labels cannot be parsed.
    """
    try:
        import prometheus_client  # noqa: F401
    except ImportError as error:
        raise SetupError(
            f"{options.METRICS_REPORTER.key} requires the package prometheus_client: pip install 'pyhudi[prometheus]'"
        ) from error
    parse_labels(opts.get_typed(options.PUSHGATEWAY_LABELS))


def parse_labels(text: str) -> dict[str, str]:
    """Parse labels, ``name:value,name:value``.

    Raises:
        ConfigError: The text is invalid.
    """
    labels = {}
    for part in filter(None, (part.strip() for part in text.split(","))):
        name, colon, value = part.partition(":")
        if not colon or not re.fullmatch(r"[a-zA-Z_][a-zA-Z0-9_]*", name.strip()):
            raise ConfigError(
                f"{options.PUSHGATEWAY_LABELS.key}={text!r} contains the invalid label {part!r}; use "
                "name:value,name:value"
            )
        labels[name.strip()] = value.strip()
    return labels


def metric_name(name: str) -> str:
    """Return the name in Prometheus's form."""
    fit = _UNFIT.sub("_", name)
    return f"_{fit}" if fit[:1].isdigit() else fit


def expose_gauges(values: Mapping[str, float], opts: Options) -> None:
    """Set gauges that Prometheus scrapes from this process, or reads from a text file."""
    from prometheus_client import start_http_server, write_to_textfile

    path = opts.get_typed(options.METRICS_TEXTFILE)
    if path is not None:
        gauges = _gauges_at(("textfile", path))
        with gauges.guard:
            gauges.set(values)
            write_to_textfile(path, gauges.registry)
        return
    port = opts.get_typed(options.PROMETHEUS_PORT)
    gauges = _gauges_at(("server", str(port)))
    with gauges.guard:
        gauges.set(values)
        if not gauges.is_served:
            start_http_server(port, registry=gauges.registry)
            gauges.is_served = True


def push(values: Mapping[str, float], opts: Options, table_name: str) -> None:
    """Set gauges and push them to the push gateway, which adds them to those of the job."""
    from prometheus_client import delete_from_gateway, pushadd_to_gateway

    address = f"{opts.get_typed(options.PUSHGATEWAY_HOST)}:{opts.get_typed(options.PUSHGATEWAY_PORT)}"
    job = opts.get_typed(options.PUSHGATEWAY_JOB) or table_name
    if opts.get_typed(options.PUSHGATEWAY_RANDOM_SUFFIX):
        job = f"{job}-{_SUFFIX}"
    labels = parse_labels(opts.get_typed(options.PUSHGATEWAY_LABELS))
    gauges = _gauges_at(("push", address, job, *(f"{name}:{value}" for name, value in sorted(labels.items()))))
    with gauges.guard:
        gauges.set(values)
        pushadd_to_gateway(address, job, gauges.registry, grouping_key=labels, timeout=_TIMEOUT_SECONDS)
        if opts.get_typed(options.PUSHGATEWAY_DELETE) and not gauges.is_served:
            gauges.is_served = True
            atexit.register(_delete_ignoring_errors, delete_from_gateway, address, job, labels)


def _delete_ignoring_errors(delete: object, address: str, job: str, labels: dict[str, str]) -> None:
    try:
        delete(address, job, grouping_key=labels, timeout=_TIMEOUT_SECONDS)  # type: ignore[operator]
    except OSError:  # The gateway no longer exists, and the process ends.
        return


@dataclass
class _Gauges:
    """Gauges of one destination of metrics."""

    registry: CollectorRegistry
    by_name: dict[str, Gauge] = field(default_factory=dict)
    guard: threading.Lock = field(default_factory=threading.Lock)
    is_served: bool = False

    def set(self, values: Mapping[str, float]) -> None:
        from prometheus_client import Gauge

        for name, value in values.items():
            fit = metric_name(name)
            if fit not in self.by_name:
                self.by_name[fit] = Gauge(fit, name, registry=self.registry)
            self.by_name[fit].set(value)


def _gauges_at(place: tuple[str, ...]) -> _Gauges:
    from prometheus_client import CollectorRegistry

    with _guard:
        if place not in _registries:
            _registries[place] = _Gauges(CollectorRegistry())
        return _registries[place]
