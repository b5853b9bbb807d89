"""The JSON text of stored facts, which is the same for equal facts, and help for reading many of them."""

from __future__ import annotations

import gc
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager


def dump(data: Mapping[str, object]) -> str:
    """Returns JSON with sorted keys, so that equal facts have equal texts."""
    return json.dumps(data, default=_plain, sort_keys=True)


def _plain(value: object) -> object:
    """Converts what `json` cannot write: numbers of NumPy, mappings that are not dicts, sets, and other objects."""
    if hasattr(value, "item"):
        return value.item()
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, (set, frozenset)):
        return sorted(value)
    return str(value)


@contextmanager
def without_collecting() -> Iterator[None]:
    """Switches the garbage collector off. Reading a large store makes no garbage, and looking for it takes a third of
    the time.
    """
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()
