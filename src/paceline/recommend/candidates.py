"""What could be chosen: configurations that were measured, each with a 90 % interval, as the model has it. Pure."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from paceline.compare import Comparison, Fairness, Row
from paceline.compare.runs import Runs
from paceline.model.fitting.calibration import Calibration
from paceline.model.forecast.predict import LEVEL
from paceline.plan import Catalog, Trial
from paceline.plan.vocabulary import StrategyClass
from paceline.spec import Study
from paceline.stats import mean_interval, ratio_interval
from paceline.stats.estimate import Estimate, over_runs
from paceline.stats.known_by import DERIVED, MEASURED, KnownBy


@dataclass(frozen=True, kw_only=True, slots=True)
class Known:
    """Everything that a recommendation rests on, gathered by the caller."""

    study: Study
    comparison: Comparison
    runs: tuple[Runs, ...]
    """Those behind the rows of the comparison, in their order."""
    calibrations: tuple[Calibration, ...]
    """() before anything was calibrated."""
    fairness: Fairness
    catalog: Catalog
    tries: frozenset[str] = frozenset()
    """Ids of trials that are not the study's: they were run to try what was recommended for it."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Candidate:
    """One configuration with what is known of it."""

    trial: Trial
    """What was run, or would be."""
    throughput: Estimate
    """Samples a second."""
    by: KnownBy
    """MEASURED or SIMULATED where it was run, or where the model's word comes from: MODELLED, GUESSED."""
    runs: Runs
    """Its own; of one that was not run, those of the nearest one that was, which speak for its machine and proof."""
    row: Row | None = None
    """Of the comparison, where it was measured."""
    memory_bytes: float | None = None
    """Of a worker; None: not known."""
    extrapolated: str = ""
    """How far beyond what was run, in words."""

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
        """Round → samples a second, of one that was measured."""
        return _rounds(self.runs)


def identity(trial: Trial) -> str:
    """The same for all trials that one would choose as one: however long, from whatever seed and how slowed down."""
    return replace(
        trial,
        workload=replace(trial.workload, seed=0),
        cluster=replace(trial.cluster, options=trial.cluster.lasting_options),
        measure=replace(trial.measure, warmup_steps=0, steps=1),
    ).id


def task(trial: Trial) -> tuple[str, str, str, str]:
    """What is to be trained, from what input and on what: a choice leaves that as it is."""
    return trial.workload.graph, trial.workload.input, trial.cluster.site, trial.cluster.device


def measured(known: Known) -> tuple[list[Candidate], list[str]]:
    """Rows of the comparison with two good runs or more, one a configuration; what was left out, in sentences."""
    found: dict[tuple[str, str | None, str | None], Candidate] = {}
    reasons: dict[str, list[str]] = {}
    for runs, row in zip(known.runs, known.comparison.rows, strict=True):
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
        first = found.setdefault((candidate.identity, runs.machine, runs.fingerprint), candidate)
        if first is not candidate:
            reasons.setdefault("differs from another in nothing that one would choose", []).append(row.label)
    return list(found.values()), [f"{_first_of(labels)}: {why}" for why, labels in reasons.items()]


def _too_little(row: Row, rounds: Mapping[int, float], runs: Runs) -> str:
    """Why a row has no interval, in words; "" where it was not run at all."""
    if rounds:
        return "one run says nothing about spread; measure more: paceline run STUDY --again"
    return f"{row.outcome}: {row.reason}" if runs.failed else ""


def _first_of(labels: Sequence[str]) -> str:
    return labels[0] if len(labels) == 1 else f"{labels[0]} and {len(labels) - 1} more"


def were_run(known: Known) -> set[str]:
    """Identities of all that was run, also of what failed: the model has no say about these."""
    return {identity(runs.trial) for runs in known.runs if runs.measured or runs.failed}


def _rounds(runs: Runs) -> dict[int, float]:
    """Samples a second, in the time of a site that is not slowed down."""
    scale = runs.trial.cluster.pace.true_scale
    return {repeat: value / scale for repeat, value in runs.by_round("throughput").items()}


def interval_of(rounds: Mapping[int, float], by: KnownBy = MEASURED) -> Estimate:
    """The mean over runs with an interval of the level that predictions have."""
    return over_runs(mean_interval(list(rounds.values()), LEVEL), len(rounds), "samples/s", by)


def ratio(one: Candidate, other: Candidate) -> Estimate:
    """Throughput of one over that of the other: runs of two that were measured round by round, else independent."""
    a, b = one.throughput, other.throughput
    known_by: KnownBy = next((side.by for side in (one, other) if not side.was_run), DERIVED)
    runs = min((side.n_runs for side in (a, b) if side.n_runs is not None), default=None)
    unknown = Estimate(value=a.value / b.value, low=None, high=None, level=LEVEL, unit="1", by=known_by, n_runs=runs)
    if one is other:
        return replace(unknown, low=1.0, high=1.0)
    if one.was_run and other.was_run:
        paired = ratio_interval(one.rounds, other.rounds, LEVEL)
        if paired.low is not None:
            return over_runs(paired, paired.n_pairs or runs or 0, "1", known_by)
    if a.ends is None or b.ends is None:
        return unknown
    # Ends of two independent normal logarithms, each at the same level.
    down = math.hypot(math.log(a.value / a.ends[0]), math.log(b.ends[1] / b.value))
    up = math.hypot(math.log(a.ends[1] / a.value), math.log(b.value / b.ends[0]))
    return replace(unknown, low=unknown.value * math.exp(-down), high=unknown.value * math.exp(up))


def settings(trial: Trial, catalog: Catalog) -> dict[str, object]:
    """Knobs, options of the site and loaders that are not at their defaults."""
    framework, cluster = trial.framework, trial.cluster
    knobs = catalog.capabilities[framework.name].knobs
    options = catalog.site.knobs
    found = {
        name: value
        for owner, defaults in ((framework.knobs, knobs), (cluster.lasting_options, options))
        for name, value in owner.items()
        if name not in defaults or value != defaults[name].default
    }
    return found | ({"loader_workers": trial.workload.loader_workers} if trial.workload.loader_workers else {})


def set_apart(trials: Sequence[Trial], catalog: Catalog) -> list[dict[str, object]]:
    """Of each trial those settings in which trials of its framework differ."""
    all_settings = [settings(trial, catalog) for trial in trials]
    values: dict[tuple[str, str], list[object]] = {}
    for trial, mine in zip(trials, all_settings, strict=True):
        for name in mine:
            values.setdefault((trial.framework.name, name), []).append(mine[name])
    counts: dict[str, int] = {}
    for trial in trials:
        counts[trial.framework.name] = counts.get(trial.framework.name, 0) + 1

    def differs(framework: str, name: str) -> bool:
        seen = values[framework, name]
        return len(seen) < counts[framework] or any(value != seen[0] for value in seen)

    return [
        {name: value for name, value in mine.items() if differs(trial.framework.name, name)}
        for trial, mine in zip(trials, all_settings, strict=True)
    ]
