"""Explains why one trial is slower than another: by cause, and by layer if layers were timed. Pure."""

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
"""The number of layers that are reported: those with the largest differences."""
FORWARD = "forward"


@dataclass(frozen=True, kw_only=True, slots=True)
class LayerGap:
    """The forward pass of one layer in both trials."""

    layer: str
    slower_s: float
    faster_s: float


@dataclass(frozen=True, kw_only=True, slots=True)
class Gap:
    """The difference between two trials."""

    slower: str
    """The label of the slower trial."""
    faster: str
    """The label of the faster trial."""
    ratio: float
    """Step of the slower trial ÷ step of the faster one."""
    parts: Mapping[str, float]
    """Cause → its fraction of the difference. They sum to 1; in a negative one the slower trial is ahead."""
    layers: tuple[LayerGap, ...]
    """Layers by difference, largest first; () if one of the trials has no layer times."""
    differing: tuple[str, ...]
    """Settings and traits in which the trials differ: "layout: nhwc | nchw"."""
    by: KnownBy
    sentence: str

    def to_json(self) -> dict[str, object]:
        return {**asdict(self), "parts": dict(self.parts), "differing": list(self.differing)}


@dataclass(frozen=True, kw_only=True, slots=True)
class Side:
    """One of the two trials."""

    label: str
    spent: Spent
    setting: ModelledTrial
    layers: Mapping[str, float]
    """Layer → seconds of its forward pass; {} if layers were not timed."""


def gap_between(slower: Side, faster: Side, differing: Sequence[str]) -> Gap | None:
    """Splits the difference of two trials by cause; None if the first is not slower."""
    slower_s, faster_s = (seconds_by_cause(side.spent, side.setting) for side in (slower, faster))
    whole = sum(slower_s.values()) - sum(faster_s.values())
    if whole <= 0:
        return None
    parts = {cause: (slower_s[cause] - faster_s[cause]) / whole for cause in CAUSES}
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
        sentence=f"{slower.label} takes {format_seconds(whole)} longer per step than {faster.label}: "
        f"{min(parts[most], 1.0):.0%} of that is {most}{where}{differ}",
    )


def gaps_of(comparison: Comparison, subjects: Sequence[Subject], profiles: Sequence[Record]) -> list[Gap]:
    """Explains every pair of rows that differ by more than noise.

    Args:
        comparison: the rows and the verdicts on them.
        subjects: the trials of the rows.
        profiles: runs with layer times.
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
    """Returns the seconds of each layer's forward pass, averaged over runs, ranks and steps."""
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
    layers = [LayerGap(layer=name, slower_s=slower[name], faster_s=faster[name]) for name in slower if name in faster]
    return tuple(sorted(layers, key=lambda layer: layer.faster_s - layer.slower_s)[:MOST_LAYERS])
