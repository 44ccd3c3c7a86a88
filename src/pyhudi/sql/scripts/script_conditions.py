"""Errors as the handlers of scripts (``DECLARE … HANDLER``) know them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pyhudi.sql.scripts.script_nodes import Handler

_NO_DATA = "02"
_INTERNAL = "XX"


@dataclass(frozen=True, slots=True)
class ErrorCondition:
    """The condition of an error.

    Attributes:
        name: Spark's name of it, in upper case, as ``CAST_INVALID_INPUT``; empty for errors of others.
        sqlstate: The SQLSTATE, in upper case; empty if there is none.
    """

    name: str = ""
    sqlstate: str = ""

    @property
    def is_no_data(self) -> bool:
        """True if there is no data, which is not an error: a script without a handler for it continues."""
        return self.sqlstate.startswith(_NO_DATA)

    def handler(self, handlers: Sequence[Handler]) -> Handler | None:
        """Return the handler of a block for this error: the most specific one, as in Spark. None if there is none."""
        return next(
            (handler for text in self._texts() for handler in handlers if text in handler.conditions),
            None,
        )

    def _texts(self) -> list[str]:
        """Return the conditions of handlers that include this one, the most specific first."""
        general = "NOT FOUND" if self.is_no_data else "SQLEXCEPTION"
        texts = [self.name, self.name.partition(".")[0], f"SQLSTATE {self.sqlstate}"]
        return texts if self.sqlstate.startswith(_INTERNAL) else [*texts, general]
