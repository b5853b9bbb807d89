"""How every benchmark states its claims: rows with a ratio and its interval, as a table or as JSON."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from paceline.stats.estimate import Estimate


@dataclass(frozen=True, kw_only=True)
class Claim:
    """One claim and its result."""

    name: str
    ratio: Mapping[str, float | None]
    """value, low, high: 95 % interval."""
    claim: str
    """What should hold, in words."""
    holds: bool
    n: int
    """Independent repeats behind it (processes, or rounds)."""
    facts: Mapping[str, Any] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "ratio": dict(self.ratio),
            "claim": self.claim,
            "holds": self.holds,
            "n": self.n,
            **self.facts,
        }


def with_ends(estimate: Estimate) -> dict[str, float | None]:
    """An estimate as the ratio of a claim."""
    return {"value": estimate.value, "low": estimate.low, "high": estimate.high}


def parser(description: str) -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(description=description)
    made.add_argument("--json", action="store_true", help="print the result as JSON on stdout")
    return made


def say(message: str) -> None:
    print(message, file=sys.stderr, flush=True)


def publish(claims: Sequence[Claim], *, as_json: bool, **further: Any) -> int:
    """Print all claims, in JSON with the additional values given by name. Returns 0 if every claim holds."""
    if as_json:
        print(json.dumps({"rows": [claim.to_json() for claim in claims], **further}, indent=1))
    else:
        for claim in claims:
            value, low, high = (claim.ratio[key] for key in ("value", "low", "high"))
            interval = "" if low is None or high is None else f" ({low:.4f}–{high:.4f})"
            mark = "holds" if claim.holds else "FAILS"
            print(f"{claim.name:<44} {value:.4f}{interval}  n={claim.n:<3} {mark}: {claim.claim}")
    return 0 if all(claim.holds for claim in claims) else 1
