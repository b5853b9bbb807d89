"""PyTorch, seen from the host: what it can do, and the processes of a run. Does not import PyTorch."""

from __future__ import annotations

from dataclasses import replace

from paceline.frameworks.base import Framework, one_worker_a_slot
from paceline.frameworks.torch_refusals import refuses, refuses_graph
from paceline.plan.approximation import BF16, FP16_EXCHANGE, Approximation
from paceline.plan.capabilities import Capabilities, Knob, Strategy
from paceline.plan.knob_values import KnobValues, text
from paceline.plan.process import Host, Process, Topology
from paceline.plan.trial import Trial
from paceline.units import BYTES

LAYER_KINDS = frozenset(
    {
        "input",
        "conv2d",
        "batch_norm",
        "relu",
        "gelu",
        "tanh",
        "max_pool2d",
        "avg_pool2d",
        "global_avg_pool",
        "flatten",
        "linear",
        "dropout",
        "add",
        "concat",
        "subsample_pad",
        "embedding",
        "position_embedding",
        "layer_norm",
        "attention",
        "lstm",
        "last_step",
        "mean_over_time",
    }
)
"""Keys of paceline_worker.frameworks.torch.builder.KINDS, and the input; a test compares the two."""

KNOBS = {
    "interop_threads": Knob(default=1, minimum=1, doc="Threads for operators that run in parallel; a step has none."),
    "onednn": Knob(default=True, doc="Use oneDNN kernels; off: PyTorch's own, twice as slow on small convolutions."),
    # Time of channels-first over channels-last, one thread, AVX2, busy machine; median of paired steps [95 %]:
    # ResNet-20 (batch 32) 1.21 [1.18, 1.33], ResNet-44 (32) 1.21 [1.13, 1.25], GoogLeNet (4) 1.24 [1.13, 1.34];
    # AlexNet (8) 0.98 [0.90, 1.02], which cannot be told from equal.
    "channels_last": Knob(default=True, doc="Store images and filters channels-last; no effect on other inputs."),
    "precision": Knob(
        default="fp32", choices=("fp32", "bf16"), doc="bf16: autocast of the forward pass; weights stay fp32."
    ),
    "compile": Knob(default=False, doc="Use torch.compile, which runs in the first step. Needs a C++ compiler."),
    "bucket_bytes": Knob(
        default=None,
        type=float,
        units=BYTES,
        minimum=1.0,
        doc="Size of DDP's gradient buckets; unset: DDP's own (25 MiB after a first one of 1 MiB).",
    ),
    "overlap": Knob(
        default=True, doc="Off: one bucket for everything, so that its all-reduce waits for the last gradient."
    ),
    "gradient_as_bucket_view": Knob(default=True, doc="Gradients are views of DDP's buckets: saves a copy and memory."),
    "sync_buffers": Knob(
        default=False,
        doc="Broadcast rank 0's batch-norm statistics before every forward pass, as DDP does by default. "
        "The statistics are not used in training, and the workload leaves them to each rank.",
    ),
    "hook": Knob(
        default="none",
        choices=("none", "fp16", "powersgd"),
        doc="For ddp: how gradients are exchanged. fp16: rounded; powersgd: low-rank, from the third step on.",
    ),
    "powersgd_rank": Knob(default=1, minimum=1, doc="Rank of PowerSGD's matrices; higher is more exact and slower."),
    "accumulate": Knob(
        default=1,
        minimum=1,
        doc="Micro-batches into which a worker's batch is cut; gradients are summed and exchanged after the last. "
        "Refused with batch norm, which would normalise over the micro-batch.",
    ),
    "local_sgd_start": Knob(
        default=1, minimum=0, doc="For post_local_sgd: steps that still average gradients; at most warmup_steps."
    ),
    "local_sgd_period": Knob(default=4, minimum=1, doc="For post_local_sgd: steps between two averages."),
    "reshard_after_forward": Knob(
        default=True,
        doc="For fsdp: free gathered parameters after the forward pass and gather them again for the backward pass.",
    ),
    "schedule": Knob(
        default="1f1b",
        choices=("gpipe", "1f1b"),
        doc="For pipeline. gpipe: all micro-batches forward, then all backward; 1f1b: in turn, which keeps fewer.",
    ),
    "microbatches": Knob(
        default=None,
        type=int,
        minimum=1,
        doc="For pipeline: pieces of the global batch; unset: 4, 2 or 1 per stage, the most that the batch allows.",
    ),
}


POWERSGD = Approximation(
    reason="gradients are exchanged as products of thin matrices",
    because="the first steps are exact; a projection loses less than the whole of what it projects, and a result twice "
    "as long or reversed loses as much or more",
    exchange=0.999,
)
LOCAL_STEPS = Approximation(
    reason="each worker trains by itself between two averages of weights",
    because="gradients of the first steps are averaged exactly",
    beyond="how far workers drift apart between two averages of their weights",
)
LOCAL_FROM_THE_START = replace(LOCAL_STEPS, because="no gradient is ever averaged", gradient=None)


def _approximations(strategy: str, knobs: KnobValues) -> tuple[Approximation, ...]:
    given_up = [BF16] if knobs["precision"] == "bf16" else []
    if knobs["hook"] != "none":
        given_up.append({"fp16": FP16_EXCHANGE, "powersgd": POWERSGD}[text(knobs, "hook")])
    if strategy == "post_local_sgd":
        given_up.append(LOCAL_STEPS if knobs["local_sgd_start"] else LOCAL_FROM_THE_START)
    return tuple(given_up)


STRATEGIES = {
    "single": Strategy(max_workers=1, doc="One process, no exchange."),
    "ddp": Strategy(doc="DistributedDataParallel over gloo (CPU) or NCCL (CUDA); a single worker is not wrapped."),
    "zero": Strategy(
        sharing="partitioned",
        doc="DDP with ZeroRedundancyOptimizer: each worker keeps the optimizer state of a share of the parameters, "
        "updates these parameters and sends them to all workers.",
    ),
    "fsdp": Strategy(
        sharing="sharded",
        doc="FSDP2 (`fully_shard`), block by block: each worker keeps a share of every parameter. Filters are "
        "channels-first in memory, because FSDP2 supports no other layout.",
    ),
    "post_local_sgd": Strategy(
        strategy_class="approximate",
        period_knob="local_sgd_period",
        doc="DDP that exchanges no gradients after `local_sgd_start` steps: each worker trains by itself, and weights "
        "are averaged every `local_sgd_period` steps. Filters are channels-first in memory.",
    ),
    "pipeline": Strategy(
        sharing="pipelined",
        doc="torch.distributed.pipelining, transformers only: each worker is a stage of some blocks, and the samples "
        "of all workers pass through as micro-batches. Every rank reports the loss over all of them; its communication "
        "includes the time in which it waits for other stages (the bubble).",
    ),
    "tensor": Strategy(
        sharing=None,
        doc="DTensor tensor parallelism, transformers only: attention heads and hidden units are distributed, and "
        "every worker sees all samples. Every rank reports the loss over all of them.",
    ),
}


class Torch(Framework):
    name = "torch"
    title = "PyTorch"
    module = "paceline_worker.frameworks.torch.training"
    environment = "torch-cpu"
    package = "torch"
    capabilities = Capabilities(
        strategies=STRATEGIES,
        data_parallel="ddp",
        workloads=frozenset({"graph", "collective"}),
        collectives=dict.fromkeys(
            ("all_reduce", "all_gather", "reduce_scatter", "broadcast", "send_recv"), "gloo (NCCL on CUDA)"
        ),
        knobs=KNOBS,
        layer_kinds=LAYER_KINDS,
        devices={"cpu": "ready", "cuda": "untested"},
        inputs=frozenset({"resident", "pipeline"}),
        phases=("data", "forward", "backward", "communication", "update"),
        layer_times=True,
        startup_s=6.0,
        refuses=lambda trial: refuses(trial, KNOBS),
        refuses_graph=refuses_graph,
        approximations=_approximations,
        bucket_knob="bucket_bytes",
        compressions={"fp16": {"hook": "fp16"}},
    )

    def processes(self, trial: Trial, topology: Topology) -> list[Process]:
        """One worker per slot.

        Thread counts are set before the first library loads; the worker sets and reports them again. OMP_WAIT_POLICY
        is not set: spinning between parallel regions, the runtime's default, is twice as fast as sleeping if a rank has
        its cores to itself, which Paceline ensures. On an oversubscribed machine it is very slow, and recorded as such.
        """
        threads = str(trial.cluster.threads_per_worker)
        env = {"OMP_NUM_THREADS": threads, "MKL_NUM_THREADS": threads}
        workers = one_worker_a_slot(trial, topology, env)
        if trial.workers == 1:
            return workers
        return [
            replace(worker, env={**worker.env, **socket_variables(topology.hosts[worker.host])}) for worker in workers
        ]


def socket_variables(host: Host) -> dict[str, str]:
    """Variables that select the network device of gloo and NCCL on a host."""
    # By default gloo takes the device that the host's name resolves to, which need not reach the other hosts.
    interface = host.interface
    if interface is None and (host.address == "localhost" or host.address.startswith("127.")):
        interface = "lo"
    return {} if interface is None else {"GLOO_SOCKET_IFNAME": interface, "NCCL_SOCKET_IFNAME": interface}


TORCH = Torch()
