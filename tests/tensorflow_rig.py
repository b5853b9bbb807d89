"""The rig of `torch_rig` in the TensorFlow environment. Nothing here imports TensorFlow."""

from __future__ import annotations

import json
from pathlib import Path
from subprocess import PIPE, STDOUT, Popen
from typing import Any

from paceline.frameworks.base import WORKER_ARGV
from paceline.frameworks.tensorflow import SERVER_ARGV, TENSORFLOW
from paceline.workloads import Graph
from torch_rig import Rig, free_port

PROBES = Path(__file__).parent / "integration" / "tensorflow" / "probes"


class TensorFlowRig(Rig):
    """Runs things in the TensorFlow environment."""

    def job(self, graph: Graph, **changed: Any) -> dict:
        """As for PyTorch, with TensorFlow's knobs, `strategy`, `devices` of one process and `evidence`."""
        knobs = TENSORFLOW.capabilities.knobs
        own = {name: changed.pop(name) for name in knobs if name in changed}
        defaults = {name: knob.default for name, knob in knobs.items()}
        strategy = changed.pop("strategy", TENSORFLOW.capabilities.data_parallel)
        devices, evidence = changed.pop("devices", 1), changed.pop("evidence", False)
        framework = {"name": "tensorflow", "module": TENSORFLOW.module, "strategy": strategy, "knobs": defaults | own}
        job = super().job(graph, **changed) | {"framework": framework, "devices": devices}
        job["measure"]["evidence"] = evidence
        job["ports"] = [free_port() for _ in range(job["world_size"] + 1)]
        return job

    def start(
        self, job: dict, folder: Path, argv: tuple[str, ...] = WORKER_ARGV, ranks: int | None = None
    ) -> list[Popen]:
        """Each rank with a TF_CONFIG of its own, as the host half gives it."""
        wanted = range(job["world_size"] if ranks is None else ranks)
        return [self._start_one(job, folder, argv, "worker", rank) for rank in wanted]

    def start_server(self, job: dict, folder: Path) -> Popen:
        """The parameter server of a job."""
        return self._start_one(job, folder, SERVER_ARGV, "ps", 0)

    def probe(self, name: str, *arguments: str) -> Any:
        return super().probe(str(PROBES / name), *arguments)

    def _start_one(self, job: dict, folder: Path, argv: tuple[str, ...], role: str, index: int) -> Popen:
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / "job.json"
        path.write_text(json.dumps(job), encoding="utf-8")
        places = [f"127.0.0.1:{port}" for port in job["ports"]]
        cluster = {"worker": places[:-1]}
        if job["framework"]["strategy"] == "parameter_server":
            cluster["ps"] = places[-1:]
        env = {
            "PACELINE_JOB": str(path),
            "PACELINE_RANK": str(index),
            "TF_ENABLE_ONEDNN_OPTS": str(int(job["framework"]["knobs"]["onednn"])),
            "TF_CONFIG": json.dumps({"cluster": cluster, "task": {"type": role, "index": index}}),
        }
        return Popen([*self.command, *argv], env=self.env | env, stdout=PIPE, stderr=STDOUT, text=True)
