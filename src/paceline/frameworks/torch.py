"""PyTorch, seen from the host: what it can do, and the processes of a run. Does not import PyTorch."""

from __future__ import annotations

from dataclasses import replace

from paceline.frameworks.base import Framework, one_worker_a_slot
from paceline.plan.capabilities import Capabilities, Knob, Strategy
from paceline.plan.process import Host, Process, Topology
from paceline.plan.trial import Trial
from paceline.units import BYTES

LAYER_KINDS = frozenset(
    {
        "input", "conv2d", "batch_norm", "relu", "gelu", "tanh", "max_pool2d", "avg_pool2d", "global_avg_pool",
        "flatten", "linear", "dropout", "add", "concat", "subsample_pad", "embedding", "position_embedding",
        "layer_norm", "attention", "lstm", "last_step", "mean_over_time",
    }
)  # fmt: skip
"""Keys of paceline_worker.builders.torch.KINDS, and the input; a test holds the two together."""

KNOBS = {
    "interop_threads": Knob(default=1, minimum=1, doc="Threads for operators beside each other; a step has none."),
    "onednn": Knob(default=True, doc="Use oneDNN kernels; off: PyTorch's own, twice as slow on small convolutions."),
    # Time of channels-first over channels-last, one thread, AVX2, busy machine; median of paired steps [95 %]:
    # ResNet-20 (batch 32) 1.21 [1.18, 1.33], ResNet-44 (32) 1.21 [1.13, 1.25], GoogLeNet (4) 1.24 [1.13, 1.34];
    # AlexNet (8) 0.98 [0.90, 1.02], which cannot be told from equal.
    "channels_last": Knob(default=True, doc="Images and filters channels-last in memory; no effect on other inputs."),
    "precision": Knob(
        default="fp32", choices=("fp32", "bf16"), doc="bf16: autocast of the forward pass; weights stay fp32."
    ),
    "compile": Knob(default=False, doc="torch.compile; the first step pays for it. Needs a C++ compiler."),
    "bucket_bytes": Knob(
        default=None, type=float, units=BYTES, minimum=1.0,
        doc="Size of DDP's gradient buckets; unset: DDP's own (25 MiB after a first one of 1 MiB).",
    ),
    "overlap": Knob(
        default=True, doc="Off: one bucket for everything, so that its all-reduce waits for the last gradient."
    ),
    "gradient_as_bucket_view": Knob(default=True, doc="Gradients live in DDP's buckets: one copy and its memory less."),
    "sync_buffers": Knob(
        default=False,
        doc="DDP's broadcast of rank 0's batch-norm statistics before every forward pass. PyTorch's default is on; "
        "the statistics are not used in training, and the workload leaves them to each rank.",
    ),
}  # fmt: skip


def _refuses(trial: Trial) -> str | None:
    knobs = trial.framework.knobs
    if not knobs["overlap"] and knobs["bucket_bytes"] is not None:
        return "overlap = false makes one bucket of everything, so bucket_bytes says nothing"
    if trial.measure.layers and knobs["compile"]:
        return "per-layer times need layers, and compile fuses them"
    if trial.measure.layers and trial.cluster.device != "cpu":
        return "per-layer times are taken on the CPU only"
    return None


class Torch(Framework):
    name = "torch"
    title = "PyTorch"
    module = "paceline_worker.frameworks.torch"
    environment = "torch-cpu"
    package = "torch"
    capabilities = Capabilities(
        strategies={
            "single": Strategy(max_workers=1, doc="One process, no exchange."),
            "ddp": Strategy(
                doc="DistributedDataParallel over gloo (CPU) or NCCL (CUDA); a lone worker is not wrapped."
            ),
        },
        data_parallel="ddp",
        knobs=KNOBS,
        layer_kinds=LAYER_KINDS,
        devices={"cpu": "ready", "cuda": "untested"},
        inputs=frozenset({"resident", "pipeline"}),
        phases=("data", "forward", "backward", "communication", "update"),
        layer_times=True,
        startup_s=6.0,
        refuses=_refuses,
    )

    def processes(self, trial: Trial, topology: Topology) -> list[Process]:
        """One worker a slot.

        Thread counts are set before the first library loads; the worker sets and reports them again. OMP_WAIT_POLICY
        is left alone: spinning between parallel regions, the runtime's default, is twice as fast as sleeping where a
        rank has its cores to itself, which Paceline sees to; on a crowded machine it is ruinous, and recorded as such.
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
    """Which network device gloo and NCCL take on a host."""
    # Without a name gloo takes the device that the host's own name resolves to, which need not reach the peers.
    interface = host.interface
    if interface is None and (host.address == "localhost" or host.address.startswith("127.")):
        interface = "lo"
    return {} if interface is None else {"GLOO_SOCKET_IFNAME": interface, "NCCL_SOCKET_IFNAME": interface}


TORCH = Torch()
