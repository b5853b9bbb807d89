"""Keras 3 on three backends, seen from the host: what it can do, and the processes of a run. Does not import Keras."""

from __future__ import annotations

from dataclasses import replace

from paceline.frameworks.base import Framework
from paceline.frameworks.jax import JAX
from paceline.frameworks.tensorflow import TENSORFLOW
from paceline.frameworks.torch import TORCH
from paceline.plan.approximation import BF16, BF16_SUMS, Approximation
from paceline.plan.capabilities import Capabilities, Knob, Strategy
from paceline.plan.knob_values import KnobValues
from paceline.plan.process import Process, Topology
from paceline.plan.trial import Trial
from paceline.units import BYTES
from paceline.workloads.graph import Graph

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
"""Keys of paceline_worker.frameworks.keras.builder.KINDS, and the input; a test compares the two."""

PRECISION = Knob(
    default="fp32",
    choices=("fp32", "bf16"),
    doc="bf16: Keras's policy mixed_bfloat16; weights, norms and loss stay fp32.",
)
DERIVE_PHASES = Knob(
    default=True,
    doc="After the measured steps, time separate programs for parts of the step and report the differences as the fact "
    "phases_derived. Some more programs have to be compiled.",
)
SINGLE = Strategy(max_workers=1, doc="One process, no exchange: a custom training loop as in Keras's guide.")

TORCH_KNOBS = {
    "channels_last": Knob(
        default=True, doc="Keras's data format channels_last; off: channels_first. No effect on other inputs."
    ),
    "precision": PRECISION,
    "jit_compile": Knob(default=False, doc="Use torch.compile, which runs in the first step. Needs a C++ compiler."),
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
        default=False, doc="Broadcast buffers before every forward pass, as DDP does; a Keras model has none."
    ),
}

JAX_KNOBS = {
    "channels_last": Knob(
        default=True, doc="Keras's data format channels_last; off: channels_first. No effect on other inputs."
    ),
    "precision": PRECISION,
    "run_ahead": JAX.capabilities.knobs["run_ahead"],
    "derive_phases": DERIVE_PHASES,
}

TENSORFLOW_KNOBS = {
    "onednn": TENSORFLOW.capabilities.knobs["onednn"],
    "precision": PRECISION,
    "jit_compile": Knob(default=False, doc="Compile the step with XLA, in the first step."),
    "interop_threads": TENSORFLOW.capabilities.knobs["interop_threads"],
    "bytes_per_pack": TENSORFLOW.capabilities.knobs["bytes_per_pack"],
    "derive_phases": Knob(
        default=True,
        doc="After the measured steps, profile some more and report the fact phases_derived: by operators, or with "
        "jit_compile or peers by differences of programs for parts of the step.",
    ),
}


def _torch_approximations(_strategy: str, knobs: KnobValues) -> tuple[Approximation, ...]:
    return (BF16,) if knobs["precision"] == "bf16" else ()


def _approximations(_strategy: str, knobs: KnobValues) -> tuple[Approximation, ...]:
    """On TensorFlow and on JAX."""
    return (BF16_SUMS,) if knobs["precision"] == "bf16" else ()


def _torch_refuses(trial: Trial) -> str | None:
    knobs = trial.framework.knobs
    if not knobs["overlap"] and knobs["bucket_bytes"] is not None:
        return "overlap = false makes one bucket of everything, so bucket_bytes says nothing"
    return None


def _jax_refuses_graph(trial: Trial, graph: Graph) -> str | None:
    if trial.workers > 1 and any(layer.kind == "batch_norm" for layer in graph.layers):
        return (
            "keras.distribution.DataParallel normalises over the batches of all workers, and the workload's batch norm "
            "over each worker's own"
        )
    return None


def _tensorflow_refuses(trial: Trial) -> str | None:
    if trial.framework.knobs["jit_compile"] and trial.workers > 1:
        return "jit_compile compiles the whole step, and XLA on a CPU has no collectives"
    if trial.framework.strategy == "mirrored" and trial.cluster.hosts > 1:
        return "strategy mirrored is of one host; multi_worker_mirrored is of several"
    return None


class Keras(Framework):
    """Keras on one backend; the adapter of that backend defines how processes are started."""

    package = "keras"

    def __init__(self, backend: Framework, capabilities: Capabilities) -> None:
        self.name = f"keras-{backend.name}"
        self.title = f"Keras on {backend.title}"
        self.module = f"paceline_worker.frameworks.keras.on_{backend.name}"
        self.environment = f"keras-{backend.name}-cpu"
        self.capabilities = capabilities
        self._backend = backend

    def processes(self, trial: Trial, topology: Topology) -> list[Process]:
        """The processes of the backend, with KERAS_BACKEND set: Keras reads it once, when it is imported."""
        chosen = {"KERAS_BACKEND": self._backend.name}
        return [replace(p, env={**p.env, **chosen}) for p in self._backend.processes(trial, topology)]


KERAS_TORCH = Keras(
    TORCH,
    Capabilities(
        strategies={
            "single": SINGLE,
            "ddp": Strategy(
                doc="The Keras model in PyTorch's DistributedDataParallel over gloo, as in Keras's guide to several "
                "devices; a single worker is not wrapped."
            ),
        },
        data_parallel="ddp",
        knobs=TORCH_KNOBS,
        layer_kinds=LAYER_KINDS,
        # Keras trains from a DataLoader where PyTorch is its backend.
        inputs=frozenset({"resident", "pipeline"}),
        phases=("data", "forward", "backward", "communication", "update"),
        startup_s=8.0,
        refuses=_torch_refuses,
        approximations=_torch_approximations,
        bucket_knob="bucket_bytes",
    ),
)

KERAS_JAX = Keras(
    JAX,
    Capabilities(
        strategies={
            "single": SINGLE,
            "data_parallel": Strategy(
                doc="keras.distribution.DataParallel: one process per worker, one program over the batch of all of "
                "them, to which the compiler adds the exchange over gloo; a single worker is not wrapped. The loss it "
                "reports is the mean over all workers.",
            ),
        },
        data_parallel="data_parallel",
        knobs=JAX_KNOBS,
        layer_kinds=LAYER_KINDS,
        inputs=frozenset({"resident", "pipeline"}),
        phases=("data", "step"),
        startup_s=20.0,
        refuses_graph=_jax_refuses_graph,
        approximations=_approximations,
    ),
)

KERAS_TENSORFLOW = Keras(
    TENSORFLOW,
    Capabilities(
        strategies={
            "single": SINGLE,
            "multi_worker_mirrored": Strategy(
                doc="The model is made under MultiWorkerMirroredStrategy and trained by a custom loop: one process per "
                "worker, gradients summed by a ring over gRPC; a single worker is not wrapped."
            ),
            "mirrored": Strategy(
                one_process=True,
                doc="The model is made under MirroredStrategy: the workers of a host are logical CPUs of one process.",
            ),
        },
        data_parallel="multi_worker_mirrored",
        knobs=TENSORFLOW_KNOBS,
        layer_kinds=LAYER_KINDS,
        inputs=frozenset({"resident", "pipeline"}),
        phases=("data", "step"),
        ports=lambda trial: trial.cluster.workers_per_host,
        startup_s=15.0,
        refuses=_tensorflow_refuses,
        approximations=_approximations,
    ),
)
