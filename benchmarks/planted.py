"""Cases with planted causes: laws of the null framework for which it is known what holds them back, and by how much.

A case is made from its number alone. Its truth follows from the law's equations (docs/reference/null.md), not from
Paceline's analysis of its runs.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from paceline.model.equations.terms import BANDWIDTH, COMPUTE, CONTENTION, INPUT, LATENCY, OVERHEAD, STRAGGLER

CASES = 200
SEED = 20261117
LINK, BUCKETS, RANK, FEED, THREADS, FRAMEWORK = (
    "slow link",
    "small buckets",
    "slow rank",
    "slow input",
    "threads",
    "own",
)
PLANTED = {
    LINK: BANDWIDTH,
    BUCKETS: LATENCY,
    RANK: STRAGGLER,
    FEED: INPUT,
    THREADS: CONTENTION,
    FRAMEWORK: OVERHEAD,
}
"""Planted effect → the cause that has to be named."""
APART = 0.10
"""Difference of two shares from which on the larger cause has to come first."""
LEAST = 0.12
"""Smallest share of the step of a planted cause."""
BATCH = 8


@dataclass(frozen=True, kw_only=True, slots=True)
class Case:
    """One law with its planted causes."""

    number: int
    workers: int
    law: Mapping[str, Any]
    planted: tuple[str, ...]
    """Causes, the larger first."""
    truth: Mapping[str, float]
    """Cause → its share of the step."""


def cases(count: int = CASES) -> list[Case]:
    """The first cases, with one and two causes alternating."""
    return [_case(number) for number in range(count)]


def _case(number: int) -> Case:
    generator = np.random.default_rng([SEED, number])
    while True:
        kinds = list(generator.choice(list(PLANTED), size=1 + number % 2, replace=False))
        shares = generator.uniform(LEAST, 0.5, size=len(kinds))
        workers = int(generator.choice([2, 4, 8]))
        law = _with(_base(generator), kinds, shares, workers)
        truth = shares_of(law, workers)
        planted = sorted((PLANTED[kind] for kind in kinds), key=lambda cause: -truth[cause])
        planted_shares = [truth[cause] for cause in planted]
        others = max(share for cause, share in truth.items() if cause not in (*planted, COMPUTE))
        told_apart = len(planted_shares) == 1 or planted_shares[0] - planted_shares[1] >= APART
        # Draw again if the case by chance has another large cause as well, or no cause worth naming.
        if min(planted_shares) >= LEAST and told_apart and others <= min(planted_shares) - APART / 2:
            return Case(number=number, workers=workers, law=law, planted=tuple(planted), truth=truth)


def _base(generator: np.random.Generator) -> dict[str, Any]:
    """A compute-bound training."""
    compute = float(np.exp(generator.uniform(np.log(10e-3), np.log(80e-3))))
    return {
        "compute_s": compute * 0.3,
        "compute_per_sample_s": compute * 0.7 / BATCH,
        "update_s": compute * float(generator.uniform(0.01, 0.05)),
        "overhead_s": compute * float(generator.uniform(0.005, 0.02)),
        "input_s": compute * float(generator.uniform(0.005, 0.02)),
        "message_bytes": float(np.exp(generator.uniform(np.log(1e6), np.log(5e7)))),
        "alpha_s": float(np.exp(generator.uniform(np.log(2e-5), np.log(1e-4)))),
        "beta_s_per_byte": 1e-12,
        "overlap": float(generator.uniform(0.0, 0.6)),
        "jitter": float(generator.uniform(0.0, 0.02)),
        "jitter_correlation": float(generator.uniform(0.0, 0.5)),
        "run_jitter": float(generator.uniform(0.0, 0.01)),
    }


def _with(law: dict[str, Any], kinds: list[str], shares: np.ndarray[Any, Any], workers: int) -> dict[str, Any]:
    """The law with these causes, which take about these shares of its step."""
    compute = law["compute_s"] + law["compute_per_sample_s"] * BATCH
    rest = compute + law["update_s"] + law["overhead_s"] + law["input_s"]
    step = rest / (1 - min(0.8, float(shares.sum())))
    hidden = law["overlap"] * compute * 2 / 3
    crossing = 2 * (workers - 1)
    carrying = {LINK, BUCKETS} & set(kinds)
    for kind, share in zip(kinds, shares, strict=True):
        added = float(share) * step
        if kind == LINK:
            carried = added + hidden / len(carrying)
            law["beta_s_per_byte"] = carried * workers / crossing / law["message_bytes"]
        elif kind == BUCKETS:
            count = max(2, round((added + hidden / len(carrying)) / (crossing * law["alpha_s"])))
            law["bucket_bytes"] = float(np.ceil(law["message_bytes"] / count))
        elif kind == RANK:
            law |= {"slow_rank": workers - 1, "slow_factor": 1 + added / compute}
        elif kind == FEED:
            law["slow_input_factor"] = 1 + added / law["input_s"]
        elif kind == THREADS:
            law["crowding"] = added / compute
        else:
            law["overhead_s"] += added
    return law


def shares_of(law: Mapping[str, Any], workers: int) -> dict[str, float]:
    """Where the step time goes by the law, on the path of an ordinary worker and without jitter."""
    crowding = law.get("crowding", 0.0)
    alone = law["compute_s"] + law["compute_per_sample_s"] * BATCH
    compute = alone * (1 + crowding)
    slowest = compute * law.get("slow_factor", 1.0)
    buckets = np.ceil(law["message_bytes"] / law.get("bucket_bytes", law["message_bytes"]))
    latency = buckets * 2 * (workers - 1) * law["alpha_s"]
    carried = 2 * (workers - 1) / workers * law["message_bytes"] * law["beta_s_per_byte"]
    exposed = max(0.0, latency + carried - law["overlap"] * slowest * 2 / 3)
    seconds = {
        INPUT: law["input_s"] * law.get("slow_input_factor", 1.0),
        COMPUTE: alone + law["update_s"],
        LATENCY: exposed * latency / (latency + carried),
        BANDWIDTH: exposed * carried / (latency + carried),
        CONTENTION: compute - alone,
        OVERHEAD: law["overhead_s"],
        STRAGGLER: slowest - compute,
    }
    return {cause: float(value / sum(seconds.values())) for cause, value in seconds.items()}


def study_of(case: Case, name: str = "planted") -> dict[str, Any]:
    """The study that measures a case, as the content of a TOML file."""
    return {
        "study": {"name": name, "question": "What holds it back?"},
        "workload": {"model": "lenet5", "batch_per_worker": BATCH},
        "framework": {"name": "null", "null": {"time": "law", **case.law}},
        "cluster": {"workers_per_host": [1, case.workers], "oversubscribe": True},
        "measure": {"warmup_steps": 1, "steps": 40, "repeats": 2},
    }
