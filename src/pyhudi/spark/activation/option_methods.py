"""Methods that readers and writers share: ``format``, ``option`` and ``options``."""

from __future__ import annotations

from typing import Any

from pyhudi.spark.activation.call_state import call_state, keep_options
from pyhudi.spark.activation.method_wrapping import Method


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
