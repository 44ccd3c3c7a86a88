"""Methods that readers and writers share: ``format``, ``option``, ``options``, and those that lay a table out."""

from __future__ import annotations

from typing import Any

from pyhudi.spark.activation.call_state import call_state, keep_options
from pyhudi.spark.activation.method_wrapping import Method, Wrapper


def set_format(original: Method, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    call_state(target).format = args[0] if args else kwargs["source"]
    return original(target, *args, **kwargs)


def set_option(original: Method, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    key, value = (*args, *(kwargs[n] for n in ("key", "value")[len(args) :]))
    keep_options(target, {key: value})
    return original(target, *args, **kwargs)


def set_options(original: Method, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    keep_options(target, kwargs)
    return original(target, *args, **kwargs)


def set_layout(name: str) -> Wrapper:
    """Return the wrapper of ``bucketBy``, ``sortBy`` or ``clusterBy``, which only Spark's own tables support."""

    def note(original: Method, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        call_state(target).layout = name
        return original(target, *args, **kwargs)

    return note
