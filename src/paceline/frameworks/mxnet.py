"""MXNet, seen from the host: what it can do, and the processes of a run. Does not import MXNet."""

from __future__ import annotations

from dataclasses import replace

from paceline.frameworks.base import Framework, one_worker_a_slot
from paceline.plan.approximation import Approximation
from paceline.plan.capabilities import Capabilities, Knob, Strategy
from paceline.plan.knob_values import KnobValues, optional_integer, text
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
"""Keys of paceline_worker.frameworks.mxnet.builder.KINDS, and the input; a test compares the two."""

ROLE_ARGV = ("-m", "paceline_worker.frameworks.mxnet.role")
"""How ps-lite's scheduler and servers are started; DMLC_ROLE distinguishes them."""

THROUGH_SERVERS = frozenset({"dist_sync", "dist_async"})
"""Strategies that exchange through ps-lite."""

SHARED = "The scheduler and the servers share the cores of their host's workers."

KNOBS = {
    "onednn": Knob(default=True, doc="Use oneDNN kernels; off: MXNet's own, several times slower on convolutions."),
    "static_alloc": Knob(
        default=True, doc="Hybridize with static_alloc and static_shape: memory is planned once, not in every step."
    ),
    "bulk": Knob(
        default=15,
        minimum=1,
        doc="Most operators passed to the engine as one; more cost less, but gradients are sent later.",
    ),
    "engine": Knob(
        default="ThreadedEnginePerDevice",
        choices=("ThreadedEnginePerDevice", "ThreadedEngine", "NaiveEngine"),
        doc="The engine that runs operators; NaiveEngine: one after the other, in the calling thread.",
    ),
    "update_on_kvstore": Knob(
        default=None,
        type=bool,
        doc="Whether the store applies the optimizer and sends weights back, not gradients; unset: MXNet's own choice.",
    ),
    "servers": Knob(
        default=None,
        type=int,
        minimum=1,
        doc="Servers of dist_sync and dist_async, distributed over the hosts; unset: one per host. MXNet's launcher "
        "starts as many servers as workers, and one worker per host.",
    ),
    "gradient_compression": Knob(
        default="none",
        choices=("none", "2bit"),
        doc="2bit: each gradient is sent to the servers as +threshold, -threshold or 0, and the remainder is added to "
        "the next one.",
    ),
    "compression_threshold": Knob(
        default=0.5, minimum=1e-9, doc="For 2bit; MXNet compares it with gradients summed over a worker's batch."
    ),
    "derive_phases": Knob(
        default=True,
        doc="After the measured steps, take more steps that wait after each part, and report their times as the fact "
        "phases_derived.",
    ),
}


def _refuses(trial: Trial) -> str | None:
    knobs, strategy = trial.framework.knobs, trial.framework.strategy
    if trial.framework.one_process and trial.cluster.hosts > 1:
        return f"{strategy} joins devices of one process; over several hosts take dist_sync"
    if strategy not in THROUGH_SERVERS:
        if knobs["servers"] is not None:
            return f"{strategy} has no servers"
        if knobs["gradient_compression"] != "none":
            return "on CPUs gradients are compressed only on their way to servers: dist_sync or dist_async"
    if strategy == "dist_async" and knobs["update_on_kvstore"] is False:
        return "dist_async has no gradients to send back: the servers apply them as they come"
    return None


TWO_BITS = Approximation(
    reason="gradients of 2 bits",
    because="a number becomes 0 or moves towards 0 by the threshold, so it loses at most itself; sketches tell such a "
    "distance to a quarter, and with a doubled or reversed gradient the loss must still fall",
    gradient=1.5,
)


def _approximations(_strategy: str, knobs: KnobValues) -> tuple[Approximation, ...]:
    return (TWO_BITS,) if knobs["gradient_compression"] == "2bit" else ()


class MXNet(Framework):
    name = "mxnet"
    title = "MXNet"
    module = "paceline_worker.frameworks.mxnet.training"
    environment = "mxnet-cpu"
    package = "mxnet"
    capabilities = Capabilities(
        strategies={
            "single": Strategy(max_workers=1, doc="One process, no exchange."),
            "kvstore_local": Strategy(
                one_process=True, doc="Devices of one process; gradients are summed by the CPU's priority threads."
            ),
            "kvstore_device": Strategy(
                one_process=True, doc="Devices of one process; gradients are summed on the devices, tensor by tensor."
            ),
            "dist_sync": Strategy(
                exchange="server",
                servers_per_host=1,
                tensor_by_tensor=True,
                doc=f"One process per worker, gradients averaged by ps-lite's servers. {SHARED} "
                "A single worker has none.",
            ),
            "dist_async": Strategy(
                strategy_class="asynchronous",
                sharing="asynchronous",
                exchange="server",
                servers_per_host=1,
                doc=f"One process per worker; ps-lite's servers apply each gradient on arrival. {SHARED}",
            ),
        },
        data_parallel="dist_sync",
        workloads=frozenset({"graph", "collective"}),
        collectives={"push_pull": "ps-lite"},
        knobs=KNOBS,
        layer_kinds=LAYER_KINDS,
        inputs=frozenset({"resident", "pipeline"}),
        phases=("data", "step"),
        startup_s=6.0,
        refuses=_refuses,
        approximations=_approximations,
    )

    def processes(self, trial: Trial, topology: Topology) -> list[Process]:
        """One worker per slot, and before them the scheduler and servers of ps-lite.

        Each device has one engine thread, which opens OpenMP regions of `threads_per_worker` threads.
        """
        workers = one_worker_a_slot(trial, topology, _variables(trial))
        if trial.workers == 1 or trial.framework.strategy not in THROUGH_SERVERS:
            return workers
        servers = optional_integer(trial.framework.knobs, "servers") or trial.cluster.hosts
        meeting = {
            "DMLC_PS_ROOT_URI": topology.hosts[0].address,
            "DMLC_PS_ROOT_PORT": str(topology.hosts[0].ports[0]),
            "DMLC_NUM_WORKER": str(trial.workers),
            "DMLC_NUM_SERVER": str(servers),
        }

        def at(host: int, role: str) -> dict[str, str]:
            where = topology.hosts[host]
            interface = {} if where.interface is None else {"DMLC_INTERFACE": where.interface}
            return {**_variables(trial), **meeting, **interface, "DMLC_NODE_HOST": where.address, "DMLC_ROLE": role}

        def helper(role: str, index: int, host: int) -> Process:
            cores = tuple(dict.fromkeys(core for worker in workers if worker.host == host for core in worker.cores))
            return Process(role=role, index=index, host=host, argv=ROLE_ARGV, cores=cores, env=at(host, role))

        return [
            helper("scheduler", 0, 0),
            *(helper("server", index, index % trial.cluster.hosts) for index in range(servers)),
            *(replace(worker, env=at(worker.host, "worker")) for worker in workers),
        ]


def _variables(trial: Trial) -> dict[str, str]:
    knobs, threads = trial.framework.knobs, str(trial.cluster.threads_per_worker)
    onednn = "1" if knobs["onednn"] else "0"
    return {
        "OMP_NUM_THREADS": threads,
        "OPENBLAS_NUM_THREADS": threads,
        "MXNET_CPU_WORKER_NTHREADS": "1",
        "MXNET_KVSTORE_REDUCTION_NTHREADS": threads,
        "MXNET_ENGINE_TYPE": text(knobs, "engine"),
        "MXNET_MKLDNN_ENABLED": onednn,
        # The LSTM ignores the switch above and would fail without oneDNN.
        "MXNET_USE_MKLDNN_RNN": onednn,
        "MXNET_EXEC_BULK_EXEC_MAX_NODE_TRAIN": str(knobs["bulk"]),
        # Each operator that oneDNN lacks would print a page of warnings, which a user can do nothing about.
        "MXNET_STORAGE_FALLBACK_LOG_VERBOSE": "0",
    }


MXNET = MXNet()
