"""What the model says of the sizes that were run and of some beyond: the curves of a report. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from paceline.compare import Comparison, families
from paceline.model.fitting.calibration import Calibration
from paceline.model.fitting.fit import family_of
from paceline.model.forecast.predict import Prediction, conditions_for, predict
from paceline.plan import Trial

DOUBLINGS_BEYOND = 3
"""A report predicts this many doublings beyond the most workers that were run; later intervals say little."""


def curves(
    comparison: Comparison, trials: Sequence[Trial], calibrations: Sequence[Calibration]
) -> dict[str, list[Prediction]]:
    """Key of each family that has a model → its predictions, fewest workers first."""
    by_id = {trial.id: trial for trial in trials}
    predicted: dict[str, list[Prediction]] = {}
    for scaled in families(comparison):
        sizes = [by_id[row.trial] for row in scaled.rows if row.trial in by_id]
        if not sizes:
            continue
        family = family_of(sizes[0], str(scaled.base.machine))
        calibration = next((calibration for calibration in calibrations if calibration.family == family), None)
        if calibration is not None:
            predicted[scaled.key] = _curve(calibration, sizes)
    return predicted


def _curve(calibration: Calibration, trials: Sequence[Trial]) -> list[Prediction]:
    last = max(trials, key=lambda trial: trial.workers)
    run = {trial.workers for trial in trials}
    counts = sorted(run | {last.workers * 2**power for power in range(1, DOUBLINGS_BEYOND + 1)})
    network, strong = last.cluster.network, last.workload.scaling == "strong"
    return [
        predict(
            calibration,
            conditions_for(
                calibration,
                workers=count,
                workers_per_host=last.cluster.workers_per_host if last.cluster.hosts > 1 else count,
                batch=last.batch_global / count if strong else float(last.workload.batch_per_worker),
                bandwidth=network.bandwidth_bytes_per_s if network else None,
                latency_s=network.latency_s if network else None,
            ),
        )
        for count in counts
        if not strong or last.batch_global % count == 0
    ]
