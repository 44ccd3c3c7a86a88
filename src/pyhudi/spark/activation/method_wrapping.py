"""Replacement of methods of PySpark's classes, and its reversal."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from functools import wraps
from typing import Any

from pyhudi.errors import each_warning_once
from pyhudi.spark.activation.call_state import begin_state

Method = Callable[..., Any]
Wrapper = Callable[[Method, Any, tuple[Any, ...], dict[str, Any]], Any]
ClassNames = tuple[tuple[str, str], ...]
"""Modules and names of classes."""
ORIGINALS: dict[tuple[type, str], Any] = {}
"""Replaced methods, by class and name."""


def classes(names: ClassNames) -> list[type]:
    """Import classes, except those of modules that cannot be imported."""
    imported = []
    for module, name in names:
        try:
            imported.append(getattr(importlib.import_module(module), name))
        except ImportError:  # Connect needs packages that classic Spark does not
            continue
    return imported


def wrap(cls: type, name: str, wrapper: Wrapper) -> None:
    """Replace a method by a wrapper, unless it is replaced already."""
    if (cls, name) in ORIGINALS:
        return
    original = cls.__dict__.get(name) or getattr(cls, name)

    @wraps(original)
    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        with each_warning_once():
            return wrapper(original, self, args, kwargs)

    ORIGINALS[(cls, name)] = original
    setattr(cls, name, method)


def wrap_creator(cls: type, name: str) -> None:
    """Wrap ``spark.read`` and ``df.write``, so that the objects they return record what created them."""
    original = cls.__dict__.get(name)
    if not isinstance(original, property) or (cls, name) in ORIGINALS:
        return
    getter = original.fget
    assert getter is not None

    def make(self: Any) -> Any:
        made = getter(self)
        begin_state(made, self)
        return made

    ORIGINALS[(cls, name)] = original
    setattr(cls, name, property(make, doc=original.__doc__))
