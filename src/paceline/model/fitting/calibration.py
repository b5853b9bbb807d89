"""The fitted model of one family of configurations, with its uncertainty. Stored as JSON."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from paceline.errors import PacelineError
from paceline.model.equations.arrays import Floats
from paceline.model.equations.conditions import Conditions
from paceline.model.equations.parameters import NAMES, UNKNOWNS, as_mapping
from paceline.model.equations.ready import Ready
from paceline.model.equations.stragglers import ALIKE, Straggling
from paceline.plan.vocabulary import REPLICATED, RING, Exchange, Sharing
from paceline.stats.estimate import MODELLED_LEVEL, Estimate
from paceline.stats.known_by import MODELLED, KnownBy

VERSION = 1
TOGETHER = 0.99
"""Fraction of calibrations whose intervals of parameters all hold at once."""
Item = TypeVar("Item")


@dataclass(frozen=True, kw_only=True, slots=True)
class ModelFamily:
    """What all configurations described by one model have in common."""

    framework: str
    strategy: str
    model: str
    graph: str
    """Identity of what is trained: the hash of its graph, or of a script's files with its arguments."""
    knobs: Mapping[str, object]
    threads: int
    device: str
    site: str
    options: Mapping[str, object]
    """Options of the site, except its slow motion."""
    input: str
    machine: str
    lock: str
    simulated: bool

    @property
    def label(self) -> str:
        return f"{self.framework} {self.strategy} · {self.model}"


@dataclass(frozen=True, kw_only=True, slots=True)
class Hull:
    """The range of conditions that was run: predictions inside interpolate, predictions outside extrapolate."""

    workers: tuple[int, int]
    hosts: tuple[int, int]
    batch: tuple[float, float]
    """Samples per worker and step."""
    bandwidth: tuple[float, float] | None
    """Bandwidth of links between hosts; None if none was limited."""

    def beyond(self, conditions: Conditions) -> tuple[float, str]:
        """(factor, axis) by which the conditions lie farthest outside; (1, "") inside."""
        factors = {
            "the workers": conditions.workers / self.workers[1],
            "the batch": max(conditions.samples / self.batch[1], self.batch[0] / max(conditions.samples, 1e-9)),
        }
        if conditions.bandwidth is not None and conditions.hosts > 1 and self.bandwidth is not None:
            low, high = self.bandwidth
            factors["the bandwidth"] = max(conditions.bandwidth / high, low / conditions.bandwidth)
        axis = max(factors, key=lambda name: factors[name])
        return (factors[axis], axis) if factors[axis] > 1 + 1e-9 else (1.0, "")


@dataclass(frozen=True, kw_only=True, slots=True)
class Calibration:
    """The fitted model of one family."""

    family: ModelFamily
    by: KnownBy
    """MODELLED from records or GUESSED from data sheets."""
    vector: Floats
    low: Floats
    high: Floats
    """Bounds of each parameter's interval; all of them hold at once in a fraction TOGETHER of calibrations. Those of a
    guess hold one by one, as predictions do."""
    draws: Floats
    """Other plausible parameter vectors, one per row; intervals of predictions are computed from them."""
    straggling: Straggling = ALIKE
    hull: Hull
    residual: float
    """Logarithm of the factor within which 90 % of held-out trials were predicted (conformal)."""
    held_out: int
    """Number of held-out trials behind `residual`."""
    noise: float
    """Standard deviation of the logarithm of step time between runs; no model can predict better."""
    unidentified: tuple[str, ...] = ()
    """What the runs could not determine, as sentences."""
    remarks: tuple[str, ...] = ()
    """Reasons to doubt the fit, as sentences."""
    exchange: Exchange = RING
    sharing: Sharing = REPLICATED
    every: int = 1
    passes: int = 1
    """Passes per step of the largest run, as in `Conditions`."""
    servers_per_host: int = 0
    prefetch: bool = False
    messages: tuple[float, ...] = ()
    """Bytes of each message of a step."""
    bucketed: bool = False
    ready: Ready | None = None
    memory: tuple[float, float] | None = None
    """Bytes per worker: a fixed part, and a part per sample."""
    runs: tuple[str, ...] = field(default=())
    """Ids of the trials it was fitted to."""
    evidence: str = ""
    """Digest of the fitted observations; "" for a guess and for files of earlier versions."""

    def parameters(self) -> dict[str, Estimate]:
        """Maps the name of each parameter to its value and interval."""
        values, low, high = map(as_mapping, (self.vector, self.low, self.high))
        level = TOGETHER if self.by == MODELLED else MODELLED_LEVEL
        return {
            name: Estimate(
                value=values[name], low=low[name], high=high[name], level=level, unit=unit, by=self.by, n_runs=None
            )
            for name, unit in ((unknown.name, unknown.unit) for unknown in UNKNOWNS)
        }

    def to_json(self) -> dict[str, object]:
        data = {name: getattr(self, name) for name in self.__dataclass_fields__}
        data["family"], data["hull"], data["straggling"] = (
            asdict(self.family),
            asdict(self.hull),
            asdict(self.straggling),
        )
        data["ready"] = asdict(self.ready) if self.ready else None
        for name in ("vector", "low", "high", "draws"):
            data[name] = np.asarray(data[name]).tolist()
        return {"names": list(NAMES), **data}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Calibration:
        plain = dict(data)
        if tuple(plain.pop("names")) != NAMES:
            raise ValueError("written by another version of Paceline")
        for name in ("vector", "low", "high", "draws"):
            plain[name] = np.asarray(plain[name], dtype=float)
        for name in ("unidentified", "remarks", "messages", "runs", "memory"):
            plain[name] = _tuple(plain[name])
        plain["family"], plain["straggling"] = ModelFamily(**plain["family"]), Straggling(**plain["straggling"])
        hull = plain["hull"]
        plain["hull"] = Hull(
            workers=_range(hull["workers"]),
            hosts=_range(hull["hosts"]),
            batch=_range(hull["batch"]),
            bandwidth=None if hull["bandwidth"] is None else _range(hull["bandwidth"]),
        )
        if ready := plain["ready"]:
            plain["ready"] = Ready(
                **{**ready, "fractions": _tuple(ready["fractions"]), "bytes": _tuple(ready["bytes"])}
            )
        return cls(**plain)


def _tuple(values: list[Item] | None) -> tuple[Item, ...] | None:
    """A list from JSON as a tuple; None stays None."""
    return None if values is None else tuple(values)


def _range(ends: list[Item]) -> tuple[Item, Item]:
    low, high = ends
    return low, high


def write_calibrations(calibrations: Sequence[Calibration], path: Path) -> None:
    """Write the calibrations atomically."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_suffix(".part")
    part.write_text(
        json.dumps({"version": VERSION, "calibrations": [calibration.to_json() for calibration in calibrations]}),
        encoding="utf-8",
    )
    part.replace(path)


def read_calibrations(path: Path) -> list[Calibration]:
    """Read what `write_calibrations` wrote.

    Raises:
        PacelineError: The file is missing, damaged or of another version.
    """
    again = "calibrate again: paceline calibrate STUDY"
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
        if data["version"] != VERSION:
            raise ValueError("written by another version of Paceline")
        return [Calibration.from_json(plain) for plain in data["calibrations"]]
    except FileNotFoundError:
        raise PacelineError(f"{path}: there is no calibration", hint=again) from None
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise PacelineError(f"{path}: cannot be read: {error}", hint=again) from None
