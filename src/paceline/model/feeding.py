"""How input reaches a worker: by loader processes that prepare batches while it computes, or by itself. Pure."""

from __future__ import annotations

from dataclasses import replace

from paceline.model.step import Profile


def fed(profile: Profile, load_s: float, *, loaders: int, spare_cores: float | None = None) -> Profile:
    """The same worker, whose batches take `load_s` each to prepare.

    Without loaders the worker prepares them itself, before each step. With several, a batch comes every
    `load_s` ÷ loaders, as long as there are cores for all of them.

    Args:
        spare_cores: that loaders have for themselves; None: one each.
    """
    if loaders < 1:
        return replace(profile, input_s=load_s, prefetch=False)
    at_once = loaders if spare_cores is None else min(float(loaders), spare_cores)
    return replace(profile, input_s=load_s / at_once, prefetch=True)
