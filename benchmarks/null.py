"""Does Paceline record true times? The null framework in real time is compared with its law; its faults are checked.

In law time the tests check this exactly. Here ranks wait and exchange bytes, so the machine has an influence: a step
never takes less than the law, and on a quiet machine little more.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import Any

from claims import Claim, parser, publish, say, with_ends
from paceline.compare import compare
from paceline.frameworks.null import law_step_s
from paceline.record import Record, summarize
from paceline.spec import read_study
from paceline.stats import mean_interval
from paceline.workbench import Workbench

REPEATS = 5
TOLERANCE = 0.05
"""Allowed excess of recorded ÷ law: sleeping ends late, sockets take time, and the machine may be shared."""
LAWS: dict[str, dict[str, Any]] = {
    "default": {},
    "half overlapped": {"overlap": 0.5},
    "small buckets": {"bucket_bytes": "100kB", "alpha_s": "200us"},
    "slow rank": {"slow_rank": 1, "slow_factor": 1.4},
    "slow input": {"input_s": "30ms"},
}
FAULTS: dict[str, tuple[str, dict[str, str]]] = {
    "crash": ("failed", {}),
    "exit": ("failed", {}),
    "hang": ("timed_out", {"time_limit": "40s"}),
    "hang-hard": ("timed_out", {"time_limit": "40s"}),
    "memory": ("out_of_memory", {"memory_limit": "300MiB"}),
}


def run(knobs: dict[str, Any], cluster: dict[str, Any], measure: dict[str, Any]) -> list[Record]:
    study = read_study(
        {
            "study": {"name": "null-real"},
            "workload": {"model": "resnet20", "batch_per_worker": 32},
            "framework": {"name": "null", "null": {"time": "real", **knobs}},
            "cluster": cluster,
            "measure": {"warmup_steps": 3, "steps": 40, "repeats": REPEATS, **measure},
        }
    )
    with tempfile.TemporaryDirectory() as folder:
        bench = Workbench(study, Path(folder))
        bench.run()
        return bench.snapshot().records


def law_of(record: Record) -> dict[str, float]:
    trial, gradient_bytes = record.trial, record.input_facts.gradient_bytes
    assert gradient_bytes is not None
    return law_step_s(trial.framework.knobs, trial.workers, trial.workload.batch_per_worker, gradient_bytes)


def against_the_law(name: str, ratios: list[float], *, tolerance: float = TOLERANCE) -> Claim:
    ratio = mean_interval(ratios, unit="1")
    return Claim(
        name=name,
        ratio=with_ends(ratio),
        n=len(ratios),
        claim=f"recorded ÷ law is at most {1 + tolerance:g}, and at least 1 but for rounding",
        holds=ratio.value <= 1 + tolerance and min(ratios) >= 1 - 1e-3,
    )


def timing_claims() -> list[Claim]:
    claims = []
    for label, knobs in LAWS.items():
        say(f"null in real time: {label}")
        records = run(knobs, {"workers_per_host": [1, 2]}, {})
        for workers in (1, 2):
            measured = [(r, s) for r in records if r.trial.workers == workers and r.ok and (s := summarize(r))]
            claims.append(
                against_the_law(
                    f"step, {label}, {workers} worker(s)", [s.step_s / law_of(r)["step_s"] for r, s in measured]
                )
            )
            if workers == 2 and label == "default":
                exchange = [(r.reported.exchange_s or 0.0) / law_of(r)["exchange_s"] for r, _ in measured]
                claims.append(against_the_law("exchange, default, 2 workers", exchange, tolerance=2 * TOLERANCE))
        (row,) = (row for row in compare(records).rows if row.workers == 2)
        assert row.efficiency is not None
        law = law_of(next(r for r in records if r.trial.workers == 2))["efficiency"]
        efficiency = row.efficiency.times(1 / law)
        claims.append(
            Claim(
                name=f"efficiency, {label}",
                ratio=with_ends(efficiency),
                n=row.n_runs,
                claim=f"recorded ÷ law within {TOLERANCE:.0%}",
                holds=abs(efficiency.value - 1) <= TOLERANCE,
            )
        )
    return claims


def fault_claims() -> list[Claim]:
    claims = []
    for fault, (outcome, limits) in FAULTS.items():
        say(f"null in real time: {fault}")
        knobs = {"fault": [fault, "none"], "fault_rank": 1, "fault_step": 5, "fault_bytes": "600MiB"}
        records = run(knobs, {"workers_per_host": 2}, {"repeats": 2, "steps": 10, **limits})
        right = [
            record.outcome.kind.value == (outcome if record.trial.framework.knobs["fault"] == fault else "ok")
            for record in records
        ]
        claims.append(
            Claim(
                name=f"outcome, {fault}",
                ratio={"value": sum(right) / len(right), "low": None, "high": None},
                n=len(right),
                claim=f"recorded as {outcome}, and the other trial finishes",
                holds=all(right) and len(right) == 4,
            )
        )
    return claims


def main() -> int:
    args = parser(__doc__ or "").parse_args()
    return publish(timing_claims() + fault_claims(), as_json=args.json)


if __name__ == "__main__":
    sys.exit(main())
