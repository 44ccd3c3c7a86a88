"""Attributes that are read from the storage when they are first needed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar, overload

_Value = TypeVar("_Value")


class lazy_property(Generic[_Value]):  # noqa: N801 - used as a decorator
    """Like ``functools.cached_property``, whose lock in Python 3.11 is one for all instances of a class: a thread that
    reads a file would make all other threads wait, which read other files, of other tables even.

    Several threads that need the value of one instance for the first time may compute it several times.

    Args:
        compute: Returns the value of an instance. If it raises an error, the next access computes it again.
    """

    def __init__(self, compute: Callable[[Any], _Value]) -> None:
        self._compute = compute
        self._name = compute.__name__
        self.__doc__ = compute.__doc__

    @overload
    def __get__(self, instance: None, owner: type[Any]) -> lazy_property[_Value]: ...

    @overload
    def __get__(self, instance: object, owner: type[Any]) -> _Value: ...

    def __get__(self, instance: object | None, owner: type[Any]) -> lazy_property[_Value] | _Value:
        if instance is None:
            return self
        # The attribute of the instance precedes this one from now on.
        value: _Value = instance.__dict__.setdefault(self._name, self._compute(instance))
        return value
