"""The host half of MPI, a library by which many frameworks exchange gradients. It offers collectives only."""

from __future__ import annotations

from dataclasses import replace

from paceline.frameworks.base import Framework, one_worker_a_slot
from paceline.plan.capabilities import Capabilities, Knob, Strategy
from paceline.plan.knob_values import text
from paceline.plan.process import Process, Topology
from paceline.plan.trial import Trial

GUESSED_STEP_S = 1e-3


class Mpi(Framework):
    """MPICH through mpi4py."""

    name = "mpi"
    title = "MPI (MPICH)"
    module = "paceline_worker.frameworks.mpi.training"
    environment = "mpi-cpu"
    package = "mpi4py"
    needs_weights = False
    capabilities = Capabilities(
        strategies={"ranks": Strategy(doc="One MPI rank per worker.")},
        data_parallel="ranks",
        knobs={
            "provider": Knob(
                default="tcp",
                choices=("tcp", "sockets", "verbs", "default"),
                doc="libfabric's provider for messages between hosts; default: its own choice.",
            ),
        },
        workloads=frozenset({"collective"}),
        collectives=dict.fromkeys(("all_reduce", "all_gather", "reduce_scatter", "broadcast", "send_recv"), "mpi"),
        trains=False,
        phases=("communication",),
        startup_s=2.0,
        guess_step_s=lambda _trial: GUESSED_STEP_S,
    )

    def processes(self, trial: Trial, topology: Topology) -> list[Process]:
        """One rank per slot; ranks find each other through paceline_worker.pmi."""
        provider = text(trial.framework.knobs, "provider")
        shared = {} if provider == "default" else {"FI_PROVIDER": provider}
        ranks = []
        for worker in one_worker_a_slot(trial, topology, shared):
            device = topology.hosts[worker.host].interface
            interface = {"FI_TCP_IFACE": device} if device else {}
            ranks.append(replace(worker, env={**worker.env, **interface}))
        return ranks


MPI = Mpi()
