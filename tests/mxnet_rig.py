"""The rig of `torch_rig` in the MXNet environment. Nothing here imports MXNet."""

from __future__ import annotations

import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

from paceline.frameworks.base import WORKER_ARGV
from paceline.frameworks.mxnet import MXNET, ROLE_ARGV
from paceline.workloads import Graph
from torch_rig import Rig

PROBES = Path(__file__).parent / "integration" / "mxnet" / "probes"


class MxnetRig(Rig):
    """Runs things in the MXNet environment, with a scheduler and servers where the job needs them."""

    def job(self, graph: Graph, *, strategy: str = "dist_sync", devices: int = 1, **changed: Any) -> dict:
        """As for PyTorch, with MXNet's knobs."""
        knobs = MXNET.capabilities.knobs
        own = {name: changed.pop(name) for name in knobs if name in changed}
        evidence = changed.pop("evidence", False)
        defaults = {name: knob.default for name, knob in knobs.items()}
        framework = {"name": "mxnet", "module": MXNET.module, "strategy": strategy, "knobs": defaults | own}
        job = super().job(graph, **changed) | {"framework": framework, "devices": devices}
        job["measure"]["evidence"] = evidence
        return job

    def run(self, job: dict, folder: Path, argv: tuple[str, ...] = WORKER_ARGV) -> list[list[dict]]:
        """As for PyTorch; the scheduler and the servers end with the workers, as a site ends them."""
        if job["world_size"] == 1:
            return super().run(job, folder, argv)
        rig = replace(self, env=self.env | meeting(job))
        others = [rig.other(role) for role in ("scheduler", "server")]
        try:
            return super(MxnetRig, replace(rig, env=rig.env | {"DMLC_ROLE": "worker"})).run(job, folder, argv)
        finally:
            for other in others:
                other.kill()
                other.communicate()

    def other(self, role: str) -> subprocess.Popen:
        """A scheduler or a server, under way."""
        return subprocess.Popen(
            [*self.command, *ROLE_ARGV],
            env=self.env | {"DMLC_ROLE": role},
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )

    def probe(self, name: str, *arguments: str) -> Any:
        return super().probe(str(PROBES / name), *arguments)


def meeting(job: dict) -> dict[str, str]:
    """Where ps-lite's processes find each other: one server."""
    address, (port, *_) = job["rendezvous"]["address"], job["rendezvous"]["ports"]
    return {
        "DMLC_PS_ROOT_URI": address,
        "DMLC_PS_ROOT_PORT": str(port),
        "DMLC_NODE_HOST": address,
        "DMLC_INTERFACE": "lo",
        "DMLC_NUM_WORKER": str(job["world_size"]),
        "DMLC_NUM_SERVER": "1",
    }
