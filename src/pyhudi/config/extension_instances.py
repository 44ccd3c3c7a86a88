"""Extensions that users register, such as mergers and key generators: a check of them, and hints at other classes."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

from pyhudi.errors import ConfigError


def check_instance(value: object, kind: type, function: str) -> None:
    """Check that an extension is an instance, and not its class.

    Args:
        value: The extension.
        kind: The class of which it must be an instance.
        function: Name of the function that registers it.

    Raises:
        ConfigError: It is something else.
    """
    if isinstance(value, kind):
        return
    shown = repr(value)
    if isinstance(value, type):
        shown = f"the class {value.__name__}: write {function}({value.__name__}())"
    raise ConfigError(f"{function} takes an instance of a {kind.__name__}, not {shown}")


def class_hint(class_name: str, classes: Iterable[str]) -> str:
    """Return ``"; did you mean …?"`` with the class whose name without its package is most similar; or an empty text.

    Args:
        class_name: Name of a Java class that is not known, with or without its package.
        classes: Full names of the known classes.
    """
    known = {name.rpartition(".")[2]: name for name in classes}
    close = difflib.get_close_matches(class_name.rpartition(".")[2], known, n=1, cutoff=0.9)
    return f"; did you mean {known[close[0]]}?" if close else ""
