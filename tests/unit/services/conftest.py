"""Table versions of tests of services."""

from __future__ import annotations

import pytest

from tests.cases import seldom


@pytest.fixture(scope="module", params=[6, seldom(8), 9], ids=["v6", "v8", "v9"])
def version(request: pytest.FixtureRequest) -> int:
    version: int = request.param
    return version
