"""Facts as the JSON text in which they are stored: the same facts always make the same text, and how many are read."""

from __future__ import annotations

import gc
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager


def dump(data: Mapping[str, object]) -> str:
    """With sorted keys, so that what is equal is stored equal."""
    return json.dumps(data, default=_plain, sort_keys=True)


def _plain(value: object) -> object:
    """What JSON has no word for: NumPy's numbers, and other mappings and sequences than Python's own."""
    if hasattr(value, "item"):
        return value.item()
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, (set, frozenset)):
        return sorted(value)
    return str(value)


@contextmanager
def without_collecting() -> Iterator[None]:
    """Of all that a large store holds nothing is garbage, and looking for it takes a third of the time."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()
