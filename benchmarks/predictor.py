"""How fast the predictor is: steps a second, 4096 hosts of unequal speed, an event simulation of 1024 unequal workers.

Each beside SimPy's and networkx's version of the same step in the same run. ResNet-50 with DDP's buckets, guessed from
a data sheet as `paceline predict --device` does: what is timed is the predictor, not the truth of its numbers.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Generator
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np

from claims import Claim, parser, publish, say
from paceline.model.equations.arrays import Floats
from paceline.model.equations.conditions import Conditions
from paceline.model.equations.exchange import message_costs
from paceline.model.equations.simulate import Job, synchronous_step
from paceline.model.equations.stack import stack_of, stacks_of
from paceline.model.equations.stragglers import ALIKE
from paceline.model.equations.terms import step_terms, terms_of
from paceline.model.fitting.calibration import Calibration
from paceline.model.forecast.catalogue import device
from paceline.model.forecast.guess import guess
from paceline.model.forecast.predict import conditions_for
from paceline.workloads import load_workload

CONFIGURATIONS, VECTORS = 500, 200
"""Vectors: as many as the draws of a calibration, from which `predict` makes its intervals."""
REPEATS = 5
HOSTS = 4096
SLOWNESS = (1.0, 1.1, 1.25, 1.5)
"""Of one host after the other, as `predict --what-if unequal-hosts=1/1.1/1.25/1.5` repeats it."""
SIMULATED_WORKERS = 1024


def resnet50() -> Calibration:
    """As a V100's data sheet has it."""
    return guess(load_workload("resnet50", {}), device("V100-SXM2"))


def asked(calibration: Calibration, workers: int = 64) -> Conditions:
    return conditions_for(calibration, workers=workers, batch=32.0, bandwidth=1.25e9)


def job_of(calibration: Calibration, conditions: Conditions) -> Job:
    """The same step as tasks."""
    terms = step_terms(calibration.vector, conditions)
    latencies, carried = message_costs(calibration.vector[None, :], stack_of([conditions]))
    return Job(
        before_s=terms.overhead_s + terms.forward_s,
        backward_s=terms.backward_s,
        ready_s=np.array(conditions.fractions) * terms.backward_s,
        latencies_s=latencies[0, 0],
        carried_s=carried[0, 0],
    )


def typical_s(do: Callable[[], object], repeats: int = REPEATS) -> float:
    """The median over repeats, after one repeat that is not counted."""
    do()
    taken = []
    for _ in range(repeats):
        began = time.perf_counter()
        do()
        taken.append(time.perf_counter() - began)
    return statistics.median(taken)


def simpy_step(job: Job, update_s: float) -> float:
    """The same step as SimPy would have it: a process that computes, one that sends."""
    import simpy

    env = simpy.Environment()
    stream = simpy.Resource(env, capacity=1)

    def send(cost_s: float) -> Generator[simpy.Event, None, None]:
        with stream.request() as turn:
            yield turn
            yield env.timeout(cost_s)

    def compute() -> Generator[simpy.Event, None, None]:
        yield env.timeout(job.before_s)
        at, sent = 0.0, []
        for ready, cost_s in zip(job.ready_s, job.latencies_s + job.carried_s, strict=True):
            yield env.timeout(ready - at)
            at = ready
            sent.append(env.process(send(float(cost_s))))
        yield env.timeout(max(0.0, job.backward_s - at))
        yield simpy.AllOf(env, sent)
        yield env.timeout(update_s)

    env.run(env.process(compute()))
    return float(env.now)


def networkx_step(job: Job, update_s: float) -> float:
    """The same step as a graph: its longest path."""
    import networkx as nx

    graph = nx.DiGraph()
    graph.add_edge("begin", "r-1", weight=job.before_s)
    at = 0.0
    for index, (ready, cost_s) in enumerate(zip(job.ready_s, job.latencies_s + job.carried_s, strict=True)):
        graph.add_edge(f"r{index - 1}", f"r{index}", weight=ready - at)
        graph.add_edge(f"r{index}", f"s{index}", weight=0.0)
        if index:
            graph.add_edge(f"e{index - 1}", f"s{index}", weight=0.0)
        graph.add_edge(f"s{index}", f"e{index}", weight=float(cost_s))
        at = ready
    last = len(job.ready_s) - 1
    graph.add_edge(f"r{last}", "done", weight=max(0.0, job.backward_s - at))
    graph.add_edge(f"e{last}", "done", weight=0.0)
    graph.add_edge("done", "end", weight=update_s)
    return float(nx.dag_longest_path_length(graph))


def configurations(calibration: Calibration, count: int) -> list[Conditions]:
    """Workers, bandwidth, latency and batch, each drawn anew."""
    generator = np.random.default_rng(0)
    return [
        conditions_for(
            calibration,
            workers=int(generator.integers(2, 4097)),
            batch=float(generator.integers(1, 257)),
            bandwidth=float(generator.uniform(1e8, 1e11)),
            latency_s=float(generator.uniform(1e-6, 1e-4)),
        )
        for _ in range(count)
    ]


def steps(calibration: Calibration, conditions: list[Conditions], vectors: Floats) -> list[Floats]:
    """The step time of every configuration with every vector."""
    return [terms_of(vectors, stack, calibration.straggling).step_s for _, stack in stacks_of(conditions)]


def peak_bytes() -> int:
    """Peak memory of this program. `ru_maxrss` is not used, because it starts at the memory of the parent process."""
    status = Path("/proc/self/status").read_text(encoding="ascii")
    return next(int(line.split()[1]) * 1024 for line in status.splitlines() if line.startswith("VmHWM"))


def unequal_alone() -> int:
    """In a process of its own: seconds and peak memory of a step on HOSTS hosts of unequal speed."""
    calibration = resnet50()
    conditions = asked(calibration, HOSTS).change(slowness=SLOWNESS, repeating=True)
    taken = typical_s(lambda: step_terms(calibration.vector, conditions, ALIKE), 20)
    print(json.dumps({"seconds": taken, "peak_bytes": peak_bytes()}))
    return 0


def main() -> int:
    made = parser(__doc__ or "")
    made.add_argument("--unequal-alone", action="store_true", help="what the program asks a process of its own")
    args = made.parse_args()
    if args.unequal_alone:
        return unequal_alone()
    calibration = resnet50()
    conditions = configurations(calibration, CONFIGURATIONS)
    spread = np.random.default_rng(1).lognormal(0, 0.05, (VECTORS, len(calibration.vector)))
    say("steps a second, one core")
    rate = CONFIGURATIONS * VECTORS / typical_s(lambda: steps(calibration, conditions, calibration.vector * spread))
    say("the same step by SimPy and networkx")
    others = {"SimPy": simpy_step, "networkx": networkx_step}
    terms, job = step_terms(calibration.vector, asked(calibration)), job_of(calibration, asked(calibration))
    agree = all(abs(step(job, terms.update_s) / terms.step_s - 1) < 1e-9 for step in others.values())
    theirs = {name: typical_s(partial(step, job, terms.update_s)) for name, step in others.items()}
    say(f"{HOSTS} hosts of unequal speed")
    alone = json.loads(
        subprocess.run([sys.executable, __file__, "--unequal-alone"], capture_output=True, text=True, check=True).stdout
    )
    say(f"event simulation of {SIMULATED_WORKERS} workers, all different")
    slowness = np.random.default_rng(0).lognormal(0, 0.05, SIMULATED_WORKERS)
    crowd = replace(job, slowness=tuple(slowness.tolist()))
    simulated = typical_s(lambda: synchronous_step(crowd), 3)
    claims = [
        _claim("steps a second (configurations × vectors)", rate, "≥ 10⁶", holds=rate >= 1e6, n=REPEATS),
        _claim(f"{HOSTS} unequal hosts, ms", alone["seconds"] * 1e3, "≤ 5", holds=alone["seconds"] <= 5e-3, n=20),
        _claim(
            f"{HOSTS} unequal hosts, MB at most",
            alone["peak_bytes"] / 1e6,
            "< 100",
            holds=alone["peak_bytes"] < 100e6,
            n=1,
        ),
        _claim(f"event simulation of {SIMULATED_WORKERS} workers, s", simulated, "≤ 1", holds=simulated <= 1.0, n=3),
        _claim("SimPy and networkx give our step to 1e-9", float(agree), "1", holds=agree, n=1),
        *(
            _claim(f"{name}'s time for one step ÷ ours", taken * rate, "shown", holds=True, n=REPEATS)
            for name, taken in theirs.items()
        ),
    ]
    return publish(claims, as_json=args.json, steps_per_s=rate, peak_bytes=alone["peak_bytes"])


def _claim(name: str, value: float, claim: str, *, holds: bool, n: int) -> Claim:
    return Claim(name=name, ratio={"value": value, "low": None, "high": None}, claim=claim, holds=holds, n=n)


if __name__ == "__main__":
    sys.exit(main())
