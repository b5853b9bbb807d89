"""Injects the fault that a study asked for when a rank reports that it has reached the step.

This takes a thread that looks for one file, and only in runs with a fault.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from paceline.sites import Site

LOOK_S = 0.05
"""How often the thread looks."""


@contextmanager
def disturbing(site: Site, folder: Path) -> Iterator[None]:
    """While this context is open, disturb the run at the step that the site names, if it names one."""
    step = site.disturbs_at()
    if step is None:
        yield
        return
    over = threading.Event()
    failures: list[Exception] = []

    def watch() -> None:
        while not over.wait(LOOK_S):
            if (folder / f"reached.{step}").exists():
                try:
                    site.disturb()
                except Exception as error:  # noqa: BLE001  raised again by the thread that waits for the run
                    failures.append(error)
                return

    watching = threading.Thread(target=watch, daemon=True)
    watching.start()
    try:
        yield
    finally:
        over.set()
        watching.join()
    if failures:
        raise failures[0]
