"""How fast the predictor is: configurations a second, 4096 unequal workers, an event simulation of 1024 workers.

Each beside SimPy's and networkx's version of the same step in the same run. ResNet-50 with DDP's buckets on a device as
its data sheet has it: what is timed is the predictor, not the truth of its numbers.
"""

from __future__ import annotations

import resource
import statistics
import sys
import time
from collections.abc import Callable, Generator

import numpy as np

from claims import Claim, parser, publish, say
from paceline.model.catalogue import device
from paceline.model.recurrence import Sweep, sweep, unequal
from paceline.model.simulate import synchronous_step
from paceline.model.step import Buckets, Messages, Profile, bucketed
from paceline.workloads import load_workload
from paceline.workloads.cost import cost

CONFIGURATIONS = 1_000_000
REPEATS = 5
WORKERS = 4096
SIMULATED_WORKERS = 1024


def resnet50(batch: float = 32.0) -> tuple[Profile, Messages]:
    """Layer by layer, as a V100's data sheet has it."""
    layers = cost(load_workload("resnet50", {})).layers
    rate = device("V100-SXM2").fp32_flops * 0.35
    profile = Profile(
        forward_s=np.array([layer.forward_flops for layer in layers]) * batch / rate,
        backward_s=np.array([layer.backward_flops for layer in layers]) * batch / rate,
        gradient_bytes=np.array([layer.gradient_bytes for layer in layers], dtype=float),
        update_s=1e-3, overhead_s=1e-3,
    )  # fmt: skip
    return profile, bucketed(profile, Buckets())


def best_s(do: Callable[[], object], repeats: int = REPEATS) -> float:
    """The median over repeats, after one that is not counted."""
    do()
    taken = []
    for _ in range(repeats):
        began = time.perf_counter()
        do()
        taken.append(time.perf_counter() - began)
    return statistics.median(taken)


def simpy_step(profile: Profile, costs_s: np.ndarray, messages: Messages) -> float:
    """The same step as SimPy would have it: a process that computes, one that sends."""
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
    """The same step as a graph: its longest path."""
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


def main() -> int:
    args = parser(__doc__ or "").parse_args()
    profile, messages = resnet50()
    generator = np.random.default_rng(0)
    asked = Sweep(
        latency_s=generator.uniform(1e-5, 1e-3, CONFIGURATIONS),
        per_byte_s=generator.uniform(1e-11, 1e-8, CONFIGURATIONS), compute=generator.uniform(0.5, 2.0, CONFIGURATIONS),
    )  # fmt: skip
    costs = 1e-4 + 1e-9 * messages.sizes
    say("configurations a second, one core")
    rate = CONFIGURATIONS / best_s(lambda: sweep(profile, messages, asked))
    ours = 1 / rate
    theirs = {"SimPy": best_s(lambda: simpy_step(profile, costs, messages)),
              "networkx": best_s(lambda: networkx_step(profile, costs, messages))}  # fmt: skip
    slowness = generator.lognormal(0, 0.05, WORKERS)
    say(f"{WORKERS} workers, all different")
    many = best_s(lambda: unequal(profile, messages, costs, slowness), 20)
    say(f"event simulation of {SIMULATED_WORKERS} workers")
    simulated = best_s(lambda: synchronous_step(profile, messages, costs, slowness[:SIMULATED_WORKERS].tolist()), 3)
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    claims = [
        Claim(name="configurations a second", ratio={"value": rate, "low": None, "high": None}, claim="≥ 10⁶",
              holds=rate >= 1e6, n=REPEATS),
        Claim(name=f"{WORKERS} unequal workers, ms", ratio={"value": many * 1e3, "low": None, "high": None},
              claim="≤ 5", holds=many <= 5e-3, n=20),
        Claim(name=f"event simulation of {SIMULATED_WORKERS} workers, s",
              ratio={"value": simulated, "low": None, "high": None}, claim="≤ 1", holds=simulated <= 1.0, n=3),
        *(Claim(name=f"{name}'s time for one step ÷ ours", ratio={"value": taken / ours, "low": None, "high": None},
                claim="shown", holds=True, n=REPEATS) for name, taken in theirs.items()),
    ]  # fmt: skip
    return publish(claims, as_json=args.json, configurations_per_s=rate, peak_bytes=memory)


if __name__ == "__main__":
    sys.exit(main())
