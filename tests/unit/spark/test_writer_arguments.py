"""Arguments of the methods of PySpark's writers."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("pyspark")


class _Writer:
    pass


@pytest.mark.parametrize("method", ["save", "save_as_named_table", "start_stream", "to_table"])
def test_options_of_other_formats_have_any_name(method: str) -> None:
    from pyhudi.spark.activation import stream_methods, write_methods
    from pyhudi.spark.activation.method_wrapping import MethodCall

    module: Any = write_methods if hasattr(write_methods, method) else stream_methods
    calls: list[Any] = []

    def original(_: _Writer, *args: str, **options: str) -> None:
        calls.append((args, options))

    getattr(module, method)(MethodCall(original, _Writer(), ("t", "jdbc"), {"target": "x"}))
    assert calls == [(("t", "jdbc"), {"target": "x"})]
