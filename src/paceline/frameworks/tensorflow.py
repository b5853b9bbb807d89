"""TensorFlow, seen from the host: what it can do, and the processes of a run. Does not import TensorFlow."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace

from paceline.frameworks.base import Framework, one_worker_a_slot
from paceline.plan.approximation import BF16_SUMS, Approximation
from paceline.plan.capabilities import Capabilities, Knob, Strategy
from paceline.plan.knob_values import KnobValues, flag
from paceline.plan.process import Process, Topology
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
"""Keys of paceline_worker.frameworks.tensorflow.builder.KINDS, and the input; a test compares the two."""

SERVER_ARGV = ("-m", "paceline_worker.frameworks.tensorflow.server")
"""How a parameter server is started; TF_CONFIG holds its address and role."""

KNOBS = {
    "onednn": Knob(
        default=True, doc="Use oneDNN kernels; off: Eigen's. TensorFlow's default depends on the processor."
    ),
    "precision": Knob(
        default="fp32", choices=("fp32", "bf16"), doc="bf16: compute in bfloat16; weights, norms and loss stay fp32."
    ),
    "jit_compile": Knob(
        default=False,
        doc="Compile the step with XLA, in the first step; with peers, the parts before and after the exchange.",
    ),
    "eager": Knob(default=False, doc="No tf.function: every operator is started from Python, as in many programs."),
    "interop_threads": Knob(
        default=1, minimum=1, doc="Threads for operators that run in parallel; at least one per device of the process."
    ),
    "bytes_per_pack": Knob(
        default=None,
        type=float,
        units=BYTES,
        minimum=1.0,
        doc="Size of the vectors into which gradients are packed for the exchange; unset: one for all of them.",
    ),
    "unroll": Knob(
        default=True,
        doc="Unroll the steps of an LSTM; off: tf.while_loop, which is faster to trace and slower to run.",
    ),
    "derive_phases": Knob(
        default=True,
        doc="After the measured steps, profile some more and report the fact phases_derived: by operators, or with "
        "jit_compile, eager or peers (except parameter servers) by differences of programs for parts of the step.",
    ),
}


def _refuses(trial: Trial) -> str | None:
    knobs, strategy = trial.framework.knobs, trial.framework.strategy
    if knobs["eager"] and knobs["jit_compile"]:
        return "jit_compile compiles a tf.function, and eager has none"
    if strategy == "mirrored" and trial.cluster.hosts > 1:
        return "strategy mirrored is of one host; multi_worker_mirrored is of several"
    if strategy == "parameter_server" and (knobs["eager"] or knobs["jit_compile"]):
        return "strategy parameter_server runs a TensorFlow 1 graph, which is neither eager nor compiled by XLA"
    if strategy == "parameter_server" and trial.workload.input != "resident":
        return "strategy parameter_server runs a TensorFlow 1 graph, whose samples are in a variable of it"
    return None


def _approximations(_strategy: str, knobs: KnobValues) -> tuple[Approximation, ...]:
    return (BF16_SUMS,) if knobs["precision"] == "bf16" else ()


def _ports(trial: Trial) -> int:
    """One per worker, for its gRPC server, and one for a parameter server."""
    return trial.cluster.workers_per_host + (trial.framework.strategy == "parameter_server")


class TensorFlow(Framework):
    name = "tensorflow"
    title = "TensorFlow"
    module = "paceline_worker.frameworks.tensorflow.training"
    environment = "tensorflow-cpu"
    package = "tensorflow-cpu"
    capabilities = Capabilities(
        strategies={
            "single": Strategy(max_workers=1, doc="One process, one tf.function per step, no exchange."),
            "multi_worker_mirrored": Strategy(
                doc="MultiWorkerMirroredStrategy: one process per worker, gradients averaged by a ring over gRPC in a "
                "custom training loop; a single worker is not wrapped."
            ),
            "mirrored": Strategy(
                one_process=True,
                doc="MirroredStrategy: the workers of a host are logical CPUs of one process.",
            ),
            "parameter_server": Strategy(
                strategy_class="asynchronous",
                sharing="asynchronous",
                exchange="server",
                servers_per_host=1,
                doc="Variables on parameter servers, one per host, which share the cores of its workers; every worker "
                "reads, computes and updates without waiting for others (between-graph replication).",
            ),
        },
        data_parallel="multi_worker_mirrored",
        workloads=frozenset({"graph", "collective"}),
        collectives=dict.fromkeys(("all_reduce", "all_gather", "broadcast"), "gRPC"),
        knobs=KNOBS,
        layer_kinds=LAYER_KINDS,
        inputs=frozenset({"resident", "pipeline"}),
        phases=("data", "step"),
        ports=_ports,
        startup_s=15.0,
        refuses=_refuses,
        approximations=_approximations,
    )

    def processes(self, trial: Trial, topology: Topology) -> list[Process]:
        """One worker per slot, after the parameter servers if there are any.

        TF_CONFIG names all of them and is read when TensorFlow starts.
        """
        # The knob overrides the user's shell, and TensorFlow's own default, which depends on the processor.
        env = {"TF_ENABLE_ONEDNN_OPTS": str(int(flag(trial.framework.knobs, "onednn"))), "TF_CPP_MIN_LOG_LEVEL": "2"}
        workers = one_worker_a_slot(trial, topology, env)
        servers = trial.framework.strategy == "parameter_server"
        if not servers and (trial.workers == 1 or trial.framework.one_process):
            return workers
        local = trial.cluster.workers_per_host
        cluster = {"worker": [_place(topology, w.host, (w.rank or 0) % local) for w in workers]}
        if not servers:
            return [_with_config(worker, cluster, "worker", worker.rank or 0) for worker in workers]
        used = range(trial.cluster.hosts)
        cluster["ps"] = [_place(topology, host, local) for host in used]
        started = [
            Process(
                role="server",
                host=host,
                index=host,
                argv=SERVER_ARGV,
                env=env,
                cores=tuple(dict.fromkeys(core for w in workers if w.host == host for core in w.cores)),
            )
            for host in used
        ]
        return [
            *(_with_config(server, cluster, "ps", server.index) for server in started),
            *(_with_config(worker, cluster, "worker", worker.rank or 0) for worker in workers),
        ]


def _place(topology: Topology, host: int, port: int) -> str:
    return f"{topology.hosts[host].address}:{topology.hosts[host].ports[port]}"


def _with_config(process: Process, cluster: Mapping[str, list[str]], role: str, index: int) -> Process:
    config = json.dumps({"cluster": cluster, "task": {"type": role, "index": index}})
    return replace(process, env={**process.env, "TF_CONFIG": config})


TENSORFLOW = TensorFlow()
