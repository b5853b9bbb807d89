"""JAX, seen from the host: what it can do, and the processes of a run. Does not import JAX."""

from __future__ import annotations

from paceline.frameworks.base import Framework, one_worker_a_slot
from paceline.plan.approximation import BF16_SUMS
from paceline.plan.capabilities import Capabilities, Knob, Strategy
from paceline.plan.process import Process, Topology
from paceline.plan.trial import Trial

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
"""Keys of paceline_worker.frameworks.jax.builder.KINDS, and the input; a test compares the two."""

KNOBS = {
    # Median step, one thread, busy machine, both layouts in turn in one process: ResNet-20 (batch 32) 259 ms
    # channels-last and 301 ms channels-first, (batch 8) 57 and 59, AlexNet (8) 931 and 990.
    "channels_last": Knob(default=True, doc="Store images as N, H, W, C; off: N, C, H, W. No effect on other inputs."),
    "precision": Knob(
        default="fp32", choices=("fp32", "bf16"), doc="bf16: compute in bfloat16; weights, norms and loss stay fp32."
    ),
    # Least CPU time per step on one core, waiting for each step and with this default: MLP (batch 8) 1.31 and 1.19 ms,
    # LeNet-5 (8) 2.48 and 2.23 ms. Without waiting they take 1.10 and 2.21 ms, but then single steps cannot be timed.
    "run_ahead": Knob(
        default=16,
        minimum=0,
        maximum=30,
        doc="Steps that may be started before an earlier one has ended, as in common training loops; 0: wait for each.",
    ),
    # CPU time per step of an MLP (batch 8) on two devices of one process: 72 ms as one vector, 5 ms as a tree.
    "flatten": Knob(
        default=None,
        type=bool,
        doc="Average all gradients as one vector; off: `pmean` of the tree. By default on between processes, where "
        "gloo is slower with a tree, and off among devices of one process, where XLA is slower with a long vector.",
    ),
    "compilation_cache": Knob(
        default=False,
        doc="Keep compiled programs on disk from run to run; JAX's default is off. JAX lets only the first of "
        "several ranks write; those of the others are kept beside them. The fact compilation_cache tells the state.",
    ),
    "derive_phases": Knob(
        default=True,
        doc="After the measured steps, time separate programs for parts of the step and report the differences as the "
        "fact phases_derived. Two or three more programs have to be compiled.",
    ),
}


class Jax(Framework):
    name = "jax"
    title = "JAX"
    module = "paceline_worker.frameworks.jax.training"
    environment = "jax-cpu"
    package = "jax"
    capabilities = Capabilities(
        strategies={
            "single": Strategy(max_workers=1, doc="One process, plain jit, no exchange."),
            # Not `pmap`, which JAX keeps for old programs, and not jit over a sharded batch, which would make batch
            # norms see all ranks' samples: the workload leaves each rank its own.
            "shard_map": Strategy(
                doc="One process per worker, gradients averaged explicitly over gloo; a single worker is plain jit."
            ),
            "shard_map_devices": Strategy(
                one_process=True,
                doc="One process per host whose CPU devices are the workers, gradients averaged inside it (and over "
                "gloo between hosts); batch norm sees each device's own batch. They share one pool of threads.",
            ),
        },
        data_parallel="shard_map",
        workloads=frozenset({"graph", "collective"}),
        collectives=dict.fromkeys(("all_reduce", "all_gather", "reduce_scatter", "send_recv"), "gloo by XLA"),
        knobs=KNOBS,
        layer_kinds=LAYER_KINDS,
        inputs=frozenset({"resident", "pipeline"}),
        phases=("data", "step"),
        startup_s=20.0,
        approximations=lambda _strategy, knobs: (BF16_SUMS,) if knobs["precision"] == "bf16" else (),
    )

    def processes(self, trial: Trial, topology: Topology) -> list[Process]:
        """One worker per slot.

        NPROC sets the size of XLA's thread pool, which reads it when its client is created; there is no other setting.
        """
        threads = trial.cluster.threads_per_worker * trial.workers // trial.ranks
        env = {"JAX_PLATFORMS": trial.cluster.device, "NPROC": str(threads)}
        return one_worker_a_slot(trial, topology, env)


JAX = Jax()
