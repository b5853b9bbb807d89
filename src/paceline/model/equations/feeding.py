"""How input reaches a worker: from loader processes during the step, or prepared by the worker itself. Pure."""

from __future__ import annotations


def arrival(load_s: float, *, loaders: int) -> tuple[float, bool]:
    """(seconds between batches, whether they overlap with compute).

    Without loaders the worker prepares each batch itself, before the step. With loaders a batch arrives every
    `load_s` ÷ loaders seconds, if there are cores for all of them.

    Args:
        load_s: Seconds to prepare a batch.
    """
    if loaders < 1:
        return load_s, False
    return load_s / loaders, True
