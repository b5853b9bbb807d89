"""Faults on demand: wait until a rank says that it has reached a step, then let the site act.

A thread that looks for one file, and only in runs for which the study asked for a fault.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from paceline.sites import Site

LOOK_S = 0.05


@contextmanager
def disturbing(site: Site, folder: Path) -> Iterator[None]:
    """Disturb the run at the step that the site named, if it named one."""
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
                except Exception as error:  # noqa: BLE001  raised again where somebody hears it
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
