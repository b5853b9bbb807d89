"""Predicts configurations that were not run: sizes, batches, the best bucket size and compressed gradients."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from paceline.compare.runs import Runs
from paceline.model.equations.conditions import Conditions
from paceline.model.equations.terms import step_terms
from paceline.model.fitting.calibration import Calibration
from paceline.model.forecast.predict import Prediction, conditions_for, predict, with_buckets
from paceline.model.forecast.what_if import best_bucket, changed, parse_changes
from paceline.plan import Catalog, Trial
from paceline.plan.vocabulary import APPROXIMATE, EXACT
from paceline.recommend.candidates import Basis, Candidate, identity, task, were_run
from paceline.recommend.grid import grid, in_family, nearest, refused, with_knobs
from paceline.recommend.objective import Wish

LEAST_BUCKET_GAIN = 0.01
"""The smallest relative gain for which another bucket size is proposed."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Forecasts:
    """Predicted candidates."""

    candidates: tuple[Candidate, ...]
    left_out: tuple[str, ...]
    """Sentences on what is not predicted, and why."""


def forecasts(basis: Basis, wish: Wish, present: Candidate) -> Forecasts:
    """Predicts the configurations within the limits that could replace the present choice and were not run."""
    predicted: dict[str, Candidate] = {}
    left_out: list[str] = []
    run = were_run(basis)
    if not basis.calibrations:
        left_out.append("configurations that were not run: there is no model yet; fit it: paceline calibrate STUDY")
    for calibration in basis.calibrations:
        members = [runs for runs in basis.runs if runs.measured and _taught(runs, calibration)]
        if not members and calibration.family.graph == present.trial.workload.identity:
            left_out.append(f"{calibration.family.label}: its calibration rests on runs that are not in this store")
        if not members or not _wanted(members[0].trial, wish, present.trial):
            continue
        family = _Family(calibration=calibration, members=members, basis=basis, run=run)
        for trial in family.asked(wish, left_out):
            for candidate in family.variants(trial, wish, left_out):
                predicted.setdefault(candidate.identity, candidate)
    return Forecasts(candidates=tuple(predicted.values()), left_out=tuple(dict.fromkeys(left_out)))


def _taught(runs: Runs, calibration: Calibration) -> bool:
    """Whether a calibration was fitted to these runs."""
    return runs.trial.id in calibration.runs and runs.machine == calibration.family.machine


def _wanted(trial: Trial, wish: Wish, present: Trial) -> bool:
    """Whether a configuration of the trial's family could be chosen; others are not predicted, to save time."""
    within, framework = wish.within, trial.framework
    return (
        task(trial) == task(present)
        and framework.simulated == present.framework.simulated
        and framework.strategy_class in {present.framework.strategy_class, *wish.allow}
        and (not within.framework or framework.name in within.framework)
        and (not within.strategy or framework.strategy in within.strategy)
        and within.threads.allows(trial.cluster.threads_per_worker)
    )


@dataclass(frozen=True, kw_only=True, slots=True)
class _Family:
    """A calibration with the runs that it was fitted to."""

    calibration: Calibration
    members: Sequence[Runs]
    basis: Basis
    run: set[str]
    """The identities of the configurations that were run."""

    @property
    def catalog(self) -> Catalog:
        return self.basis.catalog

    def asked(self, wish: Wish, left_out: list[str]) -> Sequence[Trial]:
        """Returns the trials of the family that the wish asks for."""
        if wish.among:
            return [trial for trial in wish.among if in_family(self.calibration, trial)]
        # The range starts from the trials of the study. If tries counted, each would extend the range of the next.
        own = [runs.trial for runs in self.members if runs.trial.id not in self.basis.tries]
        if not own:
            return []
        family_grid = grid(self.calibration, own, wish.within, self.catalog)
        left_out += family_grid.left_out
        return family_grid.trials

    def variants(self, trial: Trial, wish: Wish, left_out: list[str]) -> Iterator[Candidate]:
        """Yields the trial, the trial with the best bucket, and with compressed gradients if allowed, unless run."""
        conditions = self._conditions(trial)
        if identity(trial) not in self.run:
            yield self._candidate(trial, predict(self.calibration, conditions))
        if trial.workers > 1 and not wish.among:
            yield from self._bucketed(trial, conditions)
            yield from self._compressed(trial, conditions, wish, left_out)

    def _conditions(self, trial: Trial) -> Conditions:
        network = trial.cluster.network
        return conditions_for(
            self.calibration,
            workers=trial.workers,
            workers_per_host=trial.cluster.workers_per_host,
            batch=float(trial.workload.batch_per_worker),
            bandwidth=network.bandwidth_bytes_per_s if network else None,
            latency_s=network.latency_s if network else None,
        )

    def _bucketed(self, trial: Trial, conditions: Conditions) -> Iterator[Candidate]:
        knob = self.catalog.capabilities[trial.framework.name].bucket_knob
        best = best_bucket(self.calibration, conditions) if knob else None
        if knob is None or best is None:
            return
        size, step_s = best
        before = step_terms(self.calibration.vector, conditions, self.calibration.straggling).step_s
        bucketed = with_knobs(trial, {knob: size}, self.catalog)
        worth = step_s < (1 - LEAST_BUCKET_GAIN) * before
        if worth and identity(bucketed) not in self.run and refused(bucketed, self.catalog) is None:
            yield self._candidate(bucketed, predict(self.calibration, with_buckets(self.calibration, conditions, size)))

    def _compressed(self, trial: Trial, conditions: Conditions, wish: Wish, left_out: list[str]) -> Iterator[Candidate]:
        if trial.framework.strategy_class != EXACT:
            return
        for name, knobs in self.catalog.capabilities[trial.framework.name].compressions.items():
            compressed = with_knobs(trial, dict(knobs), self.catalog)
            if identity(compressed) in self.run or refused(compressed, self.catalog) is not None:
                continue
            label = f"{self.calibration.family.label}, {name} gradients"
            if APPROXIMATE not in wish.allow:
                left_out.append(
                    f"{label}: approximate, so not ranked with exact strategies; include it: --allow {APPROXIMATE}"
                )
                continue
            left_out.append(f"{label}: predictions do not include the time to compress and decompress")
            change = parse_changes(f"compression={name}")
            yield self._candidate(compressed, predict(*changed(self.calibration, conditions, change)))

    def _candidate(self, trial: Trial, prediction: Prediction) -> Candidate:
        trials = {runs.trial.id: runs for runs in self.members}
        near = nearest([runs.trial for runs in self.members], trial.workers, trial.workload.batch_per_worker)
        return Candidate(
            trial=trial,
            throughput=prediction.throughput,
            by=self.calibration.by,
            runs=trials[near.id],
            memory_bytes=prediction.memory_bytes,
            extrapolated=prediction.extrapolated,
        )
