"""The host half of the float64 reference: one process that fairness proofs compare with and that is never measured."""

from __future__ import annotations

from paceline.frameworks.base import Framework, one_worker_a_slot
from paceline.frameworks.torch import LAYER_KINDS
from paceline.plan.capabilities import Capabilities, Strategy
from paceline.plan.process import Process, Topology
from paceline.plan.trial import Trial


def _refuses(trial: Trial) -> str | None:
    if not trial.measure.evidence:
        return "it is what fairness proofs refer to, in float64; it is not measured"
    return None


class Reference(Framework):
    name = "reference"
    title = "float64 reference"
    module = "paceline_worker.frameworks.reference.training"
    environment = "torch-cpu"
    package = "torch"
    capabilities = Capabilities(
        strategies={"in_turn": Strategy(one_process=True, doc="One process that takes all workers' batches in turn.")},
        data_parallel="in_turn",
        layer_kinds=LAYER_KINDS,
        phases=("data", "step"),
        startup_s=6.0,
        refuses=_refuses,
    )

    def processes(self, trial: Trial, topology: Topology) -> list[Process]:
        """One process for all workers."""
        threads = str(trial.cluster.threads_per_worker)
        return one_worker_a_slot(trial, topology, {"OMP_NUM_THREADS": threads, "MKL_NUM_THREADS": threads})


REFERENCE = Reference()
