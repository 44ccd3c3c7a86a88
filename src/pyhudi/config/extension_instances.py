"""Check of the extensions that users register, such as mergers and key generators."""

from __future__ import annotations

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
