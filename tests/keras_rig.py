"""The rig of `torch_rig` in the environments of Keras. Nothing here imports Keras."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from subprocess import PIPE, STDOUT, Popen
from typing import Any

from paceline.frameworks import Framework, load_framework
from paceline.frameworks.base import WORKER_ARGV
from paceline.workloads import Graph
from torch_rig import Rig, free_port

PROBES = Path(__file__).parent / "integration" / "keras" / "probes"


@dataclass(frozen=True)
class KerasRig(Rig):
    """Runs things in the environment of Keras on one backend."""

    backend: str = "jax"

    @property
    def framework(self) -> Framework:
        return load_framework(f"keras-{self.backend}")

    def job(self, graph: Graph, **changed: Any) -> dict:
        """As for PyTorch, with the knobs of Keras on this backend, `strategy`, `devices` and `evidence`."""
        capabilities = self.framework.capabilities
        knobs = {name: changed.pop(name, knob.default) for name, knob in capabilities.knobs.items()}
        strategy = changed.pop("strategy", capabilities.data_parallel)
        devices, evidence = changed.pop("devices", 1), changed.pop("evidence", False)
        framework = {"name": self.framework.name, "module": self.framework.module, "strategy": strategy, "knobs": knobs}
        job = super().job(graph, **changed) | {"framework": framework, "devices": devices}
        job["measure"]["evidence"] = evidence
        job["ports"] = [free_port() for _ in range(job["world_size"])]
        return job

    def start(
        self, job: dict, folder: Path, argv: tuple[str, ...] = WORKER_ARGV, ranks: int | None = None
    ) -> list[Popen]:
        """Each rank with a TF_CONFIG of its own, as TensorFlow's host half gives it; other backends do not read it."""
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / "job.json"
        path.write_text(json.dumps(job), encoding="utf-8")
        cluster = {"worker": [f"127.0.0.1:{port}" for port in job["ports"]]}
        started = []
        for rank in range(job["world_size"] if ranks is None else ranks):
            env = {"PACELINE_JOB": str(path), "PACELINE_RANK": str(rank), "KERAS_BACKEND": self.backend}
            if job["world_size"] > 1:
                env["TF_CONFIG"] = json.dumps({"cluster": cluster, "task": {"type": "worker", "index": rank}})
            started.append(Popen([*self.command, *argv], env=self.env | env, stdout=PIPE, stderr=STDOUT, text=True))
        return started

    def probe(self, name: str, *arguments: str) -> Any:
        return super().probe(str(PROBES / name), *arguments)
