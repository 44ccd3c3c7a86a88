"""Replacement of methods of PySpark's classes, and its reversal."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from typing import Any

from pyhudi.errors import each_warning_once
from pyhudi.spark.activation.recorded_settings import record_creator

Method = Callable[..., Any]


@dataclass(frozen=True, slots=True)
class MethodCall:
    """A call of a wrapped method.

    Attributes:
        original: Spark's method.
        target: The object whose method is called.
        args: Positional arguments.
        kwargs: Arguments by name.
    """

    original: Method
    target: Any
    args: tuple[Any, ...]
    kwargs: dict[str, Any]

    def run(self) -> Any:
        """Call Spark's method."""
        return self.original(self.target, *self.args, **self.kwargs)

    def first(self, name: str) -> Any:
        """Return the first argument, whose name is ``name``."""
        return self.args[0] if self.args else self.kwargs[name]

    def arguments(self, *names: str) -> dict[str, Any]:
        """Return all arguments by name. ``names``: those of the positional ones."""
        return dict(zip(names, self.args, strict=False)) | self.kwargs


Wrapper = Callable[[MethodCall], Any]
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
            return wrapper(MethodCall(original, self, args, kwargs))

    ORIGINALS[(cls, name)] = original
    setattr(cls, name, method)


def replaced_method(target: Any, name: str) -> Method:
    """Return Spark's method that a wrapper of the class of an object replaces."""
    cls = next(c for c in type(target).__mro__ if (c, name) in ORIGINALS)
    method: Method = ORIGINALS[(cls, name)]
    return method


def wrap_creator(cls: type, name: str) -> None:
    """Wrap ``spark.read`` and ``df.write``, so that the objects they return record what created them."""
    original = cls.__dict__.get(name)
    if not isinstance(original, property) or (cls, name) in ORIGINALS:
        return
    getter = original.fget
    assert getter is not None

    def make(self: Any) -> Any:
        made = getter(self)
        record_creator(made, self)
        return made

    ORIGINALS[(cls, name)] = original
    setattr(cls, name, property(make, doc=original.__doc__))
