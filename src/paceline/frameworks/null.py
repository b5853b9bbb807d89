"""The host half of `null`, a framework that trains nothing and whose step time follows a known law.

It is the ground truth for all stages after the record: a fitted model must recover the parameters of the law. The law,
with its equations and every knob, is documented in docs/reference/null.md. The worker computes it step by step;
`law_step_s` is an independent closed form, with which tests and benchmarks compare records.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from paceline.frameworks.base import Framework, one_worker_a_slot
from paceline.plan.capabilities import Capabilities, Knob, Strategy
from paceline.plan.knob_values import KnobValues
from paceline.plan.process import Process, Topology
from paceline.plan.trial import Trial
from paceline.units import BYTES, SECONDS

PHASES = ("data", "forward", "backward", "communication", "update", "overhead")
FAULTS = ("none", "crash", "exit", "hang", "hang-hard", "memory")

NO_RANK = -1
GIGABIT_S_PER_BYTE = 8e-9
DEFAULT_FAULT_BYTES = 4.0 * 2**30
LARGEST_CORRELATION = 0.999
"""At 1 the jitter would never change; above 1 it would grow without bound."""


def _seconds(default: float, doc: str) -> Knob:
    return Knob(default=default, units=SECONDS, minimum=0, doc=doc)


def _factor(doc: str) -> Knob:
    return Knob(default=1.0, minimum=0, doc=doc)


KNOBS: dict[str, Knob] = {
    "time": Knob(
        default="real",
        choices=("real", "law"),
        doc="real: ranks wait and send bytes over sockets; law: same ranks, but times are drawn and marked simulated.",
    ),
    "input_s": _seconds(0.002, "Time to get the input of a step."),
    "input_per_sample_s": _seconds(0.0, "The same, for each sample of the worker's batch."),
    "slow_input_factor": _factor("Slow input: multiplies the time to get the input."),
    "input_overlap": Knob(default=False, doc="Fetch the next input while the step computes."),
    "compute_s": _seconds(0.045, "Forward and backward of a step."),
    "compute_per_sample_s": _seconds(0.0, "The same, for each sample of the worker's batch."),
    "crowding": Knob(
        default=0.0,
        minimum=0,
        doc="Emulates more threads than cores: computation takes longer by this share, reported as waiting for a core.",
    ),
    "burn": Knob(default=False, doc="Real time: keep the core busy while computing instead of sleeping."),
    "message_bytes": Knob(
        default=None,
        type=float,
        units=BYTES,
        minimum=0,
        doc="Bytes exchanged per step; by default the model's gradient (4 bytes per trainable parameter).",
    ),
    "bucket_bytes": Knob(
        default=None,
        type=float,
        units=BYTES,
        minimum=1,
        doc="The message is exchanged in pieces of this size; by default in one.",
    ),
    "alpha_s": _seconds(50e-6, "Latency of one message between neighbours."),
    "beta_s_per_byte": Knob(default=GIGABIT_S_PER_BYTE, minimum=0, doc="Seconds per byte on a link; 8e-9 is 1 Gbit/s."),
    "overlap": Knob(
        default=0.0,
        minimum=0,
        maximum=1,
        doc="Share of the backward pass, at its end, during which the exchange may run.",
    ),
    "update_s": _seconds(0.002, "Optimizer update."),
    "overhead_s": _seconds(0.001, "The framework's own work per step."),
    "slow_rank": Knob(
        default=NO_RANK,
        minimum=NO_RANK,
        doc="Rank that computes slower; none for -1 or a rank that does not exist.",
    ),
    "slow_factor": _factor("Multiplies the slow rank's compute time."),
    "jitter": Knob(default=0.0, minimum=0, doc="Standard deviation of the log of compute time, from step to step."),
    "jitter_correlation": Knob(
        default=0.0,
        minimum=0,
        maximum=LARGEST_CORRELATION,
        doc="Correlation of that jitter from one step to the next.",
    ),
    "run_jitter": Knob(
        default=0.0,
        minimum=0,
        doc="Standard deviation of the log of compute time from run to run, the same on all ranks.",
    ),
    "fault": Knob(default="none", choices=FAULTS, doc="What goes wrong on fault_rank at fault_step."),
    "fault_rank": Knob(default=0, minimum=0, doc="Rank on which it goes wrong."),
    "fault_step": Knob(default=1, minimum=0, doc="Step at whose start it goes wrong; warm-up steps count."),
    "fault_bytes": Knob(
        default=DEFAULT_FAULT_BYTES,
        units=BYTES,
        minimum=0,
        doc="fault = memory: bytes that are allocated and then held.",
    ),
}
"""Every knob of the law and of its faults. The defaults add up to 50 ms per step on one worker."""


class Null(Framework):
    """The framework with a known timing law."""

    name = "null"
    title = "null (known law)"
    module = "paceline_worker.frameworks.null.training"
    environment = None
    needs_weights = False
    capabilities = Capabilities(
        strategies={
            "allreduce": Strategy(doc="Synchronous data parallelism with a ring all-reduce."),
            "single": Strategy(max_workers=1, doc="One worker, no exchange."),
        },
        workloads=frozenset({"graph", "collective"}),
        collectives=dict.fromkeys(("all_reduce", "all_gather", "reduce_scatter", "broadcast", "send_recv"), "ring"),
        trains=False,
        data_parallel="allreduce",
        knobs=KNOBS,
        phases=PHASES,
        phases_by="law",
        startup_s=0.5,
        # The exchange needs the graph's size, which a trial does not carry; for an estimate the rest is enough.
        guess_step_s=lambda trial: law_step_s(
            trial.framework.knobs, trial.workers, trial.workload.batch_per_worker, 0.0
        )["step_s"],
        simulated=lambda knobs: bool(knobs["time"] == "law"),
        prefetches=lambda trial: bool(trial.framework.knobs["input_overlap"]),
    )

    def processes(self, trial: Trial, topology: Topology) -> list[Process]:
        return one_worker_a_slot(trial, topology, {})


NULL = Null()


def law_step_s(knobs: KnobValues, workers: int, batch: int, gradient_bytes: float) -> dict[str, float]:
    """The terms of a step without jitter, in closed form; all are seconds except the efficiency.

    Args:
        knobs: every knob of the trial.
        workers: world size.
        batch: samples per worker and step.
        gradient_bytes: 4 bytes per trainable parameter; used if `message_bytes` is not set.

    Returns:
        `step_s` (any step except the first), `first_step_s` (which waits for its input even with prefetch),
        `data_s`, `compute_s` and `communication_s` of a rank of ordinary speed, `slowest_compute_s`,
        `exchange_s` (the whole exchange), `exposed_s` (its part that does not overlap), `update_s`, `overhead_s`, and
        `efficiency`: throughput divided by `workers` times the throughput of one worker with the same batch.
    """
    law = {name: value for name, value in knobs.items() if isinstance(value, (int, float))}
    terms = _terms(law, workers, batch, gradient_bytes)
    alone = _terms(law, 1, batch, gradient_bytes)
    return {**terms, "efficiency": alone["step_s"] / terms["step_s"]}


def _terms(law: Mapping[str, float], workers: int, batch: int, gradient_bytes: float) -> dict[str, float]:
    input_s = (law["input_s"] + batch * law["input_per_sample_s"]) * law["slow_input_factor"]
    compute_s = (law["compute_s"] + batch * law["compute_per_sample_s"]) * (1 + law["crowding"])
    speeds = [law["slow_factor"] if rank == law["slow_rank"] else 1.0 for rank in range(workers)]
    slowest_s = compute_s * max(speeds)
    ordinary_s = compute_s if 1.0 in speeds else slowest_s
    exchange_s = _exchange_s(law, workers, gradient_bytes)
    exposed_s = max(0.0, exchange_s - law["overlap"] * slowest_s * 2 / 3)
    rest_s = slowest_s + exposed_s + law["update_s"] + law["overhead_s"]
    data_s = max(0.0, input_s - rest_s) if law["input_overlap"] else input_s
    return {
        "step_s": data_s + rest_s,
        "first_step_s": input_s + rest_s,
        "data_s": data_s,
        "compute_s": ordinary_s,
        "slowest_compute_s": slowest_s,
        "communication_s": slowest_s - ordinary_s + exposed_s,
        "exchange_s": exchange_s,
        "exposed_s": exposed_s,
        "update_s": law["update_s"],
        "overhead_s": law["overhead_s"],
    }


def _exchange_s(law: Mapping[str, float], workers: int, gradient_bytes: float) -> float:
    # A knob that is not set is no number and thus not part of the law.
    message = law.get("message_bytes", gradient_bytes)
    if workers == 1 or message == 0:
        return 0.0
    buckets = math.ceil(message / law["bucket_bytes"]) if "bucket_bytes" in law else 1
    rounds = 2 * (workers - 1)
    return rounds * (buckets * law["alpha_s"] + message / workers * law["beta_s_per_byte"])
