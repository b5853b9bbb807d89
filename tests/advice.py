"""Builds what a recommendation rests on: records by a law that is known, and a calibration that knows it.

known()                                  torch ddp, 1 and 2 workers, batches 8 and 16, calibrated
known(cores=2)                           on a site with two cores
known(knobs=({}, {"overlap": False}))    each with several settings
candidate(100.0, workers=4)              a predicted one, without anything behind it
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import product
from typing import Any

import numpy as np

from paceline.compare import Fairness, compare, gather
from paceline.compare.runs import Runs
from paceline.explain.finding import promised
from paceline.model.equations.parameters import as_vector
from paceline.model.equations.ready import Ready
from paceline.model.equations.terms import step_terms
from paceline.model.fitting.calibration import Calibration, Hull
from paceline.model.fitting.fit import family_of
from paceline.model.fitting.observe import Manner, conditions_of
from paceline.plan import Catalog, Trial
from paceline.plan.approximation import FP16_EXCHANGE
from paceline.plan.capabilities import Capabilities, Knob, SiteLimits, Strategy
from paceline.recommend.candidates import Basis, Candidate
from paceline.record import Record
from paceline.spec import read_study
from paceline.stats.known_by import MEASURED, MODELLED
from paceline.workloads import load_workload
from records import MACHINE, make_record, make_trial

TRUTH = as_vector(
    {
        "forward_s": 2e-3,
        "forward_per_sample_s": 1e-3,
        "backward_s": 4e-3,
        "backward_per_sample_s": 2e-3,
        "update_s": 3e-3,
        "overhead_s": 1e-3,
        "input_s": 5e-4,
        "alpha_s": 2e-4,
        "byte_s": 2e-9,
        "wire": 1.06,
        "start": 0.4,
        "contention": 0.3,
    }
)
MESSAGES = (1e6, 9e6)
READY = Ready(fractions=tuple(np.linspace(0.05, 1.0, 20)), bytes=(5e5,) * 20, measured=True)
KNOBS = {
    "bucket_bytes": Knob(default=None, type=float, minimum=1, doc="Bucket size."),
    "hook": Knob(default="none", choices=("none", "fp16"), doc="What gradients are exchanged as."),
    "overlap": Knob(default=True, doc="Overlap."),
}
CAPABILITIES = Capabilities(
    strategies={
        "ddp": Strategy(),
        "single": Strategy(max_workers=1),
        "local": Strategy(strategy_class="approximate"),
        "async": Strategy(strategy_class="asynchronous"),
    },
    data_parallel="ddp",
    knobs=KNOBS,
    approximations=lambda _strategy, knobs: (FP16_EXCHANGE,) if knobs["hook"] == "fp16" else (),
    bucket_knob="bucket_bytes",
    compressions={"fp16": {"hook": "fp16"}},
)
WOBBLE = (1.0, 1.01, 0.99, 1.005)
"""By which the runs of a trial differ."""


def catalog(cores: int = 64, hosts: int = 1, **unavailable: str) -> Catalog:
    return Catalog(
        capabilities={"torch": CAPABILITIES, "jax": CAPABILITIES},
        environments={"torch": ("torch", "sha256:0123"), "jax": ("jax", "sha256:0123")},
        unavailable=unavailable,
        site=SiteLimits(hosts=hosts, cores_per_host=cores, networks=hosts > 1),
        workload=lambda _model, _options: load_workload("mlp", {}),
    )


def trial_of(knobs: Mapping[str, Any] | None = None, **changes: Any) -> Trial:
    settings = {name: knob.default for name, knob in KNOBS.items()} | dict(knobs or {})
    return make_trial(**({"model": "mlp", "knobs": settings} | changes))


def true_step_s(trial: Trial) -> float:
    return step_terms(TRUTH, conditions_of(trial, Manner()).change(messages=MESSAGES)).step_s


def records_of(trials: Iterable[Trial], step_s: Callable[[Trial], float] = true_step_s, runs: int = 4) -> list[Record]:
    return [
        make_record(trial=trial, step_s=step_s(trial) * WOBBLE[repeat % 4], repeat=repeat)
        for trial in trials
        for repeat in range(runs)
    ]


def calibration_of(trials: Sequence[Trial], **fields: Any) -> Calibration:
    """Of one family: the truth, and how far off it might be."""
    draws = TRUTH * np.exp(0.01 * np.random.default_rng(0).normal(size=(50, len(TRUTH))))
    workers = [trial.workers for trial in trials]
    batches = [float(trial.workload.batch_per_worker) for trial in trials]
    made: dict[str, Any] = {
        "family": family_of(trials[0], MACHINE["id"]),
        "by": MODELLED,
        "vector": TRUTH,
        "low": TRUTH,
        "high": TRUTH,
        "draws": draws,
        "residual": 0.02,
        "held_out": 9,
        "noise": 0.01,
        "messages": MESSAGES,
        "hull": Hull(
            workers=(min(workers), max(workers)),
            hosts=(1, max(trial.cluster.hosts for trial in trials)),
            batch=(min(batches), max(batches)),
            bandwidth=None,
        ),
        "memory": (1e8, 1e6),
        "runs": tuple(trial.id for trial in trials),
    }
    return Calibration(**(made | fields))


def study_of(trials: Sequence[Trial]) -> Any:
    """A study of such trials."""
    return read_study(
        {
            "study": {"name": "s"},
            "workload": {"model": "mlp", "batch_per_worker": sorted({t.workload.batch_per_worker for t in trials})},
            "framework": {"name": sorted({t.framework.name for t in trials})},
            "cluster": {"workers_per_host": sorted({t.workers for t in trials})},
        }
    )


def known_from(
    records: Sequence[Record],
    calibrations: Sequence[Calibration] = (),
    *,
    where: Catalog | None = None,
    fairness: Fairness | None = None,
    **fields: Any,
) -> Basis:
    trials = list({record.trial.id: record.trial for record in records}.values())
    proofs = fairness or Fairness()
    return Basis(
        study=study_of(trials),
        comparison=compare(records, trials=trials, fairness=proofs),
        runs=tuple(gather(records, trials)),
        calibrations=tuple(calibrations),
        fairness=proofs,
        catalog=where or catalog(),
        **fields,
    )


def known(
    *,
    cores: int = 64,
    knobs: Sequence[Mapping[str, Any]] = ({},),
    batches: Sequence[int] = (8, 16),
    calibrated: Mapping[str, Any] | None = None,
) -> Basis:
    """One family for each setting of the knobs."""
    families = [
        [trial_of(settings, workers=workers, batch=batch) for workers, batch in product((1, 2), batches)]
        for settings in knobs
    ]
    records = records_of(trial for family in families for trial in family)
    return known_from(
        records, [calibration_of(family, **(calibrated or {})) for family in families], where=catalog(cores)
    )


def candidate(value: float, spread: float = 0.05, *, by: str = MODELLED, **changes: Any) -> Candidate:
    """With an interval of so much in either direction."""
    trial = trial_of(**changes)
    runs = Runs(trial=trial, machine="here", fingerprint=None, measured=(), failed=(), retried=0)
    throughput = promised(value, value / (1 + spread), value * (1 + spread))
    assert by != MEASURED
    return Candidate(trial=trial, throughput=throughput, by=by, runs=runs)
