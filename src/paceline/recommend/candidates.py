"""Candidates of a recommendation: the measured configurations, with 90 % intervals as predictions have. Pure."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from paceline.compare import Comparison, Fairness, Row
from paceline.compare.runs import Runs
from paceline.model.fitting.calibration import Calibration
from paceline.plan import Catalog, Trial
from paceline.plan.vocabulary import StrategyClass
from paceline.spec import Study
from paceline.stats import LEAST_RUNS, mean_interval, ratio_interval
from paceline.stats.estimate import MODELLED_LEVEL, Estimate
from paceline.stats.known_by import DERIVED, MEASURED, KnownBy


@dataclass(frozen=True, kw_only=True, slots=True)
class Basis:
    """The data that a recommendation rests on; the caller collects it."""

    study: Study
    comparison: Comparison
    runs: tuple[Runs, ...]
    """The runs of each row of the comparison, in the order of the rows."""
    calibrations: tuple[Calibration, ...]
    """The calibrations of the study; () if nothing was calibrated."""
    fairness: Fairness
    catalog: Catalog
    tries: frozenset[str] = frozenset()
    """The ids of trials that were run to try a recommendation; they are not part of the study."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Candidate:
    """One configuration, measured or predicted."""

    trial: Trial
    """The trial that was run, or that would be run."""
    throughput: Estimate
    """The throughput in samples per second."""
    by: KnownBy
    """MEASURED or SIMULATED if it was run; MODELLED or GUESSED if it is predicted."""
    runs: Runs
    """Its runs. If it was not run, those of the nearest trial that was: they give its machine and fairness proof."""
    row: Row | None = None
    """Its row of the comparison; None if it was not measured."""
    memory_bytes: float | None = None
    """The memory per worker; None if unknown."""
    extrapolated: str = ""
    """How far it lies beyond the measured range, in words; "" if it lies within."""

    @property
    def was_run(self) -> bool:
        return self.row is not None

    @property
    def identity(self) -> str:
        return identity(self.trial)

    @property
    def hosts(self) -> int:
        return self.trial.cluster.hosts

    @property
    def strategy_class(self) -> StrategyClass:
        return self.trial.framework.strategy_class

    @property
    def rounds(self) -> dict[int, float]:
        """Round → samples per second, of a candidate that was measured."""
        return _rounds(self.runs)


def identity(trial: Trial) -> str:
    """Returns an id of the configuration: trials that differ only in length, seed or emulation pace share it."""
    return replace(
        trial,
        workload=replace(trial.workload, seed=0),
        cluster=replace(trial.cluster, options=trial.cluster.lasting_options),
        measure=replace(trial.measure, warmup_steps=0, steps=1),
    ).id


def task(trial: Trial) -> tuple[str, str, str, str]:
    """Returns what a choice must not change: the model, the input, the site and the device."""
    return trial.workload.graph, trial.workload.input, trial.cluster.site, trial.cluster.device


def measured(basis: Basis) -> tuple[list[Candidate], list[str]]:
    """Returns one candidate per configuration with at least two successful runs, and sentences on what was left out."""
    candidates: dict[tuple[str, str | None, str | None], Candidate] = {}
    reasons: dict[str, list[str]] = {}
    for runs, row in zip(basis.runs, basis.comparison.rows, strict=True):
        rounds = _rounds(runs)
        if len(rounds) < 2:
            if why := _too_little(row, rounds, runs):
                reasons.setdefault(why, []).append(row.label)
            continue
        candidate = Candidate(
            trial=runs.trial,
            throughput=interval_of(rounds, runs.measured_by),
            by=runs.measured_by,
            runs=runs,
            row=row,
            memory_bytes=max(runs.by_round("peak_rss_rank_bytes").values(), default=None),
        )
        first = candidates.setdefault((candidate.identity, runs.machine, runs.fingerprint), candidate)
        if first is not candidate:
            reasons.setdefault("same configuration as another trial", []).append(row.label)
    return list(candidates.values()), [f"{_first_of(labels)}: {why}" for why, labels in reasons.items()]


def _too_little(row: Row, rounds: Mapping[int, float], runs: Runs) -> str:
    """Says why a row has no interval; "" if it was not run at all."""
    if rounds:
        return "a single run gives no spread; measure more: paceline run STUDY --again"
    return f"{row.outcome}: {row.reason}" if runs.failed else ""


def _first_of(labels: Sequence[str]) -> str:
    return labels[0] if len(labels) == 1 else f"{labels[0]} and {len(labels) - 1} more"


def were_run(basis: Basis) -> set[str]:
    """Returns the identities of all trials that were run, including failed ones: these are not predicted."""
    return {identity(runs.trial) for runs in basis.runs if runs.measured or runs.failed}


def _rounds(runs: Runs) -> dict[int, float]:
    """Returns round → samples per second, in the time of the emulated cluster."""
    scale = runs.trial.cluster.pace.true_scale
    return {repeat: value / scale for repeat, value in runs.by_round("throughput").items()}


def interval_of(rounds: Mapping[int, float], by: KnownBy = MEASURED) -> Estimate:
    """Returns the mean over runs, with an interval of the same level as predictions have."""
    return mean_interval(list(rounds.values()), unit="samples/s", by=by, level=MODELLED_LEVEL)


def ratio(candidate: Candidate, reference: Candidate) -> Estimate:
    """Returns the throughput of a candidate ÷ that of a reference.

    Runs are paired by round if both were measured; otherwise the two throughputs count as independent.
    """
    a, b = candidate.throughput, reference.throughput
    known_by: KnownBy = next((side.by for side in (candidate, reference) if not side.was_run), DERIVED)
    runs = min((side.n_runs for side in (a, b) if side.n_runs is not None), default=None)
    no_ends = Estimate(
        value=a.value / b.value, low=None, high=None, level=MODELLED_LEVEL, unit="1", by=known_by, n_runs=runs
    )
    if candidate is reference:
        return replace(no_ends, low=1.0, high=1.0)
    if candidate.was_run and reference.was_run:
        test = ratio_interval(
            candidate.rounds, reference.rounds, by=known_by, level=MODELLED_LEVEL, least_runs=LEAST_RUNS
        )
        if test.spread_known:
            return test.ratio
    if a.ends is None or b.ends is None:
        return no_ends
    # The logarithms are taken as independent and normal, with intervals of the same level.
    down = math.hypot(math.log(a.value / a.ends[0]), math.log(b.ends[1] / b.value))
    up = math.hypot(math.log(a.ends[1] / a.value), math.log(b.value / b.ends[0]))
    return replace(no_ends, low=no_ends.value * math.exp(-down), high=no_ends.value * math.exp(up))


def settings(trial: Trial, catalog: Catalog) -> dict[str, object]:
    """Returns the knobs, site options and loaders that differ from their defaults."""
    framework, cluster = trial.framework, trial.cluster
    knobs = catalog.capabilities[framework.name].knobs
    options = catalog.site.knobs
    changed: dict[str, object] = {
        name: value
        for owner, defaults in ((framework.knobs, knobs), (cluster.lasting_options, options))
        for name, value in owner.items()
        if name not in defaults or value != defaults[name].default
    }
    return changed | ({"loader_workers": trial.workload.loader_workers} if trial.workload.loader_workers else {})


def set_apart(trials: Sequence[Trial], catalog: Catalog) -> list[dict[str, object]]:
    """Returns for each trial the settings in which the trials of its framework differ."""
    all_settings = [settings(trial, catalog) for trial in trials]
    values: dict[tuple[str, str], list[object]] = {}
    for trial, own in zip(trials, all_settings, strict=True):
        for name, value in own.items():
            values.setdefault((trial.framework.name, name), []).append(value)
    counts: dict[str, int] = {}
    for trial in trials:
        counts[trial.framework.name] = counts.get(trial.framework.name, 0) + 1

    def differs(framework: str, name: str) -> bool:
        seen = values[framework, name]
        return len(seen) < counts[framework] or any(value != seen[0] for value in seen)

    return [
        {name: value for name, value in own.items() if differs(trial.framework.name, name)}
        for trial, own in zip(trials, all_settings, strict=True)
    ]
