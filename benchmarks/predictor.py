"""How fast the predictor is: configurations per second, 4096 unequal workers, an event simulation of 1024 workers.

SimPy's and networkx's versions of the same step are timed in the same run. The step is ResNet-50 with DDP's buckets on
a device described by its data sheet: the speed of the predictor is measured, not the accuracy of its numbers.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Generator
from functools import partial
from pathlib import Path

import numpy as np

from claims import Claim, parser, publish, say
from paceline.model.equations.collectives import Wire, ring
from paceline.model.equations.recurrence import Sweep, sweep, unequal
from paceline.model.equations.simulate import synchronous_step
from paceline.model.equations.step import Buckets, Messages, Profile, bucketed
from paceline.model.forecast.catalogue import device
from paceline.workloads import load_workload
from paceline.workloads.cost import cost

CONFIGURATIONS = 1_000_000
REPEATS = 5
WORKERS = 4096
SIMULATED_WORKERS = 1024


def resnet50(batch: float = 32.0) -> tuple[Profile, Messages]:
    """Times layer by layer, from the data sheet of a V100."""
    layers = cost(load_workload("resnet50", {})).layers
    rate = device("V100-SXM2").fp32_flops * 0.35
    profile = Profile(
        forward_s=np.array([layer.forward_flops for layer in layers]) * batch / rate,
        backward_s=np.array([layer.backward_flops for layer in layers]) * batch / rate,
        gradient_bytes=np.array([layer.gradient_bytes for layer in layers], dtype=float),
        update_s=1e-3,
        overhead_s=1e-3,
    )
    return profile, bucketed(profile, Buckets())


def typical_s(do: Callable[[], object], repeats: int = REPEATS) -> float:
    """The median over repeats, after one repeat that is not counted."""
    do()
    taken = []
    for _ in range(repeats):
        began = time.perf_counter()
        do()
        taken.append(time.perf_counter() - began)
    return statistics.median(taken)


def simpy_step(profile: Profile, costs_s: np.ndarray, messages: Messages) -> float:
    """The same step in SimPy: one process computes, another sends."""
    import simpy

    env = simpy.Environment()
    stream = simpy.Resource(env, capacity=1)

    def send(cost_s: float) -> Generator[simpy.Event, None, None]:
        with stream.request() as turn:
            yield turn
            yield env.timeout(cost_s)

    def compute() -> Generator[simpy.Event, None, None]:
        yield env.timeout(profile.overhead_s + profile.forward_total_s)
        at, sent = 0.0, []
        for ready, cost_s in zip(messages.ready_s, costs_s, strict=True):
            yield env.timeout(ready - at)
            at = ready
            sent.append(env.process(send(float(cost_s))))
        yield env.timeout(max(0.0, profile.backward_total_s - at))
        yield simpy.AllOf(env, sent)
        yield env.timeout(profile.update_s)

    env.run(env.process(compute()))
    return float(env.now)


def networkx_step(profile: Profile, costs_s: np.ndarray, messages: Messages) -> float:
    """The same step as the longest path of a graph."""
    import networkx as nx

    graph = nx.DiGraph()
    graph.add_edge("begin", "r-1", weight=profile.overhead_s + profile.forward_total_s)
    at = 0.0
    for index, (ready, cost_s) in enumerate(zip(messages.ready_s, costs_s, strict=True)):
        graph.add_edge(f"r{index - 1}", f"r{index}", weight=ready - at)
        graph.add_edge(f"r{index}", f"s{index}", weight=0.0)
        if index:
            graph.add_edge(f"e{index - 1}", f"s{index}", weight=0.0)
        graph.add_edge(f"s{index}", f"e{index}", weight=float(cost_s))
        at = ready
    last = len(costs_s) - 1
    graph.add_edge(f"r{last}", "done", weight=max(0.0, profile.backward_total_s - at))
    graph.add_edge(f"e{last}", "done", weight=0.0)
    graph.add_edge("done", "end", weight=profile.update_s)
    return float(nx.dag_longest_path_length(graph))


def closed_form(profile: Profile, messages: Messages, costs_s: np.ndarray) -> float:
    """Our step time for one configuration, with which the others are compared."""
    return unequal(profile, messages, costs_s, np.ones(1))


def configurations(count: int) -> dict[str, np.ndarray]:
    """Random workers, bandwidths, latencies and batches."""
    generator = np.random.default_rng(0)
    return {
        "workers": generator.integers(2, 4097, count).astype(float),
        "batch": generator.integers(1, 257, count) / 32.0,
        "latency_s": generator.uniform(1e-6, 1e-4, count),
        "bandwidth": generator.uniform(1e8, 1e11, count),
    }


def swept(profile: Profile, messages: Messages, asked: dict[str, np.ndarray]) -> np.ndarray:
    """Step times of all configurations, from a user's inputs: a ring all-reduce of every bucket."""
    wire = Wire(alpha_s=asked["latency_s"], beta_s=1 / asked["bandwidth"])
    latency, whole = ring(0.0, asked["workers"], wire), ring(1.0, asked["workers"], wire)
    made = Sweep(
        latency_s=np.asarray(latency), per_byte_s=np.asarray(whole) - np.asarray(latency), compute=asked["batch"]
    )
    return sweep(profile, messages, made)


def peak_bytes() -> int:
    """Peak memory of this program. `ru_maxrss` is not used, because it starts at the memory of the parent process."""
    status = Path("/proc/self/status").read_text(encoding="ascii")
    return next(int(line.split()[1]) * 1024 for line in status.splitlines() if line.startswith("VmHWM"))


def unequal_alone() -> int:
    """Seconds and peak memory of a step of WORKERS workers, all different, in a separate process."""
    profile, messages = resnet50()
    slowness = np.random.default_rng(0).lognormal(0, 0.05, WORKERS)
    costs = 1e-4 + 1e-9 * messages.sizes
    taken = typical_s(lambda: unequal(profile, messages, costs, slowness), 20)
    print(json.dumps({"seconds": taken, "peak_bytes": peak_bytes()}))
    return 0


def main() -> int:
    made = parser(__doc__ or "")
    made.add_argument("--unequal-alone", action="store_true", help="what the program asks a process of its own")
    args = made.parse_args()
    if args.unequal_alone:
        return unequal_alone()
    profile, messages = resnet50()
    asked = configurations(CONFIGURATIONS)
    costs = 1e-4 + 1e-9 * messages.sizes
    say("configurations a second, one core")
    rate = CONFIGURATIONS / typical_s(lambda: swept(profile, messages, asked))
    say("the same step by SimPy and networkx")
    others = {"SimPy": simpy_step, "networkx": networkx_step}
    truth = closed_form(profile, messages, costs)
    agree = all(abs(step(profile, costs, messages) / truth - 1) < 1e-9 for step in others.values())
    theirs = {name: typical_s(partial(step, profile, costs, messages)) for name, step in others.items()}
    say(f"{WORKERS} workers, all different")
    alone = json.loads(
        subprocess.run([sys.executable, __file__, "--unequal-alone"], capture_output=True, text=True, check=True).stdout
    )
    say(f"event simulation of {SIMULATED_WORKERS} workers")
    slowness = np.random.default_rng(0).lognormal(0, 0.05, SIMULATED_WORKERS)
    simulated = typical_s(lambda: synchronous_step(profile, messages, costs, slowness.tolist()), 3)
    claims = [
        _claim("configurations a second", rate, "≥ 10⁶", holds=rate >= 1e6, n=REPEATS),
        _claim(f"{WORKERS} unequal workers, ms", alone["seconds"] * 1e3, "≤ 5", holds=alone["seconds"] <= 5e-3, n=20),
        _claim(
            f"{WORKERS} unequal workers, MB at most",
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
    return publish(claims, as_json=args.json, configurations_per_s=rate, peak_bytes=alone["peak_bytes"])


def _claim(name: str, value: float, claim: str, *, holds: bool, n: int) -> Claim:
    return Claim(name=name, ratio={"value": value, "low": None, "high": None}, claim=claim, holds=holds, n=n)


if __name__ == "__main__":
    sys.exit(main())
