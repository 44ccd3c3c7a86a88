"""Progress bars of table services in a terminal."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from pyhudi.errors import SetupError
from pyhudi.metrics.progress import Progress

if TYPE_CHECKING:
    from rich.console import Console


@contextmanager
def progress_bar(console: Console | None = None) -> Iterator[Progress]:
    """Show progress bars during the block: ``with progress_bar() as progress:
    table.services.clean(progress=progress)``.

    Args:
        console: Console of ``rich``; None for the standard output.

    Yields:
        The callback for the ``progress`` argument of services, which shows one bar per kind of work.

    Raises:
        SetupError: The package ``rich`` is missing.
    """
    try:
        from rich.progress import Progress as Bars
        from rich.progress import TaskID
    except ImportError as error:
        raise SetupError("progress bars require the package rich: pip install 'pyhudi[report]'") from error
    guard = threading.Lock()
    tasks: dict[str, TaskID] = {}
    with Bars(console=console) as bars:

        def update(what: str, done: int, total: int) -> None:
            with guard:
                if what not in tasks:
                    tasks[what] = bars.add_task(what, total=total)
                bars.update(tasks[what], completed=done, total=total)

        yield update
