"""How input reaches a worker: by loader processes that prepare batches while it computes, or by itself. Pure."""

from __future__ import annotations


def arrival(load_s: float, *, loaders: int) -> tuple[float, bool]:
    """(seconds from one batch to the next, whether they pass while the worker computes).

    Without loaders the worker prepares batches itself, before each step. With several, a batch comes every
    `load_s` ÷ loaders, as long as there are cores for all of them.

    Args:
        load_s: to prepare a batch.
    """
    if loaders < 1:
        return load_s, False
    return load_s / loaders, True
