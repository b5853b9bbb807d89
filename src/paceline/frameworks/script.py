"""The host half of a user's training program, which is started on every slot: with the variables of torchrun, or plain.

The program may use any framework. It must mark its steps, or use PyTorch so that hooks can observe them.
"""

from __future__ import annotations

from dataclasses import replace

from paceline.frameworks.base import Framework, one_worker_a_slot
from paceline.frameworks.torch import socket_variables
from paceline.plan.capabilities import Capabilities, Knob, Strategy
from paceline.plan.process import Process, Topology
from paceline.plan.trial import Trial
from paceline.workloads import PLAIN, TORCHRUN

GUESSED_STEP_S = 0.2
"""A user's step is unknown before the first run; most steps take between 10 ms and some seconds."""


def _refuses(trial: Trial) -> str | None:
    if trial.workers > 1 and launch_of(trial) == PLAIN:
        return f"launch = '{PLAIN}' starts one worker, without the variables that tell it about others"
    return None


def launch_of(trial: Trial) -> str:
    """How the script of a trial is started."""
    return str(trial.workload.options.get("launch", TORCHRUN))


class Script(Framework):
    name = "script"
    title = "a training script of your own"
    module = "paceline_worker.frameworks.script.training"
    environment = None
    imports_packages = True
    needs_weights = False
    capabilities = Capabilities(
        strategies={
            "own": Strategy(doc="The script's own; choose it if its ranks exchange in every step."),
            "own-approximate": Strategy(
                strategy_class="approximate", doc="The same, if the exchange is compressed or not in every step."
            ),
            "own-asynchronous": Strategy(
                strategy_class="asynchronous", doc="The same, if ranks do not wait for each other."
            ),
        },
        data_parallel="own",
        knobs={
            "hooks": Knob(
                default="auto",
                choices=("auto", "torch", "none"),
                doc="torch: PyTorch's hooks find the steps; none: the script marks them; auto: none if any of "
                "its files imports paceline_worker, else torch.",
            ),
        },
        workloads=frozenset({"program"}),
        trains=False,
        devices={"cpu": "ready", "cuda": "untested"},
        phases=("data", "forward", "backward", "communication", "update"),
        startup_s=6.0,
        guess_step_s=lambda _trial: GUESSED_STEP_S,
        refuses=_refuses,
    )

    def processes(self, trial: Trial, topology: Topology) -> list[Process]:
        """One rank per slot; unless started plain, the variables of torchrun give it its rank and the rendezvous."""
        threads = str(trial.cluster.threads_per_worker)
        shared = {"OMP_NUM_THREADS": threads, "MKL_NUM_THREADS": threads}
        if launch_of(trial) == PLAIN:
            return one_worker_a_slot(trial, topology, shared)
        first = topology.hosts[0]
        shared |= {
            "WORLD_SIZE": str(trial.workers),
            "LOCAL_WORLD_SIZE": str(trial.cluster.workers_per_host),
            "MASTER_ADDR": first.address,
            "MASTER_PORT": str(first.ports[0]),
        }
        ranks = []
        for worker in one_worker_a_slot(trial, topology, shared):
            assert worker.rank is not None
            host, local = divmod(worker.rank, trial.cluster.workers_per_host)
            rank_variables = {"RANK": str(worker.rank), "LOCAL_RANK": str(local), "GROUP_RANK": str(host)}
            sockets = socket_variables(topology.hosts[worker.host])
            ranks.append(replace(worker, env={**worker.env, **rank_variables, **sockets}))
        return ranks


SCRIPT = Script()
