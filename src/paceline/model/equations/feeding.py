"""How input reaches a worker: by loader processes that prepare batches while it computes, or by itself. Pure."""

from __future__ import annotations

from dataclasses import replace

from paceline.model.equations.step import Profile


def arrival(load_s: float, *, loaders: int, spare_cores: float | None = None) -> tuple[float, bool]:
    """(seconds from one batch to the next, whether they pass while the worker computes).

    Without loaders the worker prepares batches itself, before each step. With several, a batch comes every
    `load_s` ÷ loaders, as long as there are cores for all of them.

    Args:
        load_s: to prepare a batch.
        spare_cores: that loaders have for themselves; None: one each.
    """
    if loaders < 1:
        return load_s, False
    return load_s / (loaders if spare_cores is None else min(float(loaders), spare_cores)), True


def fed(profile: Profile, load_s: float, *, loaders: int, spare_cores: float | None = None) -> Profile:
    """The same worker, whose batches take `load_s` each to prepare."""
    seconds, prefetch = arrival(load_s, loaders=loaders, spare_cores=spare_cores)
    return replace(profile, input_s=seconds, prefetch=prefetch)
