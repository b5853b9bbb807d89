"""Why one trial is slower than another: which causes make the difference, and which layers, where timed. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass

from paceline.compare import Comparison
from paceline.explain.finding import CAUSES
from paceline.explain.shares import seconds_by_cause
from paceline.explain.spent import Spent
from paceline.explain.trials import Subject
from paceline.explain.without import ModelledTrial
from paceline.plan.trial import Trial
from paceline.record.record import Record
from paceline.stats import Verdict
from paceline.stats.known_by import KnownBy, weakest
from paceline.units import format_seconds

MOST_LAYERS = 5
"""That are named: those that make most of the difference."""
FORWARD = "forward"


@dataclass(frozen=True, kw_only=True, slots=True)
class LayerGap:
    """One layer's forward pass in both."""

    layer: str
    slower_s: float
    faster_s: float


@dataclass(frozen=True, kw_only=True, slots=True)
class Gap:
    """The difference between two trials."""

    slower: str
    faster: str
    """Their labels."""
    ratio: float
    """Step of the slower ÷ of the faster."""
    parts: Mapping[str, float]
    """Cause → its part of the difference; they sum up to 1. Below zero: there the slower one is ahead."""
    layers: tuple[LayerGap, ...]
    """The largest differences first; () where one of them has no layer times."""
    differing: tuple[str, ...]
    """Settings and traits that bear on it: "layout: nhwc | nchw"."""
    by: KnownBy
    sentence: str

    def to_json(self) -> dict[str, object]:
        return {**asdict(self), "parts": dict(self.parts), "differing": list(self.differing)}


@dataclass(frozen=True, kw_only=True, slots=True)
class Side:
    """One of the two."""

    label: str
    spent: Spent
    setting: ModelledTrial
    layers: Mapping[str, float]
    """Layer → seconds of its forward pass; {} where they were not timed."""


def gap_between(slower: Side, faster: Side, differing: Sequence[str]) -> Gap | None:
    """None where the first is not slower."""
    theirs, ours = (seconds_by_cause(side.spent, side.setting) for side in (slower, faster))
    whole = sum(theirs.values()) - sum(ours.values())
    if whole <= 0:
        return None
    parts = {cause: (theirs[cause] - ours[cause]) / whole for cause in CAUSES}
    most = max(parts, key=lambda cause: parts[cause])
    layers = _layers(slower.layers, faster.layers)
    where = f", most of it in {layers[0].layer}" if layers else ""
    differ = f"; they differ in {', '.join(differing)}" if differing else ""
    return Gap(
        slower=slower.label,
        faster=faster.label,
        ratio=slower.spent.step_s / faster.spent.step_s,
        parts=parts,
        layers=layers,
        differing=tuple(differing),
        by=weakest(slower.spent.by, faster.spent.by),
        sentence=f"{slower.label} takes {format_seconds(whole)} longer a step than {faster.label}: "
        f"{min(parts[most], 1.0):.0%} of that is {most}{where}{differ}",
    )


def gaps_of(comparison: Comparison, subjects: Sequence[Subject], profiles: Sequence[Record]) -> list[Gap]:
    """Why the slower one is slower, for every pair of rows that really differ.

    Args:
        subjects: the trials behind the rows.
        profiles: runs whose layers were timed one by one.
    """
    by_trial = {subject.trial.id: subject for subject in subjects}
    gaps = []
    for pair in comparison.verdicts:
        if pair.verdict != Verdict.DIFFERENT.words:
            continue
        slower, faster = (
            _side(by_trial.get(row.trial), row.label, profiles) for row in map(comparison.row, (pair.b, pair.a))
        )
        if slower is not None and faster is not None:
            gaps.append(gap_between(slower, faster, pair.factor.differing if pair.factor else ()))
    return [gap for gap in gaps if gap is not None]


def _side(subject: Subject | None, label: str, profiles: Sequence[Record]) -> Side | None:
    if subject is None or subject.spent is None:
        return None

    def profiled(trial: Trial) -> tuple[str, str, int]:
        return trial.workload.graph, trial.framework.name, trial.workload.batch_per_worker

    timed = [record for record in profiles if profiled(record.trial) == profiled(subject.trial)]
    return Side(label=label, spent=subject.spent, setting=subject.setting, layers=layer_times(timed))


def layer_times(records: Sequence[Record]) -> dict[str, float]:
    """Layer → seconds of its forward pass, mean over runs, ranks and steps."""
    sums: dict[str, list[float]] = {}
    for record in records:
        if record.layers is None or not record.ok:
            continue
        columns = record.layers.to_pydict()
        for layer, what, seconds in zip(columns["layer"], columns["what"], columns["seconds"], strict=True):
            if what == FORWARD:
                sums.setdefault(layer, []).append(seconds)
    return {layer: sum(values) / len(values) for layer, values in sums.items()}


def _layers(slower: Mapping[str, float], faster: Mapping[str, float]) -> tuple[LayerGap, ...]:
    both = [LayerGap(layer=name, slower_s=slower[name], faster_s=faster[name]) for name in slower if name in faster]
    return tuple(sorted(both, key=lambda one: one.faster_s - one.slower_s)[:MOST_LAYERS])
