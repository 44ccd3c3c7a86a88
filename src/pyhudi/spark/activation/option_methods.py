"""Methods that readers and writers share: ``format``, ``option``, ``options``, and those that lay a table out."""

from __future__ import annotations

from typing import Any

from pyhudi.spark.activation.method_wrapping import MethodCall, Wrapper
from pyhudi.spark.activation.recorded_settings import recorded_settings


def set_format(call: MethodCall) -> Any:
    recorded_settings(call.target).format = call.first("source")
    return call.run()


def set_option(call: MethodCall) -> Any:
    key, value = (*call.args, *(call.kwargs[n] for n in ("key", "value")[len(call.args) :]))
    recorded_settings(call.target).add_options({key: value})
    return call.run()


def set_options(call: MethodCall) -> Any:
    recorded_settings(call.target).add_options(call.kwargs)
    return call.run()


def set_layout(name: str) -> Wrapper:
    """Return the wrapper of ``bucketBy``, ``sortBy`` or ``clusterBy``, which only Spark's own tables support."""

    def note(call: MethodCall) -> Any:
        recorded_settings(call.target).layout = name
        return call.run()

    return note
