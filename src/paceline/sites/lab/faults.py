"""Faults that a study asks for, and when: `cut-link:lab2@30`, `slow-host:lab2@30:4`, `kill-host:lab2@30`. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass

NONE = "none"
FORMS = "none, cut-link:HOST@STEP, slow-host:HOST@STEP:FACTOR, kill-host:HOST@STEP"
_FAULT = re.compile(r"(cut-link|kill-host|slow-host):([\w-]+)@(\d+)(?::(\d+(?:\.\d+)?))?")


@dataclass(frozen=True, kw_only=True, slots=True)
class Fault:
    """One fault."""

    kind: str
    """"cut-link", "slow-host" or "kill-host"."""
    host: str
    """Name of the host that it happens to."""
    step: int
    """It happens when a rank is about to take this step; steps are counted from 0, warm-up included."""
    factor: float = 1.0
    """How many times slower a slowed host becomes."""


def parse_fault(text: str) -> Fault | None:
    """The fault that a study asks for; None for "none".

    Raises:
        ValueError: the text is neither.
    """
    if text == NONE:
        return None
    match = _FAULT.fullmatch(text)
    if not match or (match[1] == "slow-host") != (match[4] is not None):
        raise ValueError(f"fault {text!r} should be one of {FORMS}")
    factor = float(match[4] or 1.0)
    if factor < 1.0:
        raise ValueError(f"fault {text!r}: a factor below 1 would make the host faster")
    return Fault(kind=match[1], host=match[2], step=int(match[3]), factor=factor)
